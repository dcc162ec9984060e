"""HTTP for both web transports: one session per server, bounded bodies, faults that say what was sent."""

import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from io import BytesIO

import aiohttp
from aiohttp.abc import AbstractResolver
from yarl import URL

from toolcrib.egress import Egress
from toolcrib.egress.connect import Blocked, connector
from toolcrib.sources.mcp.connection import LARGEST
from toolcrib.sources.mcp.faults import Cut, Fault, Garbled, Status, TooLarge, Unsent
from toolcrib.sources.mcp.turns import Turns
from toolcrib.version import VERSION

CONNECT_SECONDS = 3.0
"""From looking the name up to the end of the TLS handshake."""

ERROR_BYTES = 64 << 10
"""How much of an error page is read for what it may say."""

JSON, STREAM = "application/json", "text/event-stream"

_SLICE = 4 << 10

_LARGE_BODY = 1 << 20
_OURS = {"Accept": f"{JSON}, {STREAM}", "Accept-Encoding": "identity"}
_FIXED = frozenset({"accept", "accept-encoding", "content-encoding", "content-length", "transfer-encoding"})
_STATUS = {
    401: "the server wants credentials, or does not accept those it got; check its headers in the config",
    403: "the server does not allow this with the credentials it got; check its headers in the config",
    404: "there is nothing at the server's URL; check its path",
    405: "the server's URL does not take such requests; check its path and its transport",
    413: "the request is too large for the server",
    429: "the server has had too many requests",
}


@asynccontextmanager
async def session(
    url: str, headers: Mapping[str, str], egress: Egress, resolver: AbstractResolver | None = None
) -> AsyncGenerator[aiohttp.ClientSession]:
    """Open a session for one server: no cookies, no proxies, no decompression; only connecting is timed."""
    if reason := egress.refusal(url):
        raise Unsent(f"the server's URL is refused: {reason}")
    async with aiohttp.ClientSession(
        connector=connector(egress, resolver),
        headers=_merged(headers),
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None, connect=CONNECT_SECONDS),
        auto_decompress=False,
        trust_env=False,
    ) as opened:
        yield opened


async def send(
    session: aiohttp.ClientSession,
    method: str,
    url: URL,
    headers: Mapping[str, str],
    body: bytes | None = None,
) -> aiohttp.ClientResponse:
    """Send a request and wait for the head of its answer. The caller closes or releases it."""
    if body is not None:
        headers = {"Content-Type": JSON, **headers}
    # aiohttp warns of large bodies given as bytes, which it would write in one go.
    data = BytesIO(body) if body is not None and len(body) > _LARGE_BODY else body
    try:
        return await session.request(method, url, headers=headers, data=data, allow_redirects=False)
    except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
        raise Unsent(f"the server cannot be reached: {_why(error)}") from error
    except aiohttp.ClientResponseError as error:
        raise Garbled("the server's answer is not HTTP") from error
    except ValueError as error:
        raise Unsent(
            "the request cannot be sent: a header or the URL holds what HTTP does not allow"
        ) from error
    except (aiohttp.ClientError, OSError) as error:
        raise Cut("the server closed the connection before it answered") from error


async def piece(response: aiohttp.ClientResponse) -> bytes:
    """The next bytes of a body, or none at its end."""
    try:
        return await response.content.readany()
    except (aiohttp.ClientError, OSError) as error:
        raise Cut("the server closed the connection in the middle of its answer") from error


class Slices:
    """A body in slices so small that no number of events in one can hold others up for long."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response, self._data, self._at = response, b"", 0
        self._turns = Turns()

    async def next(self) -> bytes:
        """The next bytes, or none at the end; what was given before counts as taken."""
        if self._at >= len(self._data):
            self._data, self._at = await piece(self._response), 0
        await self._turns.rest()
        begin, self._at = self._at, self._at + _SLICE
        return self._data[begin : self._at]


async def whole(response: aiohttp.ClientResponse, most: int = LARGEST) -> bytes:
    """Read a body up to a limit; where it is over, not one more byte is read."""
    if (response.content_length or 0) > most:
        raise _too_large(most)
    body = bytearray()
    while data := await piece(response):
        body += data
        if len(body) > most:
            raise _too_large(most)
    return bytes(body)


def check_coding(response: aiohttp.ClientResponse) -> None:
    """Refuse a compressed answer: we did not ask for one, and it may be a bomb."""
    coding = response.headers.get("Content-Encoding", "").strip().lower()
    if coding not in {"", "identity"}:
        raise Garbled("the server compressed its answer though it was asked not to")


def status_fault(response: aiohttp.ClientResponse) -> Status:
    """Say what an HTTP status that is no answer means."""
    status = response.status
    if 300 <= status < 400:
        message = "the server redirects elsewhere, and redirects are not followed; give the URL it leads to"
    else:
        message = _STATUS.get(status, "the server did not answer properly")
    return Status(status, f"{message} (HTTP {status})")


def _merged(headers: Mapping[str, str]) -> dict[str, str]:
    """The operator's headers, except where there is only one choice; a name in any case is the same name."""
    given = {name: value for name, value in headers.items() if name.lower() not in _FIXED}
    named = "user-agent" in map(str.lower, given)
    return {**({} if named else {"User-Agent": f"toolcrib/{VERSION}"}), **given, **_OURS}


def _too_large(most: int) -> Fault:
    return TooLarge(f"the server's answer is larger than {most >> 20} MiB")


def _why(error: aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError) -> str:
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return f"no connection within {CONNECT_SECONDS:g} s"
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return "its certificate is not valid"
    if isinstance(error, aiohttp.ClientConnectorSSLError):
        return "no TLS connection could be made"
    if isinstance(error, aiohttp.ClientConnectorDNSError) and not isinstance(error.os_error, Blocked):
        return "its name is not known"
    return _in_words(error.os_error)


def _in_words(error: OSError) -> str:
    """The system's own words alone: where we connected to is not for everybody who calls a tool."""
    if isinstance(error, Blocked):
        return str(error.strerror)
    return os.strerror(error.errno) if error.errno else "no connection could be made"


async def drain(response: aiohttp.ClientResponse) -> None:
    """Read the little that may be left of a body nobody wants, so that the connection can be used again."""
    left = ERROR_BYTES
    while left > 0 and (data := await piece(response)):
        left -= len(data)
