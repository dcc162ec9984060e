"""The answer to one HTTP request while it is open: plain JSON, unless something is said before it."""

import asyncio
from contextlib import suppress

from toolcrib.http import HttpResponse, Request
from toolcrib.http.response import EVENTS

PATIENCE = 15.0
"""After so many seconds of silence a proxy may lose patience, so a comment is sent."""

_TICKS = 5
_COMMENT = b": still running\n\n"


class HttpResponseChannel:
    """Turns into a stream of events with the first message; JSON otherwise."""

    __slots__ = ("_closed", "_request", "_streams", "open", "spoke")

    def __init__(self, request: Request, *, streams: bool = True) -> None:
        self._request, self._streams = request, streams
        self.open = self._closed = self.spoke = False

    async def send(self, message: bytes) -> None:
        """Send a message ahead of the answer; a client that takes no events does without it."""
        if self._streams:
            await self.write(b"event: message\ndata: %b\n\n" % message)

    @property
    def streams(self) -> bool:
        """Whether anything can be said before the answer."""
        return self._streams

    async def write(self, part: bytes) -> None:
        """Write a part of the stream; the first part begins it."""
        send = self._request.send
        self.spoke = True
        if not self.open:
            self.open = True
            await send({"type": "http.response.start", "status": 200, "headers": list(EVENTS)})
        await send({"type": "http.response.body", "body": part, "more_body": True})

    async def comment(self) -> None:
        """Say that the answer is still to come."""
        if not self._closed:
            await self.write(_COMMENT)

    async def finish(self, body: bytes | None, status: int) -> HttpResponse | None:
        """Give the answer: as the last event, or as what it would have been without a stream.

        Without one, as for a request that was taken back, the stream just ends.
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
    """All open answers: one timer sees to it that none of them is silent for too long."""

    def __init__(self, patience: float = PATIENCE) -> None:
        self._pause = patience / _TICKS
        # For how many ticks each has been silent: a look at the clock for every request would cost more.
        self._open: dict[HttpResponseChannel, int] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._comments: set[asyncio.Task[None]] = set()

    def add(self, wire: HttpResponseChannel) -> None:
        """Look after an answer from now on."""
        self._open[wire] = 0
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._pause, self._tick, loop)

    def discard(self, wire: HttpResponseChannel) -> None:
        """Look after it no longer."""
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
    # Whoever answers on this wire will find out that the client is gone; this is no place to say so.
    with suppress(OSError, RuntimeError):
        await wire.comment()
