"""Asks a SearXNG server, or one that answers like it, over its JSON interface."""

from collections.abc import Sequence
from typing import Any, cast

import anyio
import orjson
from yarl import URL

from toolcrib.builtin.web_search import SearchHit, SearchSettings, text_of
from toolcrib.egress import Egress
from toolcrib.egress.client import Client
from toolcrib.egress.response import ConnectionClosed, NoConnection, NotHttp, Response
from toolcrib.errors import Broken, Lost, Unavailable
from toolcrib.version import VERSION

_MOST_BYTES = 1024 * 1024


class Searxng:
    """One server, over connections that are kept open."""

    def __init__(self, settings: SearchSettings) -> None:
        self._url = URL(settings.url.rstrip("/") + "/search")
        self._seconds = settings.timeout
        self._client: Client | None = None

    async def search(self, query: str, *, limit: int, language: str) -> Sequence[SearchHit]:
        """Return at most `limit` pages, the best first."""
        asked = {"q": query, "format": "json", "language": language}
        try:
            with anyio.fail_after(self._seconds):
                response = await self._open().send("GET", self._url.with_query(asked), {})
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
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    def _open(self) -> Client:
        if self._client is None:
            headers = {"User-Agent": f"toolcrib/{VERSION}", "Accept": "application/json"}
            anywhere = Egress(guarded=False)
            self._client = Client(self._url, headers, anywhere, connect_seconds=self._seconds)
        return self._client


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
        if len(body) > _MOST_BYTES:
            raise Broken("RESULT_TOO_LARGE", f"the search server sent more than {_MOST_BYTES} bytes")
    return bytes(body)


def _hits(body: bytes) -> list[SearchHit]:
    try:
        listed = orjson.loads(body)["results"]
        rows = [cast("dict[str, Any]", row) for row in listed if isinstance(row, dict)]
    except (ValueError, LookupError, TypeError) as error:
        said = "the search server did not answer in SearXNG's JSON form; see `search.url`"
        raise Broken("CONTRACT_VIOLATION", said) from error
    return [hit for hit in map(_hit, rows) if hit.url.startswith(("http://", "https://"))]


def _hit(row: dict[str, Any]) -> SearchHit:
    return SearchHit(
        title=text_of(row.get("title")), url=text_of(row.get("url")), snippet=text_of(row.get("content"))
    )
