"""Posts to URLs that others have registered: warm connections per place, bounded answers, no redirects."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from toolcrib.egress.egress import Egress
from toolcrib.egress.lookup import AddressBlocked, Look
from toolcrib.egress.response import NoConnection, Response
from toolcrib.egress.rules import AddressRules
from toolcrib.model import AddressGiver
from toolcrib.version import VERSION

if TYPE_CHECKING:
    from yarl import URL

    from toolcrib.egress.client import Client

CONNECT_SECONDS = 3.0
"""From looking the name up to the end of the TLS handshake."""
ERROR_BYTES = 64 << 10
"""How much of the body of anything but a success is read; the rest is left."""
MOST_PLACES = 256
"""To how many places connections are kept; places that are in use come on top."""

_JSON = "application/json"
_OURS = {"Accept": _JSON, "Accept-Encoding": "identity", "User-Agent": f"toolcrib/{VERSION}"}
_MOST_URLS = 4_096
_CLOSED = "no more is sent"


class UrlForbidden(NoConnection):
    """The URL may not be used, by the rule for addresses. Nothing was sent, not even a first packet."""


class PostResponseTooLarge(Exception):
    """The request was sent, and its answer is over the limit; the rest of it was not read."""


@dataclass(frozen=True, slots=True)
class PostResponse:
    """An answer, read whole; of anything but a success only the first bytes."""

    status: int
    content_type: str
    """Lower case, without parameters; empty where it is unsaid."""
    body: bytes


class _Place:
    """A server and its connections; `users` are the requests under way there."""

    __slots__ = ("client", "users")

    def __init__(self, client: "Client") -> None:
        self.client, self.users = client, 0


class JsonPoster:
    """Sends JSON, and takes no time of its own into account but that of connecting."""

    def __init__(
        self,
        rules: AddressRules,
        *,
        connect_seconds: float = CONNECT_SECONDS,
        most_places: int = MOST_PLACES,
        look: Look | None = None,
    ) -> None:
        self._rules, self._seconds, self._most, self._look = rules, connect_seconds, most_places, look
        self._judged = lru_cache(maxsize=_MOST_URLS)(self._judge)
        self._places: dict[tuple[str, str, Egress], _Place] = {}
        """The one used longest ago stands first."""
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
        """Post a body of JSON and read the answer; a redirect is an answer like any other.

        The URL and each address it leads to are judged by who gave it.
        Raises NoConnection (Forbidden where the rule for addresses is why) if nothing was sent, HungUp and
        NotHttp if something was, TooLarge, and ValueError for headers that HTTP does not allow.
        """
        egress = self._rules.egress(giver)
        target = self._judged(url, egress)
        async with self._client(target, egress) as client:
            try:
                response = await client.send("POST", target, headers, body)
            except NoConnection as error:
                if isinstance(error.__cause__, AddressBlocked):
                    raise UrlForbidden(str(error)) from error
                raise
            try:
                return await _read(response, most_bytes)
            finally:
                response.close()

    async def close(self) -> None:
        """Close every connection; whoever still waits for something hears of it."""
        self._closed = True
        while self._places:
            await self._places.popitem()[1].client.close()

    def _judge(self, url: str, egress: Egress) -> "URL":
        # Late, as in all of this: it takes a while to load, and many a gateway has no apps.
        from yarl import URL

        reason = egress.refusal(url)
        if reason is not None:
            raise UrlForbidden(f"the URL is refused: {reason}")
        return URL(url)

    @asynccontextmanager
    async def _client(self, url: "URL", egress: Egress) -> AsyncGenerator["Client"]:
        # With its credentials, where the URL holds some: they are sent over all connections of a client.
        # And by its rule: a connection that one giver may open must not serve another who may not.
        key = url.scheme, url.raw_authority, egress
        place = self._places.pop(key, None) or self._opened(url, egress)
        self._places[key] = place
        place.users += 1
        try:
            yield place.client
        finally:
            place.users -= 1
            await self._make_room()

    def _opened(self, url: "URL", egress: Egress) -> _Place:
        from toolcrib.egress.client import Client

        if self._closed:
            raise NoConnection(_CLOSED)
        client = Client(
            url,
            _OURS,
            egress,
            content_type=_JSON,
            connect_seconds=self._seconds,
            look=self._look,
        )
        return _Place(client)

    async def _make_room(self) -> None:
        """Let go of the place that was used longest ago, where there are too many."""
        if len(self._places) <= self._most:
            return
        for key, place in self._places.items():
            if not place.users:
                del self._places[key]
                await place.client.close()
                return


async def _read(response: Response, most_bytes: int) -> PostResponse:
    good = response.status < 300
    most = most_bytes if good else min(most_bytes, ERROR_BYTES)
    if good and (response.content_length or 0) > most:
        raise _too_large(most)
    parts: list[bytes] = []
    size = 0
    while size <= most and (data := await response.read()):
        parts.append(data)
        size += len(data)
    if good and size > most:
        raise _too_large(most)
    return PostResponse(response.status, response.content_type, b"".join(parts)[:most])


def _too_large(most: int) -> PostResponseTooLarge:
    return PostResponseTooLarge(f"the answer has more than {most:,} bytes")
