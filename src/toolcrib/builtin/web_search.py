"""Searches the web through a search engine of the operator's choice."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Protocol

from pydantic import Field

from toolcrib.errors import BusinessRuleError
from toolcrib.sdk import AnyTool, ToolContext, ToolResult, tool

_EXAMPLES = [
    {
        "description": "Find out about the release of Python 3.14",
        "params": {"query": "python 3.14 release date", "limit": 3},
        "expectedResult": {
            "query": "python 3.14 release date",
            "results": [{"title": "Python 3.14", "url": "https://www.python.org/", "snippet": "…"}],
        },
    }
]


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """Where web search goes."""

    url: str
    """Address of the server, without `/search`."""
    timeout: float = 10.0
    """Seconds one search may take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchHit:
    """One page that was found."""

    title: str
    url: str
    snippet: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchHits:
    """What was found, the best first."""

    query: str
    results: list[SearchHit]


class SearchEngine(Protocol):
    """A search engine."""

    async def search(self, query: str, *, limit: int, language: str) -> Sequence[SearchHit]:
        """Return at most `limit` pages, the best first."""
        ...

    async def aclose(self) -> None:
        """Let go of connections."""
        ...


def search_web(backend: SearchEngine | None) -> AnyTool:
    """Make the tool over a search engine; without one it says what to set."""

    @tool(
        name="search-web",
        title="Web search",
        category="query",
        response_time="slow",
        tags=["web", "search", "local"],
        examples=_EXAMPLES,
    )
    async def search(
        ctx: ToolContext,
        query: Annotated[
            str, Field(description="What to look for, in a few words.", min_length=1, max_length=256)
        ],
        limit: Annotated[int, Field(description="How many results at most.", ge=1, le=20)] = 5,
    ) -> ToolResult[SearchHits]:
        """Search the web and return the best pages.

        Use it for news, facts that change, or anything not known from the conversation. Returns a list of
        results, the best first, each with title, address and a short text of the page.
        """
        if backend is None:
            said = (
                "web search is not set up; the operator gives the address of a SearXNG server as `search.url`"
            )
            raise BusinessRuleError("NOT_CONFIGURED", said)
        hits = list(await backend.search(query, limit=limit, language=ctx.language))
        return ToolResult(data=SearchHits(query=query, results=hits), message=_spoken(hits))

    return search


def _spoken(hits: Sequence[SearchHit]) -> str:
    if not hits:
        return "I found nothing about that."
    number = "one page" if len(hits) == 1 else f"{len(hits)} pages"
    return f"I found {number}. The first is: {hits[0].title}."


def text_of(value: object) -> str:
    """Text from outside, on one line; anything else is empty."""
    return " ".join(value.split()) if isinstance(value, str) else ""
