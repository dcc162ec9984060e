"""An MCP server at a URL as a source: not a process of the gateway, so it is probed and reconnected."""

from toolcrib.egress.probe import Probe
from toolcrib.egress.response import NoConnection
from toolcrib.interfaces import ServerUnreachable
from toolcrib.sources.mcp.connection import Dial
from toolcrib.sources.mcp.connection_quota import ConnectionQuota
from toolcrib.sources.mcp.errors import ConnectionLost, HttpStatusError
from toolcrib.sources.mcp.server_settings import McpSettings
from toolcrib.sources.mcp.source import McpSource

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
