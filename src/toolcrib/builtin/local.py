"""Ready-made tools of the machine the gateway runs on: the clock, the speaker, and the way to the web."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from toolcrib.builtin.date_time import get_datetime
from toolcrib.builtin.volume import Speaker, control_volume
from toolcrib.builtin.web_search import SearchEngine, SearchSettings, search_web
from toolcrib.sdk import AnyTool

__all__ = ["LocalTools", "SearchEngine", "SearchSettings", "local_tools"]


@dataclass(frozen=True, slots=True)
class LocalTools:
    """The tools, and how to let go of what they hold on to."""

    tools: tuple[AnyTool, ...]
    aclose: Callable[[], Awaitable[None]]


def local_tools(search: SearchSettings | SearchEngine | None = None) -> LocalTools:
    """Make the tools. Without `search`, the web search says that it is not set up."""
    backend = _engine(search) if isinstance(search, SearchSettings) else search

    async def aclose() -> None:
        if backend is not None:
            await backend.aclose()

    return LocalTools((get_datetime, control_volume(Speaker()), search_web(backend)), aclose)


def _engine(settings: SearchSettings) -> SearchEngine:
    # Who searches nothing does not pay for loading an HTTP client.
    from toolcrib.builtin.web_search import Searxng

    return Searxng(settings)
