"""One MCP server as a source: one task connects, negotiates, lists and watches; any task may call."""

from collections.abc import Mapping, Sequence
from math import inf
from typing import Any, cast

import anyio

from toolcrib.errors import ToolcribError, Unavailable
from toolcrib.formats.mirrored_headers import mirrored
from toolcrib.interfaces import Offer, ServerMisbehaved, SourceLink
from toolcrib.model import Call, Family, Json, JsonObject, Result
from toolcrib.sources.mcp.call_results import error_of, raw_of, result_of
from toolcrib.sources.mcp.connected_server import ConnectedServer
from toolcrib.sources.mcp.connection import Connection, Dial, dropped
from toolcrib.sources.mcp.connection_quota import ConnectionQuota
from toolcrib.sources.mcp.connection_tasks import ConnectionTasks, background
from toolcrib.sources.mcp.discovery import first_page
from toolcrib.sources.mcp.envelope import Prepared, introduction
from toolcrib.sources.mcp.errors import ConnectionLost, HttpStatusError, NotSent, ServerError
from toolcrib.sources.mcp.gateway_loops import OwnGateway
from toolcrib.sources.mcp.handshake import Handshake
from toolcrib.sources.mcp.list_watch import PROBE, ServerWatch
from toolcrib.sources.mcp.owner_connections import OwnerConnections
from toolcrib.sources.mcp.relayed_requests import relayed
from toolcrib.sources.mcp.request_callbacks import RequestCallbacks
from toolcrib.sources.mcp.server_settings import McpSettings
from toolcrib.sources.mcp.tool_validation import offer

_WORDS = 200
"""Maximum characters of a stderr line in an error message."""
_SHARE = 0.8
"""Share of a call's timeout for getting a connection; the rest is for reporting that there is none."""
_LEAST = "debug"
"""Log level for session clients that set none: the lowest, so every message is sent."""
_NOTHING: JsonObject = {}


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
        return f" (it wrote last: {tail[-1].strip()[:_WORDS]})" if tail else ""

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
        known = relayed(channel.capabilities, self._relays)
        # Without an owner, no caller can reply to a server request before the response.
        if ready.era == "modern" or not known or not channel.owner:
            return await self._sent(life.connection, ready, call, known)
        within = tool.timeout or self.timeout
        if call.deadline is not None:
            within = min(within, max(0.0, call.deadline - anyio.current_time()))
        async with lanes.taken(channel, known, _SHARE * within, caller=call.caller) as connection:
            return await self._sent(connection, ready, call, known)

    async def _sent(
        self, connection: Connection, ready: Prepared, call: Call, known: JsonObject = _NOTHING
    ) -> Result:
        tool, channel, ear, said = call.tool, call.channel, None, None
        if channel is not None or call.report is not None:
            ear = RequestCallbacks(call.report, channel, self._settings.redact)
        if channel is not None and ready.era == "modern":
            # A session client without a level leaves it to the server; a modern server needs one to log.
            said = introduction(known, channel.level or (None if channel.alone else _LEAST))
        params = ready.params(call, said)
        headers = mirrored(ready.mirrors, call.arguments) if ready.mirrors else None
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
            with anyio.fail_after(PROBE):
                await first_page(life.connection, life.greeting)
        except ServerError as fault:
            raise self._plain(fault) from fault
        except TimeoutError:
            raise TimeoutError(f"{self.id} did not answer within {PROBE:g} s") from None
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
