"""Requests and answers over one stream: any number at once, each answer led to the one who waits for it."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any, cast

import orjson

from toolcrib.model import JsonObject
from toolcrib.sources.mcp.connection import Heard
from toolcrib.sources.mcp.errors import ConnectionLost, InvalidResponse, NotSent, ServerError
from toolcrib.sources.mcp.jsonrpc import (
    ENDS,
    encode_notification,
    encode_request,
    guess_id,
    parse,
    with_token,
)
from toolcrib.sources.mcp.message_parsing import CANCELLED, MESSAGE, PROGRESS, outcome, params_of, progress
from toolcrib.sources.mcp.notification_limit import NotificationLimit
from toolcrib.sources.mcp.request_callbacks import RequestCallbacks
from toolcrib.sources.mcp.server_messages import LARGEST_LOG, NOBODYS, Answer, MessageRouter

Send = Callable[[bytes], None]
"""Takes one message, without a newline. Must not wait; raises Unsent where nothing can be sent."""

_LISTEN = "subscriptions/listen"


class RequestMultiplexer:
    """One conversation with a server. Used from any task of one event loop; knows nothing of the transport.

    `reply` sends what may be left out where the server does not read: our own answers to its requests, and
    word of requests nobody waits for any more. It is `send` unless given. `answer` sends those of callers.
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
        # Futures, not anyio events: one is all that a call costs here.
        self._pending: dict[int, asyncio.Future[JsonObject]] = {}
        self._hearings = MessageRouter(self._say, answer)
        self._standing: set[int] = set()
        self._last = 0
        self._ended: ServerError | None = None
        self.unclaimed = 0
        """How many answers and reports came for which nobody waits: wrong ids, and answers too late."""

    def relay(self, capabilities: JsonObject) -> None:
        """Put what the server asks to whoever has a call under way, within these capabilities."""
        self._hearings.relay(capabilities)

    async def request(self, method: str, params: bytes, *, ear: RequestCallbacks | None = None) -> JsonObject:
        """Send a request and return its result; raise what `faults` lists."""
        if self._ended is not None:
            raise NotSent(str(self._ended))
        self._last = number = self._last + 1
        answer: asyncio.Future[JsonObject] = asyncio.get_running_loop().create_future()
        self._pending[number] = answer
        if method not in NOBODYS:
            self._limit.allow_for_call()
        if ear is not None:
            params = with_token(params, number) if ear.report is not None else params
        elif method == _LISTEN:
            self._standing.add(number)
        elif method not in NOBODYS:
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
        """Take one message of the server; raise Garbled where it is none, and no request could be told."""
        try:
            value = parse(data)
            if type(value) is list:
                self._take_each(cast("list[Any]", value), len(data))
            else:
                self._take(value, len(data))
        except InvalidResponse as fault:
            self._limit.admit("", len(data))
            number = guess_id(data[:ENDS], data[-ENDS:])
            if number is None or not self.spoil(number, fault):
                raise

    def spoil(self, id: int, fault: ServerError) -> bool:
        """End one request with a fault; whether somebody waited for it."""
        return self._settle(id, fault)

    def close(self, fault: ServerError) -> None:
        """End the conversation: all who wait get this fault, and nothing is sent any more."""
        if self._ended is None:
            self._ended = fault
        self._hearings.shut()
        for number in tuple(self._pending):
            self._settle(number, fault)

    def _take_each(self, messages: list[Any], size: int) -> None:
        """Take a list of messages, which one revision allows; a bad one does not spoil the others."""
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
            # Asked, a server waits for the answer; it is told no where there are too many.
            if self._ended is None:
                self._hearings.ask(fields, size)
        elif admitted:
            self._told(method, params_of(fields), size)

    def _flooded(self, why: str) -> None:
        self.close(ConnectionLost(why))

    def _answered(self, fields: dict[str, Any], size: int) -> None:
        found = outcome(fields)
        if found is None:
            raise InvalidResponse("the message is neither a request nor an answer")
        number = fields.get("id")
        # True and 1.0 would find the request number 1.
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
                hearing.add(progress(params))
        elif method == CANCELLED:
            self._hearings.withdraw(params)
        elif method != MESSAGE or size > LARGEST_LOG or not self._hearings.log(params, self._strangers()):
            self._heard(method, params)

    def _strangers(self) -> int:
        """How many requests run on whose behalf nobody listens; a subscription is nobody's call."""
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
        """Forget a request whose caller is gone, and tell the server unless it has answered."""
        if answer.done() and not answer.cancelled():
            answer.exception()  # seen, or asyncio complains that nobody did
        if self._pending.pop(id, None) is None or self._ended is not None:
            return
        answer.cancel()
        if method != "initialize":
            params = orjson.dumps({"requestId": id, "reason": "the caller no longer waits"})
            self._say(encode_notification("notifications/cancelled", params))

    def _say(self, data: bytes) -> bool:
        with suppress(NotSent):  # a courtesy: without a way to the server there is nobody to be polite to
            self._reply(data)
        return True
