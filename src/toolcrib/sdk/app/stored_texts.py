"""Persistent key-value storage of an app per user, at the gateway."""

from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote

import anyio
import orjson

from toolcrib.model import JsonObject
from toolcrib.sdk.app.outgoing_messages import AppCredentials, SessionAddress

if TYPE_CHECKING:
    from toolcrib.egress.client import Client

LONGEST_VALUE = 100_000
"""Maximum characters of one value."""
_SECONDS = 10.0
_MOST_BYTES = 4 << 20
_PATH = "/api/sdk/simple-storage/"


class StorageError(Exception):
    """A storage request failed; the message has the reason."""


class Storage:
    """Not cached: every call is a request, so that several processes of an app share the data."""

    def __init__(self, place: SessionAddress, badge: AppCredentials) -> None:
        self._address = f"{place.gateway}{_PATH}{quote(place.user, safe='')}"
        self._authority = f"Bearer {badge.package}:{badge.key}"
        self._client: Client | None = None

    async def get(self, key: str) -> str | None:
        """Return the value of a key, or None."""
        return (await self.all()).get(key)

    async def all(self) -> dict[str, str]:
        """Return all values of this user."""
        data = (await self._ask("GET")).get("data")
        return cast("dict[str, str]", data) if isinstance(data, dict) else {}

    async def set(self, key: str, value: str) -> None:
        """Store a text under a key, replacing an earlier one."""
        if not isinstance(value, str):  # pyright: ignore[reportUnnecessaryIsInstance] - authors are not always typed
            raise TypeError("storage keeps texts: spell other values as JSON first")
        if len(value) > LONGEST_VALUE:
            raise ValueError(f"a text has at most {LONGEST_VALUE:,} characters; this one has {len(value):,}")
        await self._ask("PUT", body={"data": {key: value}})

    async def delete(self, key: str) -> bool:
        """Delete a key; return whether the gateway confirms it."""
        return (await self._ask("DELETE", f"/{quote(key, safe='')}")).get("success") is True

    async def clear(self) -> bool:
        """Delete all values of this user."""
        return (await self._ask("DELETE")).get("success") is True

    async def close(self) -> None:
        """Close the connection."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def _ask(self, method: str, path: str = "", *, body: JsonObject | None = None) -> dict[str, Any]:
        # Imported late, as only apps with stored data need them.
        from yarl import URL

        from toolcrib.egress.response import ConnectionClosed, NoConnection, NotHttp

        url = URL(self._address + path, encoded=True)
        said = None if body is None else orjson.dumps(body)
        try:
            with anyio.fail_after(_SECONDS):
                status, answer = await self._sent(method, url, said)
        except TimeoutError:
            raise StorageError(f"the gateway did not answer within {_SECONDS:g} s") from None
        except (NoConnection, ConnectionClosed, NotHttp) as error:
            raise StorageError(f"the gateway cannot be asked: {error}") from error
        if status >= 300:
            raise StorageError(f"the gateway refused: {_reason(answer)} (status {status})")
        return answer

    async def _sent(self, method: str, url: Any, body: bytes | None) -> tuple[int, dict[str, Any]]:
        from toolcrib.egress import Egress
        from toolcrib.egress.client import Client

        if self._client is None:
            headers = {"Authorization": self._authority, "Accept": "application/json"}
            # No SSRF guard: it is the gateway that the app trusts.
            self._client = Client(
                url,
                headers,
                Egress(guarded=False),
                content_type="application/json",
                connect_seconds=_SECONDS,
            )
        response = await self._client.send(method, url, {}, body)
        try:
            parts: list[bytes] = []
            while sum(map(len, parts)) <= _MOST_BYTES and (piece := await response.read()):
                parts.append(piece)
            return response.status, _object(b"".join(parts))
        finally:
            response.close()


def _object(text: bytes) -> dict[str, Any]:
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        value = None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _reason(answer: JsonObject) -> str:
    error = answer.get("error")
    said = cast("JsonObject", error).get("message") if isinstance(error, dict) else error
    return said[:500] if isinstance(said, str) else "it does not say why"
