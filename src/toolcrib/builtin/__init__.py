"""Built-in tools: search and administration of the gateway, and tools of its machine (clock, volume, web)."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from toolcrib.admin import ServerAdmin
from toolcrib.builtin.admin_tools import AdminTools, server_tools
from toolcrib.builtin.date_time import get_datetime
from toolcrib.builtin.gateway_tools import BuiltinSource, await_energy, current_call, search_tools
from toolcrib.builtin.volume import Speaker, control_volume
from toolcrib.builtin.web_search import SearchEngine, SearchSettings, Searxng, search_web
from toolcrib.gateway import Gateway
from toolcrib.gateway.energy import EnergyMeter
from toolcrib.identity import require_fresh, require_whole
from toolcrib.model import Actor
from toolcrib.sdk import AnyTool

__all__ = [
    "AdminTools",
    "BuiltinSource",
    "LocalTools",
    "SearchEngine",
    "SearchSettings",
    "builtin_source",
    "local_tools",
]


def builtin_source(
    servers: ServerAdmin, gateway: Gateway, meter: EnergyMeter, admin_tools: AdminTools
) -> BuiltinSource:
    """Create the source `crib` from the admin API of the servers and the gateway of the callers."""

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


@dataclass(frozen=True, slots=True)
class LocalTools:
    """Tools of the gateway's machine, and a function that closes their connections."""

    tools: tuple[AnyTool, ...]
    aclose: Callable[[], Awaitable[None]]


def local_tools(search: SearchSettings | SearchEngine | None = None) -> LocalTools:
    """Create the tools. Without `search`, calls of the web search fail with NOT_CONFIGURED."""
    engine = Searxng(search) if isinstance(search, SearchSettings) else search

    async def aclose() -> None:
        if engine is not None:
            await engine.aclose()

    return LocalTools((get_datetime, control_volume(Speaker()), search_web(engine)), aclose)
