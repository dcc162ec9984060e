"""The resources a server tells us of: asked for one by one in the older era, by one stream in the modern."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol, cast

import anyio
import orjson
from anyio.abc import TaskGroup

from toolcrib.model import JsonObject
from toolcrib.sources.mcp.connection import Connection, Era
from toolcrib.sources.mcp.envelope import listen
from toolcrib.sources.mcp.errors import JsonRpcError, ServerError

PAUSE, LONGEST_PAUSE = 1.0, 30.0
"""How long to wait before a stream that broke is opened again, in seconds."""

_UNFIT = -32602
_SUBSCRIBE, _UNSUBSCRIBE = "resources/subscribe", "resources/unsubscribe"

Faults = Mapping[str, ServerError]
"""By resource: why the server does not tell of it."""


class _Way(Protocol):
    async def change(self, uris: frozenset[str]) -> Faults:
        """Have the server tell of these and no others."""
        ...

    async def run(self) -> None:
        """Do what must be done meanwhile."""
        ...

    def agreed(self, params: JsonObject) -> None:
        """Hear what the server will tell."""
        ...


class ServerSubscriptions:
    """What one server tells us of while it is connected. `updated` hears what may have changed unseen."""

    def __init__(self, connection: Connection, era: Era, updated: Callable[[str], None]) -> None:
        self._updated = updated
        self._way: _Way = _OneStream(connection, self._missed) if era == "modern" else _OneByOne(connection)
        self._lock = anyio.Lock()
        self._now: frozenset[str] = frozenset()

    async def add(self, uri: str) -> None:
        """Have one more told; return when the server has agreed."""
        async with self._lock:
            if uri in self._now:
                return
            faults = await self._way.change(self._now | {uri})
            if uri in faults:
                raise faults[uri]
            self._now |= {uri}

    async def follow(self, uris: frozenset[str]) -> Mapping[str, ServerError]:
        """Have these told and no others; what is told again after a while may have changed meanwhile."""
        async with self._lock:
            faults = await self._way.change(uris)
            again = uris - self._now - faults.keys()
            self._now = uris - faults.keys()
        for uri in sorted(again):
            self._updated(uri)
        return faults

    async def run(self) -> None:
        """Keep hearing, until cancelled."""
        await self._way.run()

    def heard(self, params: JsonObject) -> None:
        """Pass on that something has changed."""
        uri = params.get("uri")
        if isinstance(uri, str) and self._now:
            self._updated(uri)

    def agreed(self, params: JsonObject) -> None:
        """Hear what a server says it will tell."""
        self._way.agreed(params)

    def _missed(self) -> None:
        """Nobody knows what was told while nobody heard."""
        for uri in sorted(self._now):
            self._updated(uri)


class _OneByOne:
    """A request for each resource, answered each."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._now: set[str] = set()

    async def change(self, uris: frozenset[str]) -> Faults:
        faults: dict[str, ServerError] = {}
        for uri in sorted(uris - self._now):
            try:
                await self._connection.request(_SUBSCRIBE, orjson.dumps({"uri": uri}))
                self._now.add(uri)
            except JsonRpcError as refusal:
                faults[uri] = refusal
        for uri in sorted(self._now - uris):
            self._now.discard(uri)
            try:
                await self._connection.request(_UNSUBSCRIBE, orjson.dumps({"uri": uri}))
            except JsonRpcError:
                continue  # what it tells all the same, nobody hears
        return faults

    async def run(self) -> None:
        await anyio.sleep_forever()

    def agreed(self, params: JsonObject) -> None:
        """Every request has its own answer, so there is nothing to hear."""


class _OneStream:
    """A stream for all resources; to change what it tells, another is opened before it is closed."""

    def __init__(self, connection: Connection, missed: Callable[[], None]) -> None:
        self._connection, self._missed = connection, missed
        self._running, self._settled = anyio.Event(), anyio.Event()
        self._tasks: TaskGroup | None = None
        self._stream = anyio.CancelScope()
        self._uris: frozenset[str] = frozenset()
        self._honoured: frozenset[str] = frozenset()
        self._refusal: JsonRpcError | None = None
        self._due = 0
        """How often the server has still to agree: once for every stream, however often it says so."""

    async def change(self, uris: frozenset[str]) -> Faults:
        if uris == self._uris:
            return {}
        await self._running.wait()
        stream = anyio.CancelScope()
        refusal = await self._opened(uris, stream) if uris else None
        if refusal is not None:
            return dict.fromkeys(uris - self._uris, refusal)
        before, self._stream, self._uris = self._stream, stream, uris & self._honoured
        before.cancel()
        return dict.fromkeys(uris - self._honoured, JsonRpcError(_UNFIT, "the server does not tell of it"))

    async def _opened(self, uris: frozenset[str], stream: anyio.CancelScope) -> JsonRpcError | None:
        """Open a stream; return when the server has agreed to it, or with what it says otherwise."""
        self._settled, self._refusal = anyio.Event(), None
        cast("TaskGroup", self._tasks).start_soon(self._keep, uris, stream)
        try:
            await self._settled.wait()
        except BaseException:  # whoever wanted it is gone, so the stream there was goes on
            stream.cancel()
            raise
        return self._refusal

    async def run(self) -> None:
        async with anyio.create_task_group() as self._tasks:
            self._running.set()
            await anyio.sleep_forever()

    def agreed(self, params: JsonObject) -> None:
        said: Any = params.get("notifications")
        uris: Any = cast("JsonObject", said).get("resourceSubscriptions") if isinstance(said, dict) else None
        if not isinstance(uris, list) or not self._due:
            return
        self._due -= 1
        self._honoured = frozenset(each for each in cast("list[Any]", uris) if isinstance(each, str))
        if self._settled.is_set():
            self._missed()
        self._settled.set()

    async def _keep(self, uris: frozenset[str], stream: anyio.CancelScope) -> None:
        """Hold the stream open, until another takes its place."""
        params, pause = listen({"resourceSubscriptions": sorted(uris)}), PAUSE
        with stream:
            while True:
                self._due += 1
                try:
                    await self._connection.request("subscriptions/listen", params)
                except JsonRpcError as refusal:
                    self._refusal = refusal
                    self._settled.set()
                    return
                except ServerError:
                    pause = min(2 * pause, LONGEST_PAUSE)
                await anyio.sleep(pause)
