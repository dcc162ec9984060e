"""HTTP for both web transports: one session per server, bounded bodies, errors that state what was sent."""

import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import lru_cache
from types import MappingProxyType
from typing import cast

from yarl import URL

from toolcrib.egress import Egress
from toolcrib.egress.client import Client
from toolcrib.egress.lookup import Look
from toolcrib.egress.response import ConnectionClosed, NoConnection, NotHttp, Response
from toolcrib.formats.mirrored_headers import header_value
from toolcrib.model import JsonObject
from toolcrib.sources.mcp.connection import LARGEST
from toolcrib.sources.mcp.cooperative import CooperativeWork
from toolcrib.sources.mcp.errors import (
    ConnectionLost,
    HttpStatusError,
    InvalidResponse,
    JsonRpcError,
    NotSent,
    ResponseTooLarge,
    ServerError,
)
from toolcrib.sources.mcp.event_stream import EventStreamParser, ServerSentEvent
from toolcrib.sources.mcp.jsonrpc import parse
from toolcrib.sources.mcp.message_parsing import refusal
from toolcrib.sources.mcp.notification_limit import NotificationLimit
from toolcrib.version import VERSION

CONNECT_SECONDS = 3.0
"""Connect timeout in seconds, from the DNS lookup to the end of the TLS handshake."""

ERROR_BYTES = 64 << 10
"""Maximum bytes of an error body; the text of a larger one is ignored."""

JSON, STREAM = "application/json", "text/event-stream"

_SLICE = 4 << 10
"""Bytes of one slice of a body."""
_LONGEST_KEPT = 512
"""Maximum characters of a name for which the headers are cached."""

_OURS = {"Accept": f"{JSON}, {STREAM}", "Accept-Encoding": "identity"}
_FIXED = frozenset({"accept", "accept-encoding", "content-encoding", "content-length", "transfer-encoding"})
"""Headers that the operator's configuration cannot set."""
_SESSIONLESS = re.compile(rb"session|not initialized", re.IGNORECASE)
"""Matches an error body about an unknown session: each server words it in its own way."""
_SESSION_CODES = frozenset({-32000, -32001, -32600})
"""JSON-RPC error codes by which servers report an unknown session."""
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
    url: str, headers: Mapping[str, str], egress: Egress, look: Look | None = None
) -> AsyncGenerator[Client]:
    """Open a session for one server: no cookies, no proxies, no redirects; only connecting has a timeout."""
    if reason := egress.refusal(url):
        raise NotSent(f"the server's URL is refused: {reason}")
    async with Client(
        URL(url), _merged(headers), egress, content_type=JSON, connect_seconds=CONNECT_SECONDS, look=look
    ) as opened:
        yield opened


def modern_head(revision: str, method: str, name: str | None) -> Mapping[str, str]:
    """Return the headers of a modern request; they are the same for every call of a tool, so cached."""
    # A name may be a URI of any origin and length: long ones are not cached.
    make = _modern_head if name is None or len(name) <= _LONGEST_KEPT else _modern_head.__wrapped__
    return make(revision, method, name)


@lru_cache(maxsize=1024)
def _modern_head(revision: str, method: str, name: str | None) -> Mapping[str, str]:
    head = {"MCP-Protocol-Version": revision, "Mcp-Method": method}
    if name is not None:
        head["Mcp-Name"] = header_value(name)
    return MappingProxyType(head)


async def send(
    session: Client, method: str, url: URL, headers: Mapping[str, str], body: bytes | None = None
) -> Response:
    """Send a request; return the response with its headers. The caller reads it to its end, or closes it."""
    try:
        return await session.send(method, url, headers, body)
    except NoConnection as error:
        raise NotSent(f"the server cannot be reached: {error}") from error
    except NotHttp as error:
        raise InvalidResponse("the server's answer is not HTTP") from error
    except ValueError as error:
        raise NotSent(
            "the request cannot be sent: a header or the URL holds what HTTP does not allow"
        ) from error
    except ConnectionClosed as error:
        raise ConnectionLost("the server closed the connection before it answered") from error


async def piece(response: Response) -> bytes:
    """Return the next bytes of a body; empty at its end."""
    try:
        return await response.read()
    except ConnectionClosed as error:
        raise ConnectionLost("the server closed the connection in the middle of its answer") from error
    except NotHttp as error:
        raise InvalidResponse("the server's answer is not HTTP") from error


class BodySlices:
    """Reads a body in small slices, so that many events in one chunk do not block the event loop for long."""

    def __init__(self, response: Response) -> None:
        self._response, self._data, self._at = response, b"", 0
        self._turns = CooperativeWork()

    async def next(self) -> bytes:
        """Return the next slice, empty at the end; yield to the event loop if the time slice is used up."""
        if self._at >= len(self._data):
            self._data, self._at = await piece(self._response), 0
        await self._turns.rest()
        begin, self._at = self._at, self._at + _SLICE
        return self._data[begin : self._at]


def messages(
    found: Sequence[ServerSentEvent], events: EventStreamParser, limit: NotificationLimit
) -> list[bytes]:
    """Return the messages among events; comments and other events count against the notification limit."""
    if events.idle:
        limit.charge(events.idle)
        events.idle = 0
    # An event with empty data only carries the id to resume from.
    taken = [event.data for event in found if event.type == "message" and event.data]
    if len(taken) != len(found):
        skipped = [len(event.data) for event in found if event.type != "message" or not event.data]
        limit.charge(len(skipped), sum(skipped))
    return taken


async def whole(response: Response, most: int = LARGEST) -> bytes:
    """Read a body up to a limit; raise ResponseTooLarge above it, without reading any further."""
    if (response.content_length or 0) > most:
        raise _too_large(most)
    parts: list[bytes] = []
    size = 0
    while data := await piece(response):
        parts.append(data)
        size += len(data)
        if size > most:
            raise _too_large(most)
        if response.at_end():
            break
    return b"".join(parts)


def check_coding(response: Response) -> None:
    """Refuse a compressed response: none was requested, and it may be a decompression bomb."""
    coding = response.headers.get("Content-Encoding").strip().lower()
    if coding not in {"", "identity"}:
        raise InvalidResponse("the server compressed its answer though it was asked not to")


def status_fault(response: Response) -> HttpStatusError:
    """Return the error for an HTTP status that is not a success."""
    status = response.status
    if 300 <= status < 400:
        message = "the server redirects elsewhere, and redirects are not followed; give the URL it leads to"
    else:
        message = _STATUS.get(status, "the server did not answer properly")
    return HttpStatusError(status, f"{message} (HTTP {status})")


def _merged(headers: Mapping[str, str]) -> dict[str, str]:
    """Merge the operator's headers with the fixed ones, which win; names are case-insensitive."""
    given = {name: value for name, value in headers.items() if name.lower() not in _FIXED}
    named = "user-agent" in map(str.lower, given)
    return {**({} if named else {"User-Agent": f"toolcrib/{VERSION}"}), **given, **_OURS}


def _too_large(most: int) -> ServerError:
    return ResponseTooLarge(f"the server's answer is larger than {most >> 20} MiB")


async def drain(response: Response) -> None:
    """Read the short rest of an unneeded body, so that the connection can be reused."""
    left = ERROR_BYTES
    while left > 0 and (data := await piece(response)):
        left -= len(data)


def refusal_in(text: bytes) -> JsonRpcError | None:
    """Return the JSON-RPC error in an error body; None if it is none."""
    try:
        value = parse(text)
    except InvalidResponse:
        return None
    found = refusal(cast("JsonObject", value).get("error")) if type(value) is dict else None
    return found if isinstance(found, JsonRpcError) else None


def ends_session(status: int, text: bytes, said: JsonRpcError | None) -> bool:
    """Return whether an error response means that the server no longer knows our session."""
    if status == 404:
        return True
    known = said is None or said.code in _SESSION_CODES
    return status == 400 and known and _SESSIONLESS.search(text) is not None
