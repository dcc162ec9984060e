"""The gateway's own tools: for agents that look for tools, and for those that operate the gateway."""

from toolcrib.admin import ServerAdmin
from toolcrib.builtin.admin_tools import AdminTools, server_tools
from toolcrib.builtin.gateway_tools import BuiltinSource, await_energy, current_call, search_tools
from toolcrib.gateway import Gateway
from toolcrib.gateway.energy import EnergyMeter
from toolcrib.identity import require_fresh, require_whole
from toolcrib.model import Actor

__all__ = ["AdminTools", "BuiltinSource", "builtin_source"]


def builtin_source(
    servers: ServerAdmin, gateway: Gateway, meter: EnergyMeter, admin_tools: AdminTools
) -> BuiltinSource:
    """Make the source `crib` over the operators' door to the servers and the callers' door to the tools."""

    def actor() -> Actor:
        call = current_call()
        require_fresh(call.caller)
        require_whole(call.caller)
        return admin_tools.reaches_console(call)

    def check_reader() -> None:
        require_whole(current_call().caller)

    return BuiltinSource(
        (search_tools(gateway), await_energy(meter), *server_tools(servers, actor, check_reader))
    )
