"""The gateway's own tools: for agents that look for tools, and for those that operate the gateway."""

from toolcrib.console import Servers
from toolcrib.core.calling import Core
from toolcrib.core.searching import search_tools
from toolcrib.core.servers import server_tools
from toolcrib.gateway import Gateway

__all__ = ["Core", "core_source"]


def core_source(servers: Servers, gateway: Gateway) -> Core:
    """Make the source `crib` over the operators' door to the servers and the callers' door to the tools."""
    return Core((search_tools(gateway), *server_tools(servers)))
