"""The `web_search` tool with a pluggable backend; SearXNG is the one that ships."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Protocol, cast

import anyio
import orjson
from pydantic import Field

from toolcrib.egress import Egress
from toolcrib.egress.response import ConnectionClosed, NoConnection, NotHttp, Response
from toolcrib.errors import Broken, BusinessRuleError, Lost, Unavailable
from toolcrib.sdk import AnyTool, ToolContext, ToolResult, tool
from toolcrib.version import VERSION

if TYPE_CHECKING:
    from yarl import URL

    from toolcrib.egress.client import Client

# --- Searches the web through a search engine of the operator's choice ---

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
            message = (
                "web search is not set up; the operator gives the address of a SearXNG server as `search.url`"
            )
            raise BusinessRuleError("NOT_CONFIGURED", message)
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


# --- Asks a SearXNG server, or one that answers like it, over its JSON interface ---

_MAX_RESPONSE_BYTES = 1024 * 1024


class Searxng:
    """One server, over connections that are kept open."""

    def __init__(self, settings: SearchSettings) -> None:
        self._url = settings.url.rstrip("/") + "/search"
        self._seconds = settings.timeout
        self._opened: tuple[Client, URL] | None = None

    async def search(self, query: str, *, limit: int, language: str) -> Sequence[SearchHit]:
        """Return at most `limit` pages, the best first."""
        query_parameters = {"q": query, "format": "json", "language": language}
        try:
            with anyio.fail_after(self._seconds):
                client, url = self._open()
                response = await client.send("GET", url.with_query(query_parameters), {})
                try:
                    _refuse_status(response.status)
                    body = await _read(response)
                finally:
                    response.close()
        except TimeoutError as error:
            raise Lost("TIMEOUT", f"the search server did not answer within {self._seconds:g} s") from error
        except (NoConnection, ConnectionClosed, NotHttp) as error:
            raise Unavailable(
                "NETWORK_ERROR", "the search server cannot be reached; see `search.url`"
            ) from error
        return _hits(body)[:limit]

    async def aclose(self) -> None:
        """Close the connections; the next search opens new ones."""
        opened, self._opened = self._opened, None
        if opened is not None:
            await opened[0].close()

    def _open(self) -> "tuple[Client, URL]":
        if self._opened is None:
            # Imported with the first search: a start without one does not load an HTTP client.
            from yarl import URL

            from toolcrib.egress.client import Client

            headers = {"User-Agent": f"toolcrib/{VERSION}", "Accept": "application/json"}
            url, anywhere = URL(self._url), Egress(guarded=False)
            self._opened = Client(url, headers, anywhere, connect_seconds=self._seconds), url
        return self._opened


def _refuse_status(status: int) -> None:
    if status == 200:
        return
    advice = {
        403: "it forbids JSON; its own settings must list `json` under `search.formats`",
        429: "it has had too many searches from here",
    }.get(status, "`search.url` may be wrong")
    message = f"the search server answered with status {status}: {advice}"
    raise Unavailable("HTTP_ERROR", message, retryable=status >= 500 or status == 429)


async def _read(response: Response) -> bytes:
    body = bytearray()
    while piece := await response.read():
        body += piece
        if len(body) > _MAX_RESPONSE_BYTES:
            raise Broken("RESULT_TOO_LARGE", f"the search server sent more than {_MAX_RESPONSE_BYTES} bytes")
    return bytes(body)


def _hits(body: bytes) -> list[SearchHit]:
    try:
        listed = orjson.loads(body)["results"]
        rows = [cast("dict[str, Any]", row) for row in listed if isinstance(row, dict)]
    except (ValueError, LookupError, TypeError) as error:
        message = "the search server did not answer in SearXNG's JSON form; see `search.url`"
        raise Broken("CONTRACT_VIOLATION", message) from error
    return [hit for hit in map(_hit, rows) if hit.url.startswith(("http://", "https://"))]


def _hit(row: dict[str, Any]) -> SearchHit:
    return SearchHit(
        title=text_of(row.get("title")), url=text_of(row.get("url")), snippet=text_of(row.get("content"))
    )
