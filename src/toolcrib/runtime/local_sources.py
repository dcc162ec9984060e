"""In-process sources: the operator's functions and the tools that ship with Toolcrib."""

import logging
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from toolcrib.builtin.local import SearchSettings, local_tools
from toolcrib.config import Document
from toolcrib.interfaces import Source
from toolcrib.sdk import AnyTool
from toolcrib.sources.functions import Functions, load_module, source_id

log = logging.getLogger(__name__)


def ids(sources: Sequence[Source]) -> tuple[str, ...]:
    """Return the ids of some sources."""
    return tuple(source.id for source in sources)


def own_sources(document: Document, tools: Sequence[AnyTool]) -> tuple[Source, ...]:
    """Return the operator's functions. They precede all other sources, so they win name conflicts."""
    folder = document.source.parent.resolve() if document.source is not None else Path.cwd()
    share = document.limits.share
    given = (Functions("tools", tools, share=share),) if tools else ()
    named = (
        Functions(source_id(each), load_module(each, folder=folder), share=share)
        for each in document.functions
    )
    return (*given, *named)


def our_sources(document: Document, folder: Path, *, demo: bool) -> tuple[Source, ...]:
    """Return the sources that ship with Toolcrib; they come after all sources of the operator."""
    search = document.search
    local = local_tools(SearchSettings(search.url, search.timeout_ms / 1000) if search.url else None)
    ours = Functions("local", local.tools, close=local.aclose)
    return (ours, *_demonstration(folder)) if demo else (ours,)


def _demonstration(folder: Path) -> tuple[Source, ...]:
    """Return the sources that `--demo` adds; the flashcards create a database in this folder on first use."""
    tools = Functions("demo", load_module("toolcrib.demo.tools"))
    if find_spec("fsrs") is None:
        log.warning("the demonstration leaves its flashcards out: install toolcrib[demo] to have them")
        return (tools,)
    from toolcrib.demo.flashcards import flashcards

    return tools, Functions("flashcards", flashcards(folder / "flashcards.db").get_all())
