"""Posts JSON to URLs registered by others: a connection pool per origin, bounded responses, no redirects."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from toolcrib.egress.connect import AddressBlocked, Resolver
from toolcrib.egress.egress import AddressRules, Egress
from toolcrib.egress.response import NoConnection, Response
from toolcrib.model import AddressGiver
from toolcrib.version import VERSION

if TYPE_CHECKING:
    from yarl import URL

    from toolcrib.egress.client import Client

CONNECT_SECONDS = 3.0
"""Timeout in seconds from DNS resolution to the end of the TLS handshake."""
MAX_ERROR_BYTES = 64 << 10
"""Bytes read of the body of an error response; the rest is discarded."""
MAX_ORIGINS = 256
"""Limit of pooled origins (least recently used are evicted); origins in use may exceed it."""

_JSON = "application/json"
_HEADERS = {"Accept": _JSON, "Accept-Encoding": "identity", "User-Agent": f"toolcrib/{VERSION}"}
_MAX_CACHED_URLS = 4_096
_CLOSED_TEXT = "the client is closed"


class UrlForbidden(NoConnection):
    """The egress policy refuses the URL. Nothing was sent, not even a SYN packet."""


class PostResponseTooLarge(Exception):
    """The request was sent, but its response exceeds the limit; the rest of it was not read."""


@dataclass(frozen=True, slots=True)
class PostResponse:
    """A response with its whole body; of an error response, only the first bytes."""

    status: int
    content_type: str
    """Lower case, without parameters; empty if there is no such header."""
    body: bytes


class _PooledOrigin:
    """An origin with its connection pool; `users` is the number of its requests in flight."""

    __slots__ = ("client", "users")

    def __init__(self, client: "Client") -> None:
        self.client, self.users = client, 0


class JsonPoster:
    """Posts JSON. It has a timeout for connecting only; callers set the timeout of the request."""

    def __init__(
        self,
        rules: AddressRules,
        *,
        connect_seconds: float = CONNECT_SECONDS,
        max_origins: int = MAX_ORIGINS,
        resolver: Resolver | None = None,
    ) -> None:
        self._rules, self._connect_seconds, self._max_origins, self._resolver = (
            rules,
            connect_seconds,
            max_origins,
            resolver,
        )
        self._checked_url = lru_cache(maxsize=_MAX_CACHED_URLS)(self._check_url)
        self._origins: dict[tuple[str, str, Egress], _PooledOrigin] = {}
        """LRU order: the least recently used is first."""
        self._closed = False

    async def send(
        self,
        url: str,
        body: bytes,
        headers: Mapping[str, str],
        *,
        most_bytes: int,
        giver: AddressGiver | None = "other",
    ) -> PostResponse:
        """Post a JSON body and read the response; redirects are not followed.

        The rules for the giver of the URL apply to it and to each address it resolves to.
        Raises NoConnection (UrlForbidden if the egress policy refuses) if nothing was sent, ConnectionClosed
        or NotHttp if something was, PostResponseTooLarge, and ValueError for headers invalid in HTTP.
        """
        egress = self._rules.egress(giver)
        target = self._checked_url(url, egress)
        async with self._client(target, egress) as client:
            try:
                response = await client.send("POST", target, headers, body)
            except NoConnection as error:
                if isinstance(error.__cause__, AddressBlocked):
                    raise UrlForbidden(str(error)) from error
                raise
            try:
                return await _read_response(response, most_bytes)
            finally:
                response.close()

    async def close(self) -> None:
        """Close every connection; pending requests raise ConnectionClosed."""
        self._closed = True
        while self._origins:
            await self._origins.popitem()[1].client.close()

    def _check_url(self, url: str, egress: Egress) -> "URL":
        # Lazy imports throughout: loading is slow, and many gateways have no apps.
        from yarl import URL

        reason = egress.refusal(url)
        if reason is not None:
            raise UrlForbidden(f"the URL is refused: {reason}")
        return URL(url)

    @asynccontextmanager
    async def _client(self, url: "URL", egress: Egress) -> AsyncGenerator["Client"]:
        # The key has the credentials of the URL, since a client sends them over all its connections. It has
        # the egress too: a connection allowed for one giver must not serve another who may not open it.
        key = url.scheme, url.raw_authority, egress
        origin = self._origins.pop(key, None) or self._new_origin(url, egress)
        self._origins[key] = origin
        origin.users += 1
        try:
            yield origin.client
        finally:
            origin.users -= 1
            await self._evict()

    def _new_origin(self, url: "URL", egress: Egress) -> _PooledOrigin:
        from toolcrib.egress.client import Client

        if self._closed:
            raise NoConnection(_CLOSED_TEXT)
        client = Client(
            url,
            _HEADERS,
            egress,
            content_type=_JSON,
            connect_seconds=self._connect_seconds,
            resolver=self._resolver,
        )
        return _PooledOrigin(client)

    async def _evict(self) -> None:
        """Evict the least recently used idle origin if there are too many."""
        if len(self._origins) <= self._max_origins:
            return
        for key, origin in self._origins.items():
            if not origin.users:
                del self._origins[key]
                await origin.client.close()
                return


async def _read_response(response: Response, most_bytes: int) -> PostResponse:
    is_success = response.status < 300
    limit = most_bytes if is_success else min(most_bytes, MAX_ERROR_BYTES)
    if is_success and (response.content_length or 0) > limit:
        raise _too_large(limit)
    parts: list[bytes] = []
    size = 0
    while size <= limit and (data := await response.read()):
        parts.append(data)
        size += len(data)
    if is_success and size > limit:
        raise _too_large(limit)
    return PostResponse(response.status, response.content_type, b"".join(parts)[:limit])


def _too_large(limit: int) -> PostResponseTooLarge:
    return PostResponseTooLarge(f"the response has more than {limit:,} bytes")
