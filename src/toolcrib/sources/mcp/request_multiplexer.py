"""Multiplexes requests over one connection, and limits unsolicited messages."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from typing import Any, cast

import anyio
import orjson

from toolcrib.mcp.jsonrpc import END_BYTES, encode_notification, encode_request, guess_id, params_of
from toolcrib.mcp.meta import with_progress_token
from toolcrib.mcp.methods import (
    ACKNOWLEDGED,
    CANCELLED,
    INITIALIZE,
    LIST_CHANGED,
    LISTEN,
    LOG_MESSAGE,
    PROGRESS,
    RESOURCE_UPDATED,
)
from toolcrib.mcp.sse import BYTES_PER_MESSAGE
from toolcrib.model import JsonObject
from toolcrib.sources.mcp.connection import (
    ConnectionLost,
    Heard,
    InvalidResponse,
    NotSent,
    RequestCallbacks,
    ServerError,
)
from toolcrib.sources.mcp.server_messages import (
    GATEWAY_METHODS,
    MAX_LOG_BYTES,
    Answer,
    MessageRouter,
    parse_message,
    progress_of,
    response_outcome,
)

# --- Rate limit for unsolicited messages: excess is dropped and counted; a flood closes the connection ---

MAX_MESSAGES_PER_SECOND = 1_000
"""Maximum messages per second that answer no request; a large one counts as several."""
MESSAGES_PER_CALL = 16
"""Additional messages that each call allows: a busy server reports progress and logs for every one."""
FLOOD_SECONDS = 5
"""Consecutive seconds above the limit after which the connection is closed."""
THROTTLE_PAUSE_SECONDS = 0.05
"""Seconds without reading after each chunk from a server above the limit (backpressure)."""
FLOODED = (
    f"for {FLOOD_SECONDS} s it sent more than {MAX_MESSAGES_PER_SECOND:,} messages a second"
    " that answer nothing"
)

NEVER_DROPPED = frozenset({CANCELLED, RESOURCE_UPDATED, ACKNOWLEDGED, *LIST_CHANGED.values()})
"""Without these notifications our state is stale. Handling is cheap, as list changes are debounced."""

_WINDOW_SECONDS = 1.0


class NotificationLimit:
    """The limit of one connection. `cut` closes it, with the reason."""

    __slots__ = ("_allowance", "_clock", "_cut", "_ends", "_floods", "_seen", "dropped", "flooded")

    def __init__(self, cut: Callable[[str], None], clock: Callable[[], float] = monotonic) -> None:
        self._cut, self._clock = cut, clock
        self._seen = self._floods = self._allowance = 0
        self._ends = clock() + _WINDOW_SECONDS
        self.dropped = 0
        """Number of messages that were dropped."""
        self.flooded = False
        """Whether the connection was closed because of a flood."""

    @property
    def over(self) -> bool:
        """Whether the limit of this second is exceeded."""
        return self._seen > MAX_MESSAGES_PER_SECOND

    def allow_for_call(self) -> None:
        """Add the allowance of a call in progress; at most one second's limit accumulates."""
        self._allowance = min(self._allowance + MESSAGES_PER_CALL, MAX_MESSAGES_PER_SECOND)

    def admit(self, method: str, size: int) -> bool:
        """Count a message that answers no request; return whether to pass it on."""
        if self._is_within(1 + size // BYTES_PER_MESSAGE) or method in NEVER_DROPPED:
            return True
        self.dropped += 1
        return False

    def charge(self, pieces: int, size: int = 0) -> None:
        """Count input that is no message, such as comments and blank lines: its pieces and its bytes."""
        self._is_within(pieces + size // BYTES_PER_MESSAGE)

    def _is_within(self, cost: int) -> bool:
        now = self._clock()
        if now >= self._ends:
            self._next_second(now)
        if cost <= self._allowance:
            self._allowance -= cost
            return True
        self._seen += cost
        return self._seen <= MAX_MESSAGES_PER_SECOND

    def pause(self) -> float:
        """Return how long to pause reading from the server now, in seconds."""
        if not self.over or self.flooded:
            return 0.0
        return min(THROTTLE_PAUSE_SECONDS, max(self._ends - self._clock(), 0.0))

    async def throttle(self) -> None:
        """Sleep while reading is paused."""
        if self.over:
            await anyio.sleep(self.pause())

    def _next_second(self, now: float) -> None:
        followed = now < self._ends + _WINDOW_SECONDS
        self._floods = self._floods + 1 if self.over and followed else 0
        self._seen, self._ends = 0, now + _WINDOW_SECONDS
        if self._floods >= FLOOD_SECONDS and not self.flooded:
            self.flooded = True
            self._cut(FLOODED)


# --- Multiplexes requests over one stream: any number in flight, each response matched to its request by id
# ---

Send = Callable[[bytes], None]
"""Writes one message, without a newline. Must not block; raises NotSent if nothing can be sent."""


class RequestMultiplexer:
    """The JSON-RPC exchange of one connection, whatever the transport. Any task of one event loop may use it.

    `reply` sends what may be dropped if the server does not read: our own replies to its requests, and
    cancellations. It defaults to `send`. `answer` sends the replies of callers.
    """

    def __init__(
        self,
        send: Send,
        heard: Heard,
        *,
        answer: Answer,
        reply: Send | None = None,
        limit: NotificationLimit | None = None,
    ) -> None:
        self._send, self._heard = send, heard
        self._limit = NotificationLimit(self._flooded) if limit is None else limit
        self._reply = reply or send
        # Futures, not anyio events: a call costs no more than one future here.
        self._pending: dict[int, asyncio.Future[JsonObject]] = {}
        self._hearings = MessageRouter(self._say, answer)
        self._standing: set[int] = set()
        self._last = 0
        self._ended: ServerError | None = None
        self.unclaimed = 0
        """Number of responses and progress notifications without a pending request: wrong ids, late ones."""

    def relay(self, capabilities: JsonObject) -> None:
        """Relay the server's requests to a caller with a call in flight, within these capabilities."""
        self._hearings.relay(capabilities)

    async def request(self, method: str, params: bytes, *, ear: RequestCallbacks | None = None) -> JsonObject:
        """Send a request and return its result; raise a ServerError."""
        if self._ended is not None:
            raise NotSent(str(self._ended))
        self._last = number = self._last + 1
        answer: asyncio.Future[JsonObject] = asyncio.get_running_loop().create_future()
        self._pending[number] = answer
        if method not in GATEWAY_METHODS:
            self._limit.allow_for_call()
        if ear is not None:
            params = with_progress_token(params, number) if ear.report is not None else params
        elif method == LISTEN:
            self._standing.add(number)
        elif method not in GATEWAY_METHODS:
            self._hearings.unheard = True
        try:
            self._send(encode_request(number, method, params))
        except BaseException:
            self._pending.pop(number, None)
            raise
        try:
            return await (answer if ear is None else self._listened(number, answer, ear))
        except BaseException:
            self._abandon(number, method, answer)
            raise

    def notify(self, method: str, params: bytes) -> None:
        """Send a notification."""
        if self._ended is not None:
            raise NotSent(str(self._ended))
        self._send(encode_notification(method, params))

    def feed(self, data: bytes) -> None:
        """Handle one message; raise InvalidResponse if it is invalid and matches no pending request."""
        try:
            value = parse_message(data)
            if type(value) is list:
                self._take_each(cast("list[Any]", value), len(data))
            else:
                self._take(value, len(data))
        except InvalidResponse as fault:
            self._limit.admit("", len(data))
            number = guess_id(data[:END_BYTES], data[-END_BYTES:])
            if number is None or not self.spoil(number, fault):
                raise

    def spoil(self, id: int, fault: ServerError) -> bool:
        """Fail one request; return whether it was pending."""
        return self._settle(id, fault)

    def close(self, fault: ServerError) -> None:
        """End the exchange: pending requests fail with this error, new ones are refused."""
        if self._ended is None:
            self._ended = fault
        self._hearings.shut()
        for number in tuple(self._pending):
            self._settle(number, fault)

    def _take_each(self, messages: list[Any], size: int) -> None:
        """Handle a batch (revision 2025-03-26); an invalid message does not affect the others."""
        each_size = size // max(1, len(messages))
        for message in messages:
            try:
                self._take(message, each_size)
            except InvalidResponse:
                self.unclaimed += 1
                self._limit.admit("", each_size)

    def _take(self, message: Any, size: int) -> None:
        if type(message) is not dict:
            raise InvalidResponse("the message is not an object")
        fields = cast("dict[str, Any]", message)
        method = fields.get("method")
        if method is None:
            self._answered(fields, size)
        elif type(method) is not str:
            raise InvalidResponse("the method of the message is not text")
        else:
            self._unasked(method, fields, size)

    def _unasked(self, method: str, fields: dict[str, Any], size: int) -> None:
        admitted = self._limit.admit(method, size)
        if "id" in fields:
            # Never dropped, as the server waits for the reply; excess requests get an error.
            if self._ended is None:
                self._hearings.ask(fields, size)
        elif admitted:
            self._told(method, params_of(fields), size)

    def _flooded(self, why: str) -> None:
        self.close(ConnectionLost(why))

    def _answered(self, fields: dict[str, Any], size: int) -> None:
        found = response_outcome(fields)
        if found is None:
            raise InvalidResponse("the message is neither a request nor an answer")
        number = fields.get("id")
        # True and 1.0 would match request 1.
        if type(number) is not int or not self._settle(number, found):
            self.unclaimed += 1
            self._limit.admit("", size)

    def _settle(self, number: int, found: JsonObject | ServerError) -> bool:
        answer = self._pending.pop(number, None)
        if answer is None or answer.done():
            return False
        if isinstance(found, ServerError):
            answer.set_exception(found)
        else:
            answer.set_result(found)
        if self._hearings.open:
            self._hearings.close(number)
        return True

    def _told(self, method: str, params: JsonObject, size: int) -> None:
        if method == PROGRESS:
            hearing = self._hearings.of(params.get("progressToken"))
            if hearing is None or hearing.ear.report is None:
                self.unclaimed += 1
            else:
                hearing.add(progress_of(params))
        elif method == CANCELLED:
            self._hearings.withdraw(params)
        elif (
            method != LOG_MESSAGE or size > MAX_LOG_BYTES or not self._hearings.log(params, self._strangers())
        ):
            self._heard(method, params)

    def _strangers(self) -> int:
        """Return the number of pending requests without callbacks; subscriptions belong to no call."""
        self._standing &= self._pending.keys()
        return len(self._pending) - len(self._hearings.open) - len(self._standing)

    async def _listened(
        self, id: int, answer: "asyncio.Future[JsonObject]", ear: RequestCallbacks
    ) -> JsonObject:
        hearing = self._hearings.begin(id, ear)
        try:
            return await hearing.listen(answer)
        finally:
            self._hearings.close(id)

    def _abandon(self, id: int, method: str, answer: "asyncio.Future[JsonObject]") -> None:
        """Drop a request that its caller no longer awaits; cancel it at the server unless it has answered."""
        if answer.done() and not answer.cancelled():
            answer.exception()  # retrieved: asyncio logs every exception that is never retrieved
        if self._pending.pop(id, None) is None or self._ended is not None:
            return
        answer.cancel()
        if method != INITIALIZE:
            params = orjson.dumps({"requestId": id, "reason": "the caller no longer waits"})
            self._say(encode_notification(CANCELLED, params))

    def _say(self, data: bytes) -> bool:
        with suppress(NotSent):  # best-effort: without a connection there is no receiver
            self._reply(data)
        return True
