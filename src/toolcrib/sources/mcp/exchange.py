"""Requests and answers over one stream: any number at once, each answer led to the one who waits for it."""

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, cast

import anyio
import orjson

from toolcrib.model import JsonObject, Progress, Report
from toolcrib.sources.mcp.connection import Heard
from toolcrib.sources.mcp.faults import Fault, Garbled, Unsent
from toolcrib.sources.mcp.messages import PROGRESS, outcome, progress, reply
from toolcrib.sources.mcp.wire import ENDS, encode_notification, encode_request, guess_id, parse, with_token

Send = Callable[[bytes], None]
"""Takes one message, without a newline. Must not wait; raises Unsent where nothing can be sent."""

MOST_NEWS = 64
"""How much progress is kept for a caller that is slow to take it; the newest counts."""


class Exchange:
    """One conversation with a server. Used from any task of one event loop; knows nothing of the transport.

    `reply` sends what may be left out where the server does not read: our answers to its requests, and
    word of requests nobody waits for any more. It is `send` unless given.
    """

    def __init__(self, send: Send, heard: Heard, *, reply: Send | None = None) -> None:
        self._send, self._heard = send, heard
        self._reply = reply or send
        # Futures, not anyio events: one is all that a call costs here.
        self._pending: dict[int, asyncio.Future[JsonObject]] = {}
        self._news: dict[int, _News] = {}
        self._last = 0
        self._ended: Fault | None = None
        self.unclaimed = 0
        """How many answers and reports came for which nobody waits: wrong ids, and answers too late."""

    async def request(self, method: str, params: bytes, *, report: Report | None = None) -> JsonObject:
        """Send a request and return its result; raise what `faults` lists."""
        if self._ended is not None:
            raise Unsent(str(self._ended))
        self._last = number = self._last + 1
        answer: asyncio.Future[JsonObject] = asyncio.get_running_loop().create_future()
        self._pending[number] = answer
        if report is not None:
            params = with_token(params, number)
        try:
            self._send(encode_request(number, method, params))
        except BaseException:
            self._pending.pop(number, None)
            raise
        try:
            return await (answer if report is None else self._reported(number, answer, report))
        except BaseException:
            self._abandon(number, method, answer)
            raise

    def notify(self, method: str, params: bytes) -> None:
        """Send a notification."""
        if self._ended is not None:
            raise Unsent(str(self._ended))
        self._send(encode_notification(method, params))

    def feed(self, data: bytes) -> None:
        """Take one message of the server; raise Garbled where it is none, and no request could be told."""
        try:
            value = parse(data)
            if type(value) is list:
                self._take_each(cast("list[Any]", value))
            else:
                self._take(value)
        except Garbled as fault:
            number = guess_id(data[:ENDS], data[-ENDS:])
            if number is None or not self.spoil(number, fault):
                raise

    def spoil(self, id: int, fault: Fault) -> bool:
        """End one request with a fault; whether somebody waited for it."""
        return self._settle(id, fault)

    def close(self, fault: Fault) -> None:
        """End the conversation: all who wait get this fault, and nothing is sent any more."""
        if self._ended is None:
            self._ended = fault
        for number in tuple(self._pending):
            self._settle(number, fault)

    def _take_each(self, messages: list[Any]) -> None:
        """Take a list of messages, which one revision allows; a bad one does not spoil the others."""
        for message in messages:
            try:
                self._take(message)
            except Garbled:
                self.unclaimed += 1

    def _take(self, message: Any) -> None:
        if type(message) is not dict:
            raise Garbled("the message is not an object")
        fields = cast("dict[str, Any]", message)
        method = fields.get("method")
        if method is None:
            self._answered(fields)
        elif type(method) is not str:
            raise Garbled("the method of the message is not text")
        elif "id" in fields:
            self._asked(fields["id"], method)
        else:
            params = fields.get("params")
            self._told(method, cast("JsonObject", params) if type(params) is dict else {})

    def _answered(self, fields: dict[str, Any]) -> None:
        found = outcome(fields)
        if found is None:
            raise Garbled("the message is neither a request nor an answer")
        number = fields.get("id")
        # True and 1.0 would find the request number 1.
        if type(number) is not int or not self._settle(number, found):
            self.unclaimed += 1

    def _settle(self, number: int, found: JsonObject | Fault) -> bool:
        answer = self._pending.pop(number, None)
        if answer is None or answer.done():
            return False
        if isinstance(found, Fault):
            answer.set_exception(found)
        else:
            answer.set_result(found)
        return True

    def _asked(self, id: Any, method: str) -> None:
        answer = reply(id, method)
        if answer is not None and self._ended is None:
            self._say(answer)

    def _told(self, method: str, params: JsonObject) -> None:
        if method != PROGRESS:
            self._heard(method, params)
            return
        token = params.get("progressToken")
        news = self._news.get(token) if type(token) is int else None
        if news is None:
            self.unclaimed += 1
        else:
            news.add(progress(params))

    async def _reported(self, id: int, answer: "asyncio.Future[JsonObject]", report: Report) -> JsonObject:
        """Pass progress on in the task of the one who asked, so that a slow listener slows only itself."""
        news = self._news[id] = _News()
        answer.add_done_callback(news.end)
        try:
            while news.waiting or not answer.done():
                if news.waiting:
                    await report(news.waiting.popleft())
                else:
                    await news.come()
        finally:
            del self._news[id]
        return answer.result()

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

    def _say(self, data: bytes) -> None:
        with suppress(Unsent):  # a courtesy: without a way to the server there is nobody to be polite to
            self._reply(data)


class _News:
    """Progress that has come for one request and was not passed on yet."""

    def __init__(self) -> None:
        self.waiting: deque[Progress] = deque(maxlen=MOST_NEWS)
        self._come = anyio.Event()
        self._ended = False

    def add(self, news: Progress) -> None:
        if not self._ended:
            self.waiting.append(news)
            self._come.set()

    def end(self, _: object) -> None:
        """Let the caller go: after its answer, no news can hold it up."""
        self._ended = True
        self._come.set()

    async def come(self) -> None:
        await self._come.wait()
        self._come = anyio.Event()
