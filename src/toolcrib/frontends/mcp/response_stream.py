"""The response to one HTTP request: plain JSON, or an event stream once a message precedes the result."""

import asyncio
from contextlib import suppress

from toolcrib.http import HttpResponse, Request
from toolcrib.http.response import EVENTS

PATIENCE = 15.0
"""Seconds of silence after which a heartbeat comment is sent, as proxies close idle connections."""

_TICKS = 5
"""Timer ticks per `PATIENCE`."""
_COMMENT = b": still running\n\n"


class HttpResponseChannel:
    """Becomes an event stream with the first message; otherwise a JSON response."""

    __slots__ = ("_closed", "_request", "_streams", "open", "spoke")

    def __init__(self, request: Request, *, streams: bool = True) -> None:
        self._request, self._streams = request, streams
        self.open = self._closed = self.spoke = False

    async def send(self, message: bytes) -> None:
        """Send a message before the result; dropped for a client that does not accept event streams."""
        if self._streams:
            await self.write(b"event: message\ndata: %b\n\n" % message)

    @property
    def streams(self) -> bool:
        """Whether messages can be sent before the result."""
        return self._streams

    async def write(self, part: bytes) -> None:
        """Write a part of the stream; the first part also sends the headers."""
        send = self._request.send
        self.spoke = True
        if not self.open:
            self.open = True
            await send({"type": "http.response.start", "status": 200, "headers": list(EVENTS)})
        await send({"type": "http.response.body", "body": part, "more_body": True})

    async def comment(self) -> None:
        """Send a heartbeat comment."""
        if not self._closed:
            await self.write(_COMMENT)

    async def finish(self, body: bytes | None, status: int) -> HttpResponse | None:
        """Send the result: as the last event, or as a plain response where no stream was opened.

        Without a body, as for a cancelled request, the stream just ends.
        """
        self._closed = True
        if body is not None and not self.open:
            return HttpResponse(status, body)
        if body is not None:
            await self.send(body)
        else:
            await self.write(b"")
        await self._request.send({"type": "http.response.body", "body": b""})
        return None


class OpenResponses:
    """All open responses: one timer sends heartbeats to those that are silent for too long."""

    def __init__(self, patience: float = PATIENCE) -> None:
        self._pause = patience / _TICKS
        # Number of silent ticks of each: reading the clock for every request would cost more.
        self._open: dict[HttpResponseChannel, int] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._comments: set[asyncio.Task[None]] = set()

    def add(self, wire: HttpResponseChannel) -> None:
        """Send heartbeats on a response from now on."""
        self._open[wire] = 0
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._pause, self._tick, loop)

    def discard(self, wire: HttpResponseChannel) -> None:
        """Send no more heartbeats on it."""
        self._open.pop(wire, None)

    def _tick(self, loop: asyncio.AbstractEventLoop) -> None:
        for wire, silent in self._open.items():
            self._open[wire] = 0 if wire.spoke else silent + 1
            wire.spoke = False
            if silent >= _TICKS and wire.streams:
                comment = loop.create_task(_comment(wire))
                self._comments.add(comment)
                comment.add_done_callback(self._comments.discard)
        self._timer = loop.call_later(self._pause, self._tick, loop) if self._open else None


async def _comment(wire: HttpResponseChannel) -> None:
    # The handler of this request detects the disconnect itself; a heartbeat need not report it.
    with suppress(OSError, RuntimeError):
        await wire.comment()
