"""Resource lists of an MCP server, and subscriptions to resources."""

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, cast

import anyio
import orjson
from anyio.abc import TaskGroup

from toolcrib.catalog import PROMPTS_GET, RESOURCES_READ
from toolcrib.interfaces import SourceResources
from toolcrib.mcp.content import as_object
from toolcrib.mcp.jsonrpc import INVALID_PARAMS
from toolcrib.mcp.methods import LISTEN, RESOURCE_SUBSCRIPTIONS, SUBSCRIBE, UNSUBSCRIBE
from toolcrib.mcp.revisions import Era
from toolcrib.model import JsonObject
from toolcrib.sources.mcp.connection import Connection, JsonRpcError, McpSettings, ServerError
from toolcrib.sources.mcp.envelope import listen_params
from toolcrib.sources.mcp.handshake import (
    PROMPTS,
    RESOURCES,
    TEMPLATES,
    ListKind,
    ServerIntroduction,
    listing,
)
from toolcrib.sources.mcp.validation import forwarded_entries, prompts, resources, templates

# --- A server's resources, templates and prompts as last listed; a failure here does not affect its tools

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
        introduction: ServerIntroduction,
        previous: SourceResources | None,
    ) -> None:
        self._settings, self._connection, self._introduction = settings, connection, introduction
        self._digests: dict[str, bytes] = {}
        self._logged: dict[str, str] = {}
        self._left_out: dict[str, int] = {}
        # An operator's list of tools is an allowlist, also for the pseudo-tools of resources and prompts.
        reads, prompting = (
            not settings.tools or name in settings.tools for name in (RESOURCES_READ, PROMPTS_GET)
        )
        reads, prompting = reads and introduction.has_resources, prompting and introduction.has_prompts
        previous_lists = previous or SourceResources()
        self.materials = SourceResources(
            resources=previous_lists.resources if reads else (),
            templates=previous_lists.templates if reads else (),
            prompts=previous_lists.prompts if prompting else (),
            has_resources=reads,
            has_prompts=prompting,
            tells=reads and introduction.has_subscriptions,
            completes=introduction.has_completions,
        )

    def available(self, parts: Collection[Part] = PARTS) -> tuple[Part, ...]:
        """Return those parts that the server declares and the operator serves."""
        has = {"resources": self.materials.has_resources, "prompts": self.materials.has_prompts}
        return tuple(part for part in PARTS if part in parts and has[part])

    async def refresh(self, parts: Collection[Part]) -> tuple[Part, ...]:
        """List parts again; return those with a list that failed."""
        failed: list[Part] = []
        for part in self.available(parts):
            listed = [await self._list(kind) for kind in _LISTS[part]]
            if not all(listed):
                failed.append(part)
        return tuple(failed)

    async def _list(self, kind: ListKind) -> bool:
        try:
            listed = await listing(self._connection, self._introduction, kind)
        except ServerError as error:
            reason = self._settings.redact(str(error))
            self._log_once(kind, f"could not be asked for its {kind.name}: {reason}")
            return False
        if listed.truncation is not None:
            self._log_once(
                kind, f"has a list of {kind.name} that was not read to the end: {listed.truncation}"
            )
        if listed.digest != self._digests.get(kind.key):
            self._store(kind, listed.entries)
            self._digests[kind.key] = listed.digest
        return True

    def _store(self, kind: ListKind, raw: tuple[Any, ...]) -> None:
        if kind is PROMPTS:
            valid, invalid = prompts(self._settings.id, raw)
            self.materials = replace(self.materials, prompts=self._forwarded(valid))
        elif kind is RESOURCES:
            valid, invalid = resources(raw)
            self.materials = replace(self.materials, resources=self._forwarded(valid))
        else:
            valid, invalid = templates(raw)
            self.materials = replace(self.materials, templates=self._forwarded(valid))
        self._left_out[kind.key] = len(invalid)
        if invalid:
            more = "; …" if len(invalid) > _MAX_LOGGED_REASONS else ""
            reasons = "; ".join(each[:200] for each in invalid[:_MAX_LOGGED_REASONS]) + more
            self._log_once(kind, f"lists {len(invalid)} {kind.name} that cannot be used: {reasons}")

    def _forwarded(self, valid: Sequence[JsonObject]) -> tuple[JsonObject, ...]:
        return forwarded_entries(valid, self._settings.gateway, self._introduction.gateway)

    def _log_once(self, kind: ListKind, message: str) -> None:
        """Log a message for the operator, once until it changes."""
        if self._logged.get(kind.key) != message:
            self._logged[kind.key] = message
            log.warning("%s %s", self._settings.id, message)

    def details(self) -> Mapping[str, Any]:
        """Return the counts for operators; empty for a server with tools only."""
        listed, left_out = self.materials, sum(self._left_out.values())
        counts: dict[str, int] = {}
        if listed.has_resources:
            counts |= {"resources": len(listed.resources), "templates": len(listed.templates)}
        if listed.has_prompts:
            counts["prompts"] = len(listed.prompts)
        return {**counts, "withheld_materials": left_out} if counts else {}


# --- Resource subscriptions: legacy servers get one request per resource, modern ones one stream ---

RECONNECT_DELAY_SECONDS, MAX_RECONNECT_DELAY_SECONDS = 1.0, 30.0
"""Delay in seconds before a broken stream is opened again: the initial one, and the backoff's maximum."""

SubscriptionErrors = Mapping[str, ServerError]
"""By resource: the error of a subscription that the server refuses."""


class ServerSubscriptions:
    """The subscriptions of one connection. `updated` is called for a resource that may have changed."""

    def __init__(self, connection: Connection, era: Era, updated: Callable[[str], None]) -> None:
        self._updated = updated
        self._subscriber: _SharedStream | _RequestPerResource
        if era == "modern":
            self._subscriber = _SharedStream(connection, self._report_all)
        else:
            self._subscriber = _RequestPerResource(connection)
        self._lock = anyio.Lock()
        self._subscribed: frozenset[str] = frozenset()

    async def add(self, uri: str) -> None:
        """Add one subscription; return when the server has acknowledged it."""
        async with self._lock:
            if uri in self._subscribed:
                return
            errors = await self._subscriber.change(self._subscribed | {uri})
            if uri in errors:
                raise errors[uri]
            self._subscribed |= {uri}

    async def follow(self, uris: frozenset[str]) -> Mapping[str, ServerError]:
        """Subscribe to exactly these resources; new ones are reported, as they may have changed before."""
        async with self._lock:
            errors = await self._subscriber.change(uris)
            added = uris - self._subscribed - errors.keys()
            self._subscribed = uris - errors.keys()
        for uri in sorted(added):
            self._updated(uri)
        return errors

    async def run(self) -> None:
        """Run the subscriptions, until cancelled."""
        await self._subscriber.run()

    def handle_update(self, params: JsonObject) -> None:
        """Forward a notification that a resource has changed."""
        uri = params.get("uri")
        if isinstance(uri, str) and self._subscribed:
            self._updated(uri)

    def acknowledged(self, params: JsonObject) -> None:
        """Handle the server's acknowledgement of a stream."""
        self._subscriber.acknowledged(params)

    def _report_all(self) -> None:
        """Report every resource as changed: notifications may have been lost between two streams."""
        for uri in sorted(self._subscribed):
            self._updated(uri)


class _RequestPerResource:
    """Legacy era: one request per resource, each with its own response."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._subscribed: set[str] = set()

    async def change(self, uris: frozenset[str]) -> SubscriptionErrors:
        errors: dict[str, ServerError] = {}
        for uri in sorted(uris - self._subscribed):
            try:
                await self._connection.request(SUBSCRIBE, orjson.dumps({"uri": uri}))
                self._subscribed.add(uri)
            except JsonRpcError as refusal:
                errors[uri] = refusal
        for uri in sorted(self._subscribed - uris):
            self._subscribed.discard(uri)
            try:
                await self._connection.request(UNSUBSCRIBE, orjson.dumps({"uri": uri}))
            except JsonRpcError:
                continue  # it may still send notifications, which have no subscriber
        return errors

    async def run(self) -> None:
        await anyio.sleep_forever()

    def acknowledged(self, params: JsonObject) -> None:
        """Do nothing: every request has its own response."""


class _SharedStream:
    """Modern era: one stream for all resources; a change opens a new stream before it closes the old one."""

    def __init__(self, connection: Connection, report_all: Callable[[], None]) -> None:
        self._connection, self._report_all = connection, report_all
        self._running, self._settled = anyio.Event(), anyio.Event()
        self._tasks: TaskGroup | None = None
        self._stream = anyio.CancelScope()
        self._uris: frozenset[str] = frozenset()
        self._accepted: frozenset[str] = frozenset()
        self._refusal: JsonRpcError | None = None
        self._pending_acknowledgements = 0
        """Number of acknowledgements still expected: one per stream; repeated ones are ignored."""

    async def change(self, uris: frozenset[str]) -> SubscriptionErrors:
        if uris == self._uris:
            return {}
        await self._running.wait()
        stream = anyio.CancelScope()
        refusal = await self._open_stream(uris, stream) if uris else None
        if refusal is not None:
            return dict.fromkeys(uris - self._uris, refusal)
        previous, self._stream, self._uris = self._stream, stream, uris & self._accepted
        previous.cancel()
        return dict.fromkeys(
            uris - self._accepted, JsonRpcError(INVALID_PARAMS, "the server does not tell of it")
        )

    async def _open_stream(self, uris: frozenset[str], stream: anyio.CancelScope) -> JsonRpcError | None:
        """Open a stream; return None once the server acknowledges it, or the server's error."""
        self._settled, self._refusal = anyio.Event(), None
        cast("TaskGroup", self._tasks).start_soon(self._hold_open, uris, stream)
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

    def acknowledged(self, params: JsonObject) -> None:
        uris: Any = as_object(params.get("notifications")).get(RESOURCE_SUBSCRIPTIONS)
        if not isinstance(uris, list) or not self._pending_acknowledgements:
            return
        self._pending_acknowledgements -= 1
        self._accepted = frozenset(each for each in cast("list[Any]", uris) if isinstance(each, str))
        if self._settled.is_set():
            self._report_all()
        self._settled.set()

    async def _hold_open(self, uris: frozenset[str], stream: anyio.CancelScope) -> None:
        """Hold the stream open, with reconnects, until another one replaces it."""
        params, pause = listen_params({RESOURCE_SUBSCRIPTIONS: sorted(uris)}), RECONNECT_DELAY_SECONDS
        with stream:
            while True:
                self._pending_acknowledgements += 1
                try:
                    await self._connection.request(LISTEN, params)
                except JsonRpcError as refusal:
                    self._refusal = refusal
                    self._settled.set()
                    return
                except ServerError:
                    pause = min(2 * pause, MAX_RECONNECT_DELAY_SECONDS)
                await anyio.sleep(pause)
