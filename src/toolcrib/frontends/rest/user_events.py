"""Server-sent events for a user's device: what apps display and speak."""

from collections.abc import AsyncIterator
from functools import partial

import anyio
import orjson

from toolcrib.admin import UserAdmin
from toolcrib.frontends.rest.user_handlers import managed
from toolcrib.http import HttpResponse, Request, Write, event, send_response
from toolcrib.http.response import EVENTS
from toolcrib.sessions import UserEvent

KEEP_ALIVE = 15.0


class UserEventStream:
    """Handler of `GET /api/users/{id}/events`; streams until the client disconnects or `end` is called."""

    def __init__(self, desk: UserAdmin, *, keep_alive: float = KEEP_ALIVE) -> None:
        self._desk, self._keep_alive = desk, keep_alive
        self._streams: dict[anyio.CancelScope, str] = {}

    async def listen(self, request: Request) -> None:
        """Stream all events from now on, until the device disconnects or the stream is ended."""
        user = managed(request)
        async with self._desk.listen(user, request.caller.principal) as events:
            stream = partial(self._stream, request, events)
            await send_response(request, HttpResponse(200, b"", EVENTS, stream))

    def end(self, key: str | None = None) -> None:
        """End the streams of a revoked key; without a key, all streams."""
        for stream, owner in tuple(self._streams.items()):
            if key is None or key == owner:
                stream.cancel()

    async def _stream(self, request: Request, events: AsyncIterator[UserEvent], write: Write) -> None:
        async with anyio.create_task_group() as tasks:
            self._streams[tasks.cancel_scope] = request.caller.key
            try:
                await write(b": listening\n\n")
                tasks.start_soon(self._stay_in_touch, write)
                tasks.start_soon(_notice_leaving, request, tasks.cancel_scope)
                async for each in events:
                    await write(event(each.kind, orjson.dumps(dict(each.data))))
            finally:
                del self._streams[tasks.cancel_scope]

    async def _stay_in_touch(self, write: Write) -> None:
        while True:
            await anyio.sleep(self._keep_alive)
            await write(b": still here\n\n")


async def _notice_leaving(request: Request, scope: anyio.CancelScope) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass  # the rest of a body, which is ignored
    scope.cancel()
