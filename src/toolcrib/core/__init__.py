"""The gateway's own tools: for agents that look for tools, and for those that operate the gateway."""

from toolcrib.console import Servers
from toolcrib.core.calling import Core
from toolcrib.core.energy import await_energy
from toolcrib.core.searching import search_tools
from toolcrib.core.servers import server_tools
from toolcrib.gateway import Gateway
from toolcrib.gateway.energy import Meter

__all__ = ["Core", "core_source"]


def core_source(servers: Servers, gateway: Gateway, meter: Meter) -> Core:
    """Make the source `crib` over the operators' door to the servers and the callers' door to the tools."""
    return Core((search_tools(gateway), await_energy(meter), *server_tools(servers)))
