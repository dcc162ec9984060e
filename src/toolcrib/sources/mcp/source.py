"""An MCP server as a source of tools."""

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import Any, cast

import anyio

from toolcrib.catalog import (
    PROMPTS_COMPLETE,
    PROMPTS_GET,
    PSEUDO_TOOL_NAMES,
    RESOURCES_COMPLETE,
    RESOURCES_READ,
    RESOURCES_SUBSCRIBE,
    ExaminedTool,
    examine,
)
from toolcrib.cooperative import CooperativeWork
from toolcrib.egress.client import Probe
from toolcrib.egress.response import NoConnection
from toolcrib.errors import Refused, ToolcribError, Unavailable
from toolcrib.interfaces import Offer, ServerMisbehaved, ServerUnreachable, SourceLink
from toolcrib.mcp.headers import mirrored_headers
from toolcrib.mcp.methods import COMPLETE, GET_PROMPT, READ_RESOURCE
from toolcrib.mcp.revisions import relayed_capabilities
from toolcrib.model import Call, Family, Json, JsonObject, Result, Tool
from toolcrib.sources.mcp.call_results import error_of, raw_of, result_of
from toolcrib.sources.mcp.connection import (
    Connection,
    ConnectionLost,
    ConnectionTasks,
    Dial,
    HttpStatusError,
    McpSettings,
    NotSent,
    RequestCallbacks,
    ServerError,
    background,
    dropped,
)
from toolcrib.sources.mcp.envelope import Prepared, caller_meta, prepared, prepared_raw
from toolcrib.sources.mcp.handshake import DiscoveredList, Handshake, ServerIntroduction, first_page, listing
from toolcrib.sources.mcp.list_watch import PROBE_TIMEOUT_SECONDS, ServerWatch
from toolcrib.sources.mcp.owner_connections import ConnectionQuota, OwnerConnections
from toolcrib.sources.mcp.resource_lists import PARTS, Part, ResourceLists, ServerSubscriptions
from toolcrib.sources.mcp.validation import OwnGateway, offer

# --- One run of a server after its handshake: the last offer, and the prepared requests for its tools ---

log = logging.getLogger(__name__)

RESOURCE_WAIT_SECONDS = 1.0
"""Maximum seconds that a server's first offer of tools waits for its resources and prompts."""

_METHODS = {
    RESOURCES_READ: READ_RESOURCE,
    RESOURCES_COMPLETE: COMPLETE,
    PROMPTS_GET: GET_PROMPT,
    PROMPTS_COMPLETE: COMPLETE,
}


class ConnectedServer:
    """A connected server and its last lists.

    `before` is the previous run: its resources and prompts stay in use until they are listed again.
    """

    def __init__(
        self,
        settings: McpSettings,
        connection: Connection,
        introduction: ServerIntroduction,
        link: SourceLink,
        previous: "ConnectedServer | None" = None,
    ) -> None:
        self.connection, self.introduction = connection, introduction
        self.calls: dict[str, Prepared] = {}
        """Prepared requests by canonical name: of tools, and of pseudo-tools for resources and prompts."""
        self.subscriptions = ServerSubscriptions(connection, introduction.era, link.updated)
        self.unread: tuple[Part, ...] = ()
        """Lists that could not be read yet."""
        self._settings, self._link = settings, link
        materials = previous and previous.resource_lists.materials
        self.resource_lists = ResourceLists(settings, connection, introduction, materials)
        self._pseudo_requests = {
            f"{settings.id}:{local}": prepared_raw(
                self._pseudo_tool(local), method, introduction.era, settings.gateway
            )
            for local, method in _METHODS.items()
        }
        self._offer: Offer | None = None
        self._examined: dict[str, ExaminedTool] = {}
        self._digest: bytes | None = None
        self._truncation: str | None = None
        self._discovered, self._withheld = 0, 0
        self._missing: tuple[str, ...] = ()
        self._lock = anyio.Lock()

    async def refresh(self) -> None:
        """List the tools; publish a new offer if the list has changed.

        A lock serializes the calls: of two concurrent lists, the older one could overwrite the newer one.
        """
        async with self._lock:
            listed = await listing(self.connection, self.introduction)
            if listed.digest == self._digest:
                return
            new_offer, calls = await self._validated(listed)
            if self._offer is None:
                await self._list_resources()
            # Without an await in between: the catalog judges a definition before any part of it is used.
            self._digest, self._offer, self.calls = listed.digest, new_offer, calls
            self._publish(new_offer)

    async def refresh_resources(self, parts: Collection[Part]) -> Collection[Part]:
        """List resources and prompts, and publish changes; return the parts that could not be listed."""
        previous = self.resource_lists.materials
        try:
            return await self.resource_lists.refresh(parts)
        finally:
            if self._offer is not None and self.resource_lists.materials is not previous:
                self._publish(self._offer)

    async def _list_resources(self) -> None:
        """List resources and prompts for the first offer, so that there is only one; bounded in time."""
        self.unread = self.resource_lists.available()
        left = anyio.current_effective_deadline() - anyio.current_time()
        with anyio.move_on_after(min(RESOURCE_WAIT_SECONDS, left / 2)):
            self.unread = await self.resource_lists.refresh(PARTS)

    def _publish(self, new_offer: Offer) -> None:
        self._link.up(replace(new_offer, materials=self.resource_lists.materials))

    async def _validated(self, listed: DiscoveredList) -> tuple[Offer, dict[str, Prepared]]:
        server, gateway = self.introduction, self._settings.gateway
        modern, version = server.era == "modern", server.version
        validated = offer(
            self._settings, listed.entries, version=version, modern=modern, gateway=server.gateway
        )
        self._discovered, self._withheld = len(listed.entries), len(validated.withheld)
        self._report(validated, listed.truncation)
        calls: dict[str, Prepared] = dict(self._pseudo_requests)
        examined: dict[str, ExaminedTool] = {}
        cooperative = CooperativeWork()
        for tool in validated.tools:
            calls[tool.name] = prepared(tool, server.era, gateway)
            examined[tool.name] = examine(tool, self._examined.get(tool.name))
            await cooperative.rest()
        self._examined = examined
        return replace(validated, examined=examined), calls

    def _report(self, validated: Offer, truncation: str | None) -> None:
        """Log what the operator should know of a list, each finding only when it is new."""
        source = self._settings.id
        listed = {each.name for each in (*validated.tools, *validated.withheld)}
        configured = [name for name in self._settings.tools if name not in PSEUDO_TOOL_NAMES]
        missing = tuple(name for name in configured if f"{source}:{name}" not in listed)
        for name in missing:
            if name not in self._missing:
                log.warning("%s has no tool %r, although the config names it", source, name)
        if truncation is not None and truncation != self._truncation:
            log.warning("%s: its list of tools was not read to the end: %s", source, truncation)
        self._missing, self._truncation = missing, truncation

    # --- requests other than tools/call ---

    async def call_unprepared(self, call: Call) -> Result:
        """Run the subscription pseudo-tool, the only one without a prepared request; refuse unknown tools."""
        tool = call.tool
        if tool.local != RESOURCES_SUBSCRIBE:
            raise Refused("TOOL_NOT_FOUND", f"{tool.source} does not offer {tool.local} any more")
        try:
            await self.subscriptions.add(call.arguments["uri"])
        except ServerError as fault:
            raise error_of(fault, tool, self._settings.redact) from fault
        return Result(data={})

    async def follow(self, uris: frozenset[str]) -> Mapping[str, ToolcribError]:
        """Subscribe to exactly these resources; return an error for each that the server refuses."""
        tool = self._pseudo_tool(RESOURCES_SUBSCRIBE)
        faults = await self.subscriptions.follow(uris)
        return {uri: error_of(fault, tool, self._settings.redact) for uri, fault in faults.items()}

    def _pseudo_tool(self, local: str) -> Tool:
        source = self._settings.id
        return Tool(name=f"{source}:{local}", source=source, family="mcp", idempotent=True)

    def details(self) -> Mapping[str, Any]:
        """Return the status fields for operators."""
        return {
            "era": self.introduction.era,
            "revision": self.introduction.revision,
            "server_name": self.introduction.name,
            "server_version": self.introduction.version,
            "discovered_tools": self._discovered,
            "withheld_tools": self._withheld,
            "missing_tools": self._missing,
            **self.resource_lists.details(),
        }


# --- One MCP server as a source: one task connects, negotiates, lists and watches; any task may call ---

_MAX_STDERR_CHARS = 200
"""Maximum characters of a stderr line in an error message."""
_CONNECTION_TIMEOUT_SHARE = 0.8
"""Share of a call's timeout for getting a connection; the rest is for reporting that there is none."""
_LOWEST_LOG_LEVEL = "debug"
"""For session clients that set none: every message is sent."""
_NO_CAPABILITIES: JsonObject = {}


class McpSource:
    """A source for the tools of one MCP server. `dial` opens a connection over its transport."""

    mortal = True
    family: Family = "mcp"

    def __init__(self, settings: McpSettings, dial: Dial, quota: ConnectionQuota | None = None) -> None:
        self.id, self.timeout = settings.id, settings.timeout
        self._settings, self._dial = settings, dial
        self._relays = settings.relays
        self._owner_connections: OwnerConnections | None = None
        self._quota = ConnectionQuota(settings.max_owner_connections) if quota is None else quota
        self._handshake = Handshake("legacy" if settings.transport == "sse" else None)
        self._watch = ServerWatch(settings)
        self._server: ConnectedServer | None = None
        self._last_server: ConnectedServer | None = None
        self._connection: Connection | None = None
        self._phase = ""
        self.is_own_gateway = False
        """Whether the server of the last handshake is this gateway itself."""
        self._dropped = 0
        """Number of messages dropped on connections that have ended."""
        self._is_connected = False

    def offer_of(self, entries: Sequence[Json]) -> Offer:
        """Validate stored definitions, as if the server had just listed them."""
        return offer(self._settings, entries)

    async def run(self, link: SourceLink) -> None:
        """Connect, negotiate, list, then watch the server until it is lost."""
        limit = self._settings.start_timeout
        self._watch, self._phase = ServerWatch(self._settings), "start"
        # One scope for all, without a deadline once the server is up: what `dial` opens must close inside.
        with anyio.CancelScope(deadline=anyio.current_time() + limit) as start:
            try:
                await self._run_connection(link, start)
            except (ServerError, ConnectionError, ExceptionGroup) as error:
                raise self._unwrapped(error) from error
        if start.cancelled_caught:
            raise TimeoutError(f"the server did not {self._phase} within {limit:g} s")

    async def _run_connection(self, link: SourceLink, start: anyio.CancelScope) -> None:
        async with self._dial(self._watch.handle_notification) as connection:
            self._connection, self._phase, self._is_connected = connection, "answer our greeting", True
            try:
                introduction = await self._handshake.negotiate(connection)
                self.is_own_gateway = introduction.gateway == self._settings.gateway != ""
                if self.is_own_gateway:
                    raise OwnGateway(self.id)
                self._phase = "list its tools"
                server = self._server = self._last_server = ConnectedServer(
                    self._settings, connection, introduction, link, self._last_server
                )
                async with background() as jobs:
                    await self._watch_until_lost(server, link, jobs, start)
            finally:
                self._dropped += dropped(connection)
                self._is_connected = False

    async def _watch_until_lost(
        self, server: ConnectedServer, link: SourceLink, jobs: ConnectionTasks, start: anyio.CancelScope
    ) -> None:
        """List the tools, then watch the server until it is lost."""
        owned = self._owner_connections = OwnerConnections(self._settings, self._dial, jobs, self._quota)
        try:
            await server.refresh()
            start.deadline = inf
            await self._watch.run(server.connection, server.introduction, server)
        except ExceptionGroup as group:
            link.down(str(self._unwrapped(group)))
            raise
        finally:
            self._dropped += owned.dropped
            self._server = self._owner_connections = None

    def _dropped_messages(self) -> int:
        """Return the number of messages dropped since this source was created."""
        now = dropped(self._connection) if self._is_connected else 0
        owned = self._owner_connections
        return self._dropped + now + (0 if owned is None else owned.dropped)

    def _unwrapped(self, error: Exception) -> Exception:
        """Unwrap exception groups to one error, with a message that is redacted and may be shown."""
        while isinstance(error, ExceptionGroup):
            error = cast("ExceptionGroup[Exception]", error).exceptions[0]
        if isinstance(error, ServerError | ConnectionError):
            return self._error(error, self._settings.redact(str(error)) + self._stderr_suffix())
        return error

    def _error(self, error: Exception, message: str) -> ConnectionError:
        """Return the exception that a run fails with."""
        return ServerMisbehaved(message) if isinstance(error, ServerMisbehaved) else ConnectionError(message)

    def _stderr_suffix(self) -> str:
        """Return a program's last line of stderr, often the reason why it ended; its transport redacts it."""
        if self._connection is None or self._phase == "start":
            return ""
        tail = self._connection.details().get("stderr_tail", ())
        return f" (it wrote last: {tail[-1].strip()[:_MAX_STDERR_CHARS]})" if tail else ""

    async def call(self, call: Call) -> Result:
        """Send the call over the shared connection, or over a dedicated one of its caller."""
        server, owner_connections = self._server, self._owner_connections
        if server is None or owner_connections is None:
            raise Unavailable("SOURCE_DOWN", f"{self.id} is not running")
        tool, channel = call.tool, call.channel
        request = server.calls.get(tool.name)
        if request is None:
            return await server.call_unprepared(call)
        if channel is None:
            return await self._send(server.connection, request, call)
        relayed = relayed_capabilities(channel.capabilities, self._relays)
        # Without an owner, no caller can reply to a server request before the response.
        if request.era == "modern" or not relayed or not channel.owner:
            return await self._send(server.connection, request, call, relayed)
        timeout = tool.timeout or self.timeout
        if call.deadline is not None:
            timeout = min(timeout, max(0.0, call.deadline - anyio.current_time()))
        async with owner_connections.lease(
            channel, relayed, _CONNECTION_TIMEOUT_SHARE * timeout, caller=call.caller
        ) as connection:
            return await self._send(connection, request, call, relayed)

    async def _send(
        self, connection: Connection, request: Prepared, call: Call, relayed: JsonObject = _NO_CAPABILITIES
    ) -> Result:
        tool, channel, callbacks, meta = call.tool, call.channel, None, None
        if channel is not None or call.report is not None:
            callbacks = RequestCallbacks(call.report, channel, self._settings.redact)
        if channel is not None and request.era == "modern":
            # A session client without a level leaves it to the server; a modern server needs one to log.
            meta = caller_meta(relayed, channel.level or (None if channel.alone else _LOWEST_LOG_LEVEL))
        params = request.params(call, meta)
        headers = mirrored_headers(request.mirrors, call.arguments) if request.mirrors else None
        try:
            result = await connection.request(
                request.method,
                params,
                name=request.subject(call) if request.raw else request.local,
                headers=headers,
                callbacks=callbacks,
            )
        except ServerError as fault:
            if isinstance(fault, NotSent | ConnectionLost | HttpStatusError):
                self._watch.probe_now()
            raise error_of(fault, tool, self._settings.redact) from fault
        read = raw_of if request.raw else result_of
        return read(result, tool, None if channel is None else relayed)

    async def follow(self, uris: frozenset[str]) -> Mapping[str, ToolcribError]:
        """Subscribe to exactly these resources; return an error for each that the server refuses."""
        server = self._server
        if server is None:
            raise Unavailable("SOURCE_DOWN", f"{self.id} is not running")
        try:
            return await server.follow(uris)
        except ServerError as fault:
            raise self._unwrapped(fault) from fault

    def release(self, owner: str) -> None:
        """Close the dedicated connections of an owner that has disconnected."""
        if self._owner_connections is not None:
            self._owner_connections.release(owner)

    async def check(self) -> None:
        """Probe the server, then list its tools and offer them."""
        server = self._server
        if server is None:
            raise Unavailable("SOURCE_DOWN", f"{self.id} is not running")
        try:
            with anyio.fail_after(PROBE_TIMEOUT_SECONDS):
                await first_page(server.connection, server.introduction)
        except ServerError as fault:
            raise self._unwrapped(fault) from fault
        except TimeoutError:
            raise TimeoutError(f"{self.id} did not answer within {PROBE_TIMEOUT_SECONDS:g} s") from None
        await self._refreshed(server)

    async def _refreshed(self, server: ConnectedServer) -> None:
        """List all tools again, so that a test of the server shows what is served from then on."""
        limit = self._settings.start_timeout
        try:
            with anyio.fail_after(limit):
                await server.refresh()
        except ServerError as fault:
            raise self._unwrapped(fault) from fault
        except TimeoutError:
            raise TimeoutError(f"{self.id} did not list its tools within {limit:g} s") from None

    def details(self) -> Mapping[str, Any]:
        """Return the status fields for operators: transport, server info, connection and process."""
        dropped_messages = self._dropped_messages()
        return {
            "transport": self._settings.transport,
            **({"is_own_gateway": True} if self.is_own_gateway else {}),
            **({"lanes": len(self._owner_connections)} if self._owner_connections else {}),
            **(self._last_server.details() if self._last_server else {}),
            **(self._connection.details() if self._connection else {}),
            **({"dropped_messages": dropped_messages} if dropped_messages else {}),
        }


# --- An MCP server at a URL as a source: not a process of the gateway, so it is probed and reconnected ---

_AWAY_STATUSES = frozenset({502, 503, 504})
"""Statuses of a proxy with an unavailable backend."""


class RemoteMcpSource(McpSource):
    """A source for a server at a URL. `probe` tests whether it accepts connections."""

    def __init__(
        self, settings: McpSettings, dial: Dial, probe: Probe, connections: ConnectionQuota | None = None
    ) -> None:
        super().__init__(settings, dial, connections)
        self._probe = probe

    async def reach(self, within: float) -> None:
        """Raise ServerUnreachable unless the server accepts a connection within this many seconds."""
        try:
            await self._probe.connect(within)
        except NoConnection as error:
            raise ServerUnreachable(f"the server cannot be reached: {error}") from error

    def _error(self, error: Exception, message: str) -> ConnectionError:
        # A proxy accepts connections for an unavailable server, then closes them or returns such a status.
        away = isinstance(error, ConnectionLost) or (
            isinstance(error, HttpStatusError) and error.status in _AWAY_STATUSES
        )
        return ServerUnreachable(message) if away else super()._error(error, message)
