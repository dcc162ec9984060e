"""One MCP server on the web as a source: it is no process of ours, so it is probed and reconnected to."""

from toolcrib.egress.probe import Probe
from toolcrib.egress.response import NoConnection
from toolcrib.interfaces import ServerUnreachable
from toolcrib.sources.mcp.connection import Dial
from toolcrib.sources.mcp.connection_quota import ConnectionQuota
from toolcrib.sources.mcp.errors import ConnectionLost, HttpStatusError
from toolcrib.sources.mcp.server_settings import McpSettings
from toolcrib.sources.mcp.source import McpSource

_AWAY_STATUSES = frozenset({502, 503, 504})
"""What a proxy answers while the server behind it is away."""


class RemoteMcpSource(McpSource):
    """A source whose server has a URL. `probe` finds out whether it accepts connections."""

    def __init__(
        self, settings: McpSettings, dial: Dial, probe: Probe, connections: ConnectionQuota | None = None
    ) -> None:
        super().__init__(settings, dial, connections)
        self._probe = probe

    async def reach(self, within: float) -> None:
        """Raise ServerUnreachable unless the server accepts a connection in so many seconds."""
        try:
            await self._probe.connect(within)
        except NoConnection as error:
            raise ServerUnreachable(f"the server cannot be reached: {error}") from error

    def _error(self, error: Exception, message: str) -> ConnectionError:
        # A proxy accepts connections for a server that is away, and hangs up or says so.
        away = isinstance(error, ConnectionLost) or (
            isinstance(error, HttpStatusError) and error.status in _AWAY_STATUSES
        )
        return ServerUnreachable(message) if away else super()._error(error, message)
