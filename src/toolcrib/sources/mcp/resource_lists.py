"""Resource lists of an MCP server, and subscriptions to resources."""

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, Protocol, cast

import anyio
import orjson
from anyio.abc import TaskGroup

from toolcrib.catalog import PROMPTS_GET, RESOURCES_READ
from toolcrib.interfaces import SourceResources
from toolcrib.mcp.jsonrpc import INVALID_PARAMS
from toolcrib.mcp.methods import LISTEN, RESOURCE_SUBSCRIPTIONS, SUBSCRIBE, UNSUBSCRIBE
from toolcrib.mcp.revisions import Era
from toolcrib.model import JsonObject
from toolcrib.sources.mcp.connection import Connection, JsonRpcError, McpSettings, ServerError
from toolcrib.sources.mcp.envelope import listen
from toolcrib.sources.mcp.handshake import (
    PROMPTS,
    RESOURCES,
    TEMPLATES,
    ListKind,
    ServerIntroduction,
    listing,
)
from toolcrib.sources.mcp.validation import passed_on, prompts, resources, templates

# --- A server's resources, templates and prompts as last listed; a failure here does not affect its tools
# ---

log = logging.getLogger(__name__)

Part = Literal["resources", "prompts"]
PARTS: tuple[Part, ...] = ("resources", "prompts")

_LISTS: Mapping[Part, tuple[ListKind, ...]] = {"resources": (RESOURCES, TEMPLATES), "prompts": (PROMPTS,)}
_MAX_LOGGED_REASONS = 3
"""Maximum reasons in one log message."""


class ResourceLists:
    """The lists of one connected server; `before` holds those of the previous run."""

    def __init__(
        self,
        settings: McpSettings,
        connection: Connection,
        greeting: ServerIntroduction,
        before: SourceResources | None,
    ) -> None:
        self._settings, self._connection, self._greeting = settings, connection, greeting
        self._seals: dict[str, bytes] = {}
        self._said: dict[str, str] = {}
        self._left_out: dict[str, int] = {}
        # An operator's list of tools is an allowlist, also for the pseudo-tools of resources and prompts.
        reads, prompting = (
            not settings.tools or door in settings.tools for door in (RESOURCES_READ, PROMPTS_GET)
        )
        reads, prompting = reads and greeting.has_resources, prompting and greeting.has_prompts
        known = before or SourceResources()
        self.materials = SourceResources(
            resources=known.resources if reads else (),
            templates=known.templates if reads else (),
            prompts=known.prompts if prompting else (),
            has_resources=reads,
            has_prompts=prompting,
            tells=reads and greeting.subscribes,
            completes=greeting.completes,
        )

    def there(self, parts: Collection[Part] = PARTS) -> tuple[Part, ...]:
        """Return those parts that the server declares and the operator serves."""
        has = {"resources": self.materials.has_resources, "prompts": self.materials.has_prompts}
        return tuple(part for part in PARTS if part in parts and has[part])

    async def refresh(self, parts: Collection[Part]) -> tuple[Part, ...]:
        """List parts again; return those with a list that failed."""
        failed: list[Part] = []
        for part in self.there(parts):
            listed = [await self._list(kind) for kind in _LISTS[part]]
            if not all(listed):
                failed.append(part)
        return tuple(failed)

    async def _list(self, kind: ListKind) -> bool:
        try:
            found = await listing(self._connection, self._greeting, kind)
        except ServerError as fault:
            self._say(kind, f"could not be asked for its {kind.name}: {self._settings.redact(str(fault))}")
            return False
        if found.cut is not None:
            self._say(kind, f"has a list of {kind.name} that was not read to the end: {found.cut}")
        if found.seal != self._seals.get(kind.key):
            self._take(kind, found.entries)
            self._seals[kind.key] = found.seal
        return True

    def _take(self, kind: ListKind, raw: tuple[Any, ...]) -> None:
        if kind is PROMPTS:
            fit, unfit = prompts(self._settings.id, raw)
            self.materials = replace(self.materials, prompts=self._passed_on(fit))
        elif kind is RESOURCES:
            fit, unfit = resources(raw)
            self.materials = replace(self.materials, resources=self._passed_on(fit))
        else:
            fit, unfit = templates(raw)
            self.materials = replace(self.materials, templates=self._passed_on(fit))
        self._left_out[kind.key] = len(unfit)
        if unfit:
            more = "; …" if len(unfit) > _MAX_LOGGED_REASONS else ""
            reasons = "; ".join(each[:200] for each in unfit[:_MAX_LOGGED_REASONS]) + more
            self._say(kind, f"lists {len(unfit)} {kind.name} that cannot be used: {reasons}")

    def _passed_on(self, fit: Sequence[JsonObject]) -> tuple[JsonObject, ...]:
        return passed_on(fit, self._settings.gateway, self._greeting.gateway)

    def _say(self, kind: ListKind, said: str) -> None:
        """Log a message for the operator, once until it changes."""
        if self._said.get(kind.key) != said:
            self._said[kind.key] = said
            log.warning("%s %s", self._settings.id, said)

    def details(self) -> Mapping[str, Any]:
        """Return the counts for operators; empty for a server with tools only."""
        held, left_out = self.materials, sum(self._left_out.values())
        counts = {
            **(
                {"resources": len(held.resources), "templates": len(held.templates)}
                if held.has_resources
                else {}
            ),
            **({"prompts": len(held.prompts)} if held.has_prompts else {}),
        }
        return {**counts, **({"withheld_materials": left_out} if counts else {})}


# --- Resource subscriptions: legacy servers get one request per resource, modern ones one stream ---

RECONNECT_DELAY_SECONDS, MAX_RECONNECT_DELAY_SECONDS = 1.0, 30.0
"""Delay in seconds before a broken stream is opened again: the initial one, and the backoff's maximum."""

Faults = Mapping[str, ServerError]
"""By resource: the error of a subscription that the server refuses."""


class _Way(Protocol):
    async def change(self, uris: frozenset[str]) -> Faults:
        """Subscribe to exactly these resources."""
        ...

    async def run(self) -> None:
        """Run the background work, until cancelled."""
        ...

    def agreed(self, params: JsonObject) -> None:
        """Handle the server's acknowledgement."""
        ...


class ServerSubscriptions:
    """The subscriptions of one connection. `updated` is called for a resource that may have changed."""

    def __init__(self, connection: Connection, era: Era, updated: Callable[[str], None]) -> None:
        self._updated = updated
        self._way: _Way = _OneStream(connection, self._missed) if era == "modern" else _OneByOne(connection)
        self._lock = anyio.Lock()
        self._now: frozenset[str] = frozenset()

    async def add(self, uri: str) -> None:
        """Add one subscription; return when the server has acknowledged it."""
        async with self._lock:
            if uri in self._now:
                return
            faults = await self._way.change(self._now | {uri})
            if uri in faults:
                raise faults[uri]
            self._now |= {uri}

    async def follow(self, uris: frozenset[str]) -> Mapping[str, ServerError]:
        """Subscribe to exactly these resources; new ones are reported, as they may have changed before."""
        async with self._lock:
            faults = await self._way.change(uris)
            again = uris - self._now - faults.keys()
            self._now = uris - faults.keys()
        for uri in sorted(again):
            self._updated(uri)
        return faults

    async def run(self) -> None:
        """Run the subscriptions, until cancelled."""
        await self._way.run()

    def heard(self, params: JsonObject) -> None:
        """Forward a notification that a resource has changed."""
        uri = params.get("uri")
        if isinstance(uri, str) and self._now:
            self._updated(uri)

    def agreed(self, params: JsonObject) -> None:
        """Handle the server's acknowledgement of a stream."""
        self._way.agreed(params)

    def _missed(self) -> None:
        """Report every resource as changed: notifications may have been lost between two streams."""
        for uri in sorted(self._now):
            self._updated(uri)


class _OneByOne:
    """Legacy era: one request per resource, each with its own response."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._now: set[str] = set()

    async def change(self, uris: frozenset[str]) -> Faults:
        faults: dict[str, ServerError] = {}
        for uri in sorted(uris - self._now):
            try:
                await self._connection.request(SUBSCRIBE, orjson.dumps({"uri": uri}))
                self._now.add(uri)
            except JsonRpcError as refusal:
                faults[uri] = refusal
        for uri in sorted(self._now - uris):
            self._now.discard(uri)
            try:
                await self._connection.request(UNSUBSCRIBE, orjson.dumps({"uri": uri}))
            except JsonRpcError:
                continue  # it may still send notifications, which have no subscriber
        return faults

    async def run(self) -> None:
        await anyio.sleep_forever()

    def agreed(self, params: JsonObject) -> None:
        """Do nothing: every request has its own response."""


class _OneStream:
    """Modern era: one stream for all resources; a change opens a new stream before it closes the old one."""

    def __init__(self, connection: Connection, missed: Callable[[], None]) -> None:
        self._connection, self._missed = connection, missed
        self._running, self._settled = anyio.Event(), anyio.Event()
        self._tasks: TaskGroup | None = None
        self._stream = anyio.CancelScope()
        self._uris: frozenset[str] = frozenset()
        self._honoured: frozenset[str] = frozenset()
        self._refusal: JsonRpcError | None = None
        self._due = 0
        """Number of acknowledgements still expected: one per stream; repeated ones are ignored."""

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
        return dict.fromkeys(
            uris - self._honoured, JsonRpcError(INVALID_PARAMS, "the server does not tell of it")
        )

    async def _opened(self, uris: frozenset[str], stream: anyio.CancelScope) -> JsonRpcError | None:
        """Open a stream; return None once the server acknowledges it, or the server's error."""
        self._settled, self._refusal = anyio.Event(), None
        cast("TaskGroup", self._tasks).start_soon(self._keep, uris, stream)
        try:
            await self._settled.wait()
        except BaseException:  # the caller has left, so the previous stream stays
            stream.cancel()
            raise
        return self._refusal

    async def run(self) -> None:
        async with anyio.create_task_group() as self._tasks:
            self._running.set()
            await anyio.sleep_forever()

    def agreed(self, params: JsonObject) -> None:
        said: Any = params.get("notifications")
        uris: Any = cast("JsonObject", said).get(RESOURCE_SUBSCRIPTIONS) if isinstance(said, dict) else None
        if not isinstance(uris, list) or not self._due:
            return
        self._due -= 1
        self._honoured = frozenset(each for each in cast("list[Any]", uris) if isinstance(each, str))
        if self._settled.is_set():
            self._missed()
        self._settled.set()

    async def _keep(self, uris: frozenset[str], stream: anyio.CancelScope) -> None:
        """Hold the stream open, with reconnects, until another one replaces it."""
        params, pause = listen({RESOURCE_SUBSCRIPTIONS: sorted(uris)}), RECONNECT_DELAY_SECONDS
        with stream:
            while True:
                self._due += 1
                try:
                    await self._connection.request(LISTEN, params)
                except JsonRpcError as refusal:
                    self._refusal = refusal
                    self._settled.set()
                    return
                except ServerError:
                    pause = min(2 * pause, MAX_RECONNECT_DELAY_SECONDS)
                await anyio.sleep(pause)
