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
from toolcrib.egress.http_connection import NoConnection
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
from toolcrib.sources.mcp.envelope import Prepared, introduction, prepared, prepared_raw
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
        greeting: ServerIntroduction,
        link: SourceLink,
        before: "ConnectedServer | None" = None,
    ) -> None:
        self.connection, self.greeting = connection, greeting
        self.calls: dict[str, Prepared] = {}
        """Prepared requests by canonical name: of tools, and of pseudo-tools for resources and prompts."""
        self.following = ServerSubscriptions(connection, greeting.era, link.updated)
        self.behind: tuple[Part, ...] = ()
        """Lists that could not be read yet."""
        self._settings, self._link = settings, link
        self.besides = ResourceLists(settings, connection, greeting, before and before.besides.materials)
        self._doors = {
            f"{settings.id}:{local}": prepared_raw(self._door(local), method, greeting.era, settings.gateway)
            for local, method in _METHODS.items()
        }
        self._offer: Offer | None = None
        self._examined: dict[str, ExaminedTool] = {}
        self._seal: bytes | None = None
        self._cut: str | None = None
        self._discovered, self._withheld = 0, 0
        self._missing: tuple[str, ...] = ()
        self._turn = anyio.Lock()

    async def refresh(self) -> None:
        """List the tools; publish a new offer if the list has changed.

        A lock serializes the calls: of two concurrent lists, the older one could overwrite the newer one.
        """
        async with self._turn:
            found = await listing(self.connection, self.greeting)
            if found.seal == self._seal:
                return
            offered, calls = await self._taken(found)
            if self._offer is None:
                await self._list_besides()
            # Without an await in between: the catalog judges a definition before any part of it is used.
            self._seal, self._offer, self.calls = found.seal, offered, calls
            self._show(offered)

    async def refresh_besides(self, parts: Collection[Part]) -> Collection[Part]:
        """List resources and prompts, and publish changes; return the parts that could not be listed."""
        before = self.besides.materials
        try:
            return await self.besides.refresh(parts)
        finally:
            if self._offer is not None and self.besides.materials is not before:
                self._show(self._offer)

    async def _list_besides(self) -> None:
        """List resources and prompts for the first offer, so that there is only one; bounded in time."""
        self.behind = self.besides.there()
        left = anyio.current_effective_deadline() - anyio.current_time()
        with anyio.move_on_after(min(RESOURCE_WAIT_SECONDS, left / 2)):
            self.behind = await self.besides.refresh(PARTS)

    def _show(self, offered: Offer) -> None:
        self._link.up(replace(offered, materials=self.besides.materials))

    async def _taken(self, found: DiscoveredList) -> tuple[Offer, dict[str, Prepared]]:
        era, raw = self.greeting.era, found.entries
        greeting, own = self.greeting, self._settings.gateway
        judged = offer(
            self._settings, raw, version=greeting.version, modern=era == "modern", gateway=greeting.gateway
        )
        self._discovered, self._withheld = len(raw), len(judged.withheld)
        self._report(judged, found.cut)
        calls: dict[str, Prepared] = dict(self._doors)
        examined: dict[str, ExaminedTool] = {}
        turns = CooperativeWork()
        for tool in judged.tools:
            calls[tool.name] = prepared(tool, era, own)
            examined[tool.name] = examine(tool, self._examined.get(tool.name))
            await turns.rest()
        self._examined = examined
        return replace(judged, examined=examined), calls

    def _report(self, found: Offer, cut: str | None) -> None:
        """Log what the operator should know of a list, each finding only when it is new."""
        source = self._settings.id
        listed = {each.name for each in (*found.tools, *found.withheld)}
        wanted = [name for name in self._settings.tools if name not in PSEUDO_TOOL_NAMES]
        missing = tuple(name for name in wanted if f"{source}:{name}" not in listed)
        for name in missing:
            if name not in self._missing:
                log.warning("%s has no tool %r, although the config names it", source, name)
        if cut is not None and cut != self._cut:
            log.warning("%s: its list of tools was not read to the end: %s", source, cut)
        self._missing, self._cut = missing, cut

    # --- requests other than tools/call ---

    async def aside(self, call: Call) -> Result:
        """Run the subscription pseudo-tool, the only one without a prepared request; refuse unknown tools."""
        tool = call.tool
        if tool.local != RESOURCES_SUBSCRIBE:
            raise Refused("TOOL_NOT_FOUND", f"{tool.source} does not offer {tool.local} any more")
        try:
            await self.following.add(call.arguments["uri"])
        except ServerError as fault:
            raise error_of(fault, tool, self._settings.redact) from fault
        return Result(data={})

    async def follow(self, uris: frozenset[str]) -> Mapping[str, ToolcribError]:
        """Subscribe to exactly these resources; return an error for each that the server refuses."""
        door = self._door(RESOURCES_SUBSCRIBE)
        faults = await self.following.follow(uris)
        return {uri: error_of(fault, door, self._settings.redact) for uri, fault in faults.items()}

    def _door(self, local: str) -> Tool:
        source = self._settings.id
        return Tool(name=f"{source}:{local}", source=source, family="mcp", idempotent=True)

    def details(self) -> Mapping[str, Any]:
        """Return the status fields for operators."""
        return {
            "era": self.greeting.era,
            "revision": self.greeting.revision,
            "server_name": self.greeting.name,
            "server_version": self.greeting.version,
            "discovered_tools": self._discovered,
            "withheld_tools": self._withheld,
            "missing_tools": self._missing,
            **self.besides.details(),
        }


# --- One MCP server as a source: one task connects, negotiates, lists and watches; any task may call ---

_MAX_STDERR_CHARS = 200
"""Maximum characters of a stderr line in an error message."""
_CONNECTION_TIMEOUT_SHARE = 0.8
"""Share of a call's timeout for getting a connection; the rest is for reporting that there is none."""
_LOWEST_LOG_LEVEL = "debug"
"""Log level for session clients that set none: the lowest, so every message is sent."""
_NO_CAPABILITIES: JsonObject = {}


class McpSource:
    """A source for the tools of one MCP server. `dial` opens a connection over its transport."""

    mortal = True
    family: Family = "mcp"

    def __init__(self, settings: McpSettings, dial: Dial, copies: ConnectionQuota | None = None) -> None:
        self.id, self.timeout = settings.id, settings.timeout
        self._settings, self._dial = settings, dial
        self._relays = settings.relays
        self._lanes: OwnerConnections | None = None
        self._copies = ConnectionQuota(settings.most_lanes) if copies is None else copies
        self._greeter = Handshake("legacy" if settings.transport == "sse" else None)
        self._watch = ServerWatch(settings)
        self._life: ConnectedServer | None = None
        self._last: ConnectedServer | None = None
        self._connection: Connection | None = None
        self._doing = ""
        self.is_own_gateway = False
        """Whether the server of the last handshake is this gateway itself."""
        self._dropped = 0
        """Number of messages dropped on connections that have ended."""
        self._talking = False

    def offer_of(self, raw: Sequence[Json]) -> Offer:
        """Validate stored definitions, as if the server had just listed them."""
        return offer(self._settings, raw)

    async def run(self, link: SourceLink) -> None:
        """Connect, negotiate, list, then watch the server until it is lost."""
        limit = self._settings.start_timeout
        self._watch, self._doing = ServerWatch(self._settings), "start"
        # One scope for all, without a deadline once the server is up: what `dial` opens must close inside.
        with anyio.CancelScope(deadline=anyio.current_time() + limit) as start:
            try:
                await self._connected(link, start)
            except (ServerError, ConnectionError, ExceptionGroup) as error:
                raise self._plain(error) from error
        if start.cancelled_caught:
            raise TimeoutError(f"the server did not {self._doing} within {limit:g} s")

    async def _connected(self, link: SourceLink, start: anyio.CancelScope) -> None:
        async with self._dial(self._watch.heard) as connection:
            self._connection, self._doing, self._talking = connection, "answer our greeting", True
            try:
                greeting = await self._greeter.greet(connection)
                self.is_own_gateway = greeting.gateway == self._settings.gateway != ""
                if self.is_own_gateway:
                    raise OwnGateway(self.id)
                self._doing = "list its tools"
                life = self._life = self._last = ConnectedServer(
                    self._settings, connection, greeting, link, self._last
                )
                async with background() as jobs:
                    await self._kept(life, link, jobs, start)
            finally:
                self._dropped += dropped(connection)
                self._talking = False

    async def _kept(
        self, life: ConnectedServer, link: SourceLink, jobs: ConnectionTasks, start: anyio.CancelScope
    ) -> None:
        """List the tools, then watch the server until it is lost."""
        lanes = self._lanes = OwnerConnections(self._settings, self._dial, jobs, self._copies)
        try:
            await life.refresh()
            start.deadline = inf
            await self._watch.keep(life.connection, life.greeting, life)
        except ExceptionGroup as group:
            link.down(str(self._plain(group)))
            raise
        finally:
            self._dropped += lanes.dropped
            self._life = self._lanes = None

    def _all_dropped(self) -> int:
        """Return the number of messages dropped since this source was created."""
        now = dropped(self._connection) if self._talking else 0
        return self._dropped + now + (0 if self._lanes is None else self._lanes.dropped)

    def _plain(self, error: Exception) -> Exception:
        """Unwrap exception groups to one error, with a message that is redacted and may be shown."""
        while isinstance(error, ExceptionGroup):
            error = cast("ExceptionGroup[Exception]", error).exceptions[0]
        if isinstance(error, ServerError | ConnectionError):
            return self._error(error, self._settings.redact(str(error)) + self._last_words())
        return error

    def _error(self, error: Exception, message: str) -> ConnectionError:
        """Return the exception that a run fails with."""
        return ServerMisbehaved(message) if isinstance(error, ServerMisbehaved) else ConnectionError(message)

    def _last_words(self) -> str:
        """Return a program's last line of stderr, often the reason why it ended; its transport redacts it."""
        if self._connection is None or self._doing == "start":
            return ""
        tail = self._connection.details().get("stderr_tail", ())
        return f" (it wrote last: {tail[-1].strip()[:_MAX_STDERR_CHARS]})" if tail else ""

    async def call(self, call: Call) -> Result:
        """Send the call over the shared connection, or over a dedicated one of its caller."""
        life, lanes = self._life, self._lanes
        if life is None or lanes is None:
            raise Unavailable("SOURCE_DOWN", f"{self.id} is not running")
        tool, channel = call.tool, call.channel
        ready = life.calls.get(tool.name)
        if ready is None:
            return await life.aside(call)
        if channel is None:
            return await self._sent(life.connection, ready, call)
        known = relayed_capabilities(channel.capabilities, self._relays)
        # Without an owner, no caller can reply to a server request before the response.
        if ready.era == "modern" or not known or not channel.owner:
            return await self._sent(life.connection, ready, call, known)
        within = tool.timeout or self.timeout
        if call.deadline is not None:
            within = min(within, max(0.0, call.deadline - anyio.current_time()))
        async with lanes.taken(
            channel, known, _CONNECTION_TIMEOUT_SHARE * within, caller=call.caller
        ) as connection:
            return await self._sent(connection, ready, call, known)

    async def _sent(
        self, connection: Connection, ready: Prepared, call: Call, known: JsonObject = _NO_CAPABILITIES
    ) -> Result:
        tool, channel, ear, said = call.tool, call.channel, None, None
        if channel is not None or call.report is not None:
            ear = RequestCallbacks(call.report, channel, self._settings.redact)
        if channel is not None and ready.era == "modern":
            # A session client without a level leaves it to the server; a modern server needs one to log.
            said = introduction(known, channel.level or (None if channel.alone else _LOWEST_LOG_LEVEL))
        params = ready.params(call, said)
        headers = mirrored_headers(ready.mirrors, call.arguments) if ready.mirrors else None
        try:
            answer = await connection.request(
                ready.method,
                params,
                name=ready.about(call) if ready.raw else ready.local,
                headers=headers,
                ear=ear,
            )
        except ServerError as fault:
            if isinstance(fault, NotSent | ConnectionLost | HttpStatusError):
                self._watch.doubt()
            raise error_of(fault, tool, self._settings.redact) from fault
        read = raw_of if ready.raw else result_of
        return read(answer, tool, None if channel is None else known)

    async def follow(self, uris: frozenset[str]) -> Mapping[str, ToolcribError]:
        """Subscribe to exactly these resources; return an error for each that the server refuses."""
        life = self._life
        if life is None:
            raise Unavailable("SOURCE_DOWN", f"{self.id} is not running")
        try:
            return await life.follow(uris)
        except ServerError as fault:
            raise self._plain(fault) from fault

    def release(self, owner: str) -> None:
        """Close the dedicated connections of an owner that has disconnected."""
        if self._lanes is not None:
            self._lanes.release(owner)

    async def check(self) -> None:
        """Probe the server, then list its tools and offer them."""
        life = self._life
        if life is None:
            raise Unavailable("SOURCE_DOWN", f"{self.id} is not running")
        try:
            with anyio.fail_after(PROBE_TIMEOUT_SECONDS):
                await first_page(life.connection, life.greeting)
        except ServerError as fault:
            raise self._plain(fault) from fault
        except TimeoutError:
            raise TimeoutError(f"{self.id} did not answer within {PROBE_TIMEOUT_SECONDS:g} s") from None
        await self._refreshed(life)

    async def _refreshed(self, life: ConnectedServer) -> None:
        """List all tools again, so that a test of the server shows what is served from then on."""
        limit = self._settings.start_timeout
        try:
            with anyio.fail_after(limit):
                await life.refresh()
        except ServerError as fault:
            raise self._plain(fault) from fault
        except TimeoutError:
            raise TimeoutError(f"{self.id} did not list its tools within {limit:g} s") from None

    def details(self) -> Mapping[str, Any]:
        """Return the status fields for operators: transport, server info, connection and process."""
        lost = self._all_dropped()
        return {
            "transport": self._settings.transport,
            **({"is_own_gateway": True} if self.is_own_gateway else {}),
            **({"lanes": len(self._lanes)} if self._lanes is not None and len(self._lanes) else {}),
            **(self._last.details() if self._last else {}),
            **(self._connection.details() if self._connection else {}),
            **({"dropped_messages": lost} if lost else {}),
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
