"""Multiplexes requests over one connection, and limits unsolicited messages."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from typing import Any, cast

import anyio
import orjson

from toolcrib.mcp import methods
from toolcrib.mcp.jsonrpc import END_BYTES, encode_notification, encode_request, guess_id, params_of
from toolcrib.mcp.meta import with_progress_token
from toolcrib.mcp.sse import BYTES_PER_MESSAGE
from toolcrib.model import JsonObject
from toolcrib.sources.mcp.connection import (
    ConnectionLost,
    InvalidResponse,
    Notify,
    NotSent,
    RequestCallbacks,
    ServerError,
)
from toolcrib.sources.mcp.server_messages import (
    GATEWAY_METHODS,
    MAX_LOG_BYTES,
    MessageRouter,
    SendReply,
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

NEVER_DROPPED = frozenset(
    {methods.CANCELLED, methods.RESOURCE_UPDATED, methods.ACKNOWLEDGED, *methods.LIST_CHANGED.values()}
)
"""Without these notifications our state is stale. Handling is cheap, as list changes are debounced."""

_WINDOW_SECONDS = 1.0


class NotificationLimit:
    """The limit of one connection. `close` closes it, with the reason."""

    __slots__ = ("_allowance", "_clock", "_close", "_ends", "_floods", "_seen", "dropped", "flooded")

    def __init__(self, close: Callable[[str], None], clock: Callable[[], float] = monotonic) -> None:
        self._close, self._clock = close, clock
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

    def charge(self, count: int, size: int = 0) -> None:
        """Count input that is no message, such as comments and blank lines: its pieces and its bytes."""
        self._is_within(count + size // BYTES_PER_MESSAGE)

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
        is_consecutive = now < self._ends + _WINDOW_SECONDS
        self._floods = self._floods + 1 if self.over and is_consecutive else 0
        self._seen, self._ends = 0, now + _WINDOW_SECONDS
        if self._floods >= FLOOD_SECONDS and not self.flooded:
            self.flooded = True
            self._close(FLOODED)


# --- Multiplexes requests over one stream: any number in flight, each response matched to its request by id

Send = Callable[[bytes], None]
"""Writes one message, without a newline. Must not block; raises NotSent if nothing can be sent."""


class RequestMultiplexer:
    """The JSON-RPC exchange of one connection, whatever the transport. Any task of one event loop may use it.

    `reply` sends what may be dropped if the server does not read: our own replies to its requests, and
    cancellations. It defaults to `send`. `send_reply` sends those of callers.
    """

    def __init__(
        self,
        send: Send,
        notify: Notify,
        *,
        send_reply: SendReply,
        reply: Send | None = None,
        limit: NotificationLimit | None = None,
    ) -> None:
        self._send, self._notify = send, notify
        self._limit = NotificationLimit(self._flooded) if limit is None else limit
        self._reply = reply or send
        # Futures, not anyio events: a call costs no more than one future here.
        self._pending: dict[int, asyncio.Future[JsonObject]] = {}
        self._router = MessageRouter(self._try_send, send_reply)
        self._subscriptions: set[int] = set()
        self._last = 0
        self._ended: ServerError | None = None
        self.unclaimed = 0
        """Number of responses and progress notifications without a pending request: wrong ids, late ones."""

    def relay(self, capabilities: JsonObject) -> None:
        """Relay the server's requests to a caller with a call in flight, within these capabilities."""
        self._router.relay(capabilities)

    async def request(
        self, method: str, params: bytes, *, callbacks: RequestCallbacks | None = None
    ) -> JsonObject:
        """Send a request and return its result; raise a ServerError."""
        if self._ended is not None:
            raise NotSent(str(self._ended))
        self._last = request_id = self._last + 1
        response: asyncio.Future[JsonObject] = asyncio.get_running_loop().create_future()
        self._pending[request_id] = response
        if method not in GATEWAY_METHODS:
            self._limit.allow_for_call()
        if callbacks is not None:
            params = with_progress_token(params, request_id) if callbacks.report is not None else params
        elif method == methods.LISTEN:
            self._subscriptions.add(request_id)
        elif method not in GATEWAY_METHODS:
            self._router.has_unrouted = True
        try:
            self._send(encode_request(request_id, method, params))
        except BaseException:
            self._pending.pop(request_id, None)
            raise
        try:
            return await (
                response if callbacks is None else self._deliver_until(request_id, response, callbacks)
            )
        except BaseException:
            self._abandon(request_id, method, response)
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
                self._handle_batch(cast("list[Any]", value), len(data))
            else:
                self._handle(value, len(data))
        except InvalidResponse as fault:
            self._limit.admit("", len(data))
            request_id = guess_id(data[:END_BYTES], data[-END_BYTES:])
            if request_id is None or not self.fail(request_id, fault):
                raise

    def fail(self, id: int, fault: ServerError) -> bool:
        """Fail one request; return whether it was pending."""
        return self._resolve(id, fault)

    def close(self, fault: ServerError) -> None:
        """End the exchange: pending requests fail with this error, new ones are refused."""
        if self._ended is None:
            self._ended = fault
        self._router.mark_lost()
        for request_id in tuple(self._pending):
            self._resolve(request_id, fault)

    def _handle_batch(self, messages: list[Any], size: int) -> None:
        """Handle a batch (revision 2025-03-26); an invalid message does not affect the others."""
        each_size = size // max(1, len(messages))
        for message in messages:
            try:
                self._handle(message, each_size)
            except InvalidResponse:
                self.unclaimed += 1
                self._limit.admit("", each_size)

    def _handle(self, message: Any, size: int) -> None:
        if type(message) is not dict:
            raise InvalidResponse("the message is not an object")
        fields = cast("dict[str, Any]", message)
        method = fields.get("method")
        if method is None:
            self._handle_response(fields, size)
        elif type(method) is not str:
            raise InvalidResponse("the method of the message is not text")
        else:
            self._handle_server_message(method, fields, size)

    def _handle_server_message(self, method: str, fields: dict[str, Any], size: int) -> None:
        admitted = self._limit.admit(method, size)
        if "id" in fields:
            # Never dropped, as the server waits for the reply; excess requests get an error.
            if self._ended is None:
                self._router.ask(fields, size)
        elif admitted:
            self._handle_notification(method, params_of(fields), size)

    def _flooded(self, why: str) -> None:
        self.close(ConnectionLost(why))

    def _handle_response(self, fields: dict[str, Any], size: int) -> None:
        outcome = response_outcome(fields)
        if outcome is None:
            raise InvalidResponse("the message is neither a request nor an answer")
        request_id = fields.get("id")
        # True and 1.0 would match request 1.
        if type(request_id) is not int or not self._resolve(request_id, outcome):
            self.unclaimed += 1
            self._limit.admit("", size)

    def _resolve(self, request_id: int, outcome: JsonObject | ServerError) -> bool:
        response = self._pending.pop(request_id, None)
        if response is None or response.done():
            return False
        if isinstance(outcome, ServerError):
            response.set_exception(outcome)
        else:
            response.set_result(outcome)
        if self._router.in_flight:
            self._router.close(request_id)
        return True

    def _handle_notification(self, method: str, params: JsonObject, size: int) -> None:
        if method == methods.PROGRESS:
            messages = self._router.of(params.get("progressToken"))
            if messages is None or messages.callbacks.report is None:
                self.unclaimed += 1
            else:
                messages.add(progress_of(params))
        elif method == methods.CANCELLED:
            self._router.withdraw(params)
        elif (
            method != methods.LOG_MESSAGE
            or size > MAX_LOG_BYTES
            or not self._router.log(params, self._without_callbacks())
        ):
            self._notify(method, params)

    def _without_callbacks(self) -> int:
        """Return the number of pending requests without callbacks; subscriptions belong to no call."""
        self._subscriptions &= self._pending.keys()
        return len(self._pending) - len(self._router.in_flight) - len(self._subscriptions)

    async def _deliver_until(
        self, id: int, response: "asyncio.Future[JsonObject]", callbacks: RequestCallbacks
    ) -> JsonObject:
        messages = self._router.begin(id, callbacks)
        try:
            return await messages.deliver_until(response)
        finally:
            self._router.close(id)

    def _abandon(self, id: int, method: str, response: "asyncio.Future[JsonObject]") -> None:
        """Drop a request that its caller no longer awaits; cancel it at the server unless it has answered."""
        if response.done() and not response.cancelled():
            response.exception()  # retrieved: asyncio logs every exception that is never retrieved
        if self._pending.pop(id, None) is None or self._ended is not None:
            return
        response.cancel()
        if method != methods.INITIALIZE:
            params = orjson.dumps({"requestId": id, "reason": "the caller no longer waits"})
            self._try_send(encode_notification(methods.CANCELLED, params))

    def _try_send(self, data: bytes) -> bool:
        with suppress(NotSent):  # best-effort: without a connection there is no receiver
            self._reply(data)
        return True
