"""One HTTP session with an MCP server: requests, event streams and messages from the server."""

import asyncio
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import cast

import anyio
from yarl import URL

from toolcrib.cooperative import CooperativeWork
from toolcrib.egress import Egress
from toolcrib.egress.client import Client
from toolcrib.egress.connect import Resolver
from toolcrib.egress.http_connection import ConnectionClosed, NoConnection, NotHttp, Response
from toolcrib.mcp.headers import METHOD_HEADER, NAME_HEADER, REVISION_HEADER, header_value
from toolcrib.mcp.jsonrpc import END_BYTES, MAX_MESSAGE_BYTES, SESSION_ERRORS, guess_id, params_of
from toolcrib.mcp.methods import CANCELLED, LOG_MESSAGE, PROGRESS
from toolcrib.mcp.revisions import Era
from toolcrib.mcp.sse import EventStreamParser, ServerSentEvent
from toolcrib.model import Json, JsonObject
from toolcrib.sources.mcp.connection import (
    ConnectionLost,
    ConnectionTasks,
    Heard,
    HttpStatusError,
    InvalidResponse,
    JsonRpcError,
    News,
    NotSent,
    RequestCallbacks,
    ResponseTooLarge,
    ServerError,
)
from toolcrib.sources.mcp.request_multiplexer import NotificationLimit
from toolcrib.sources.mcp.server_messages import (
    MAX_LOG_BYTES,
    MessageRouter,
    RequestMessages,
    parse_message,
    progress_of,
    response_error,
    response_outcome,
)
from toolcrib.version import VERSION

# --- Reads a response in a background task, so that the caller's task can serve the server's requests ---

MAX_BACKGROUND_READS = 256
"""Maximum background tasks of a connection; beyond it, a further read raises NotSent."""

Read = Callable[[], Awaitable[JsonObject]]


async def aside(
    jobs: ConnectionTasks, read: Read, hearing: RequestMessages, over: Callable[[], None]
) -> JsonObject:
    """Return the result of `read`, which runs in a background task; deliver messages until then.

    `over` is called when the read has ended; it closes the request's messages.
    """
    answer: asyncio.Future[JsonObject] = asyncio.get_running_loop().create_future()
    scope = anyio.CancelScope()
    if not jobs.start(_read, read, answer, scope, over, most=MAX_BACKGROUND_READS):
        raise NotSent("too many requests are under way already")
    try:
        return await hearing.listen(answer)
    finally:
        scope.cancel()
        if not answer.cancel():
            answer.exception()  # retrieved: asyncio logs every exception that is never retrieved


async def _read(
    read: Read, answer: "asyncio.Future[JsonObject]", scope: anyio.CancelScope, over: Callable[[], None]
) -> None:
    found: JsonObject | ServerError = ConnectionLost("the connection to the server was closed")
    try:
        with scope:
            found = await read()
    except ServerError as fault:
        found = fault
    finally:
        if not answer.done():
            if isinstance(found, ServerError):
                answer.set_exception(found)
            else:
                answer.set_result(found)
        over()


# --- Dispatches what arrives while a request is in flight: response, progress, server requests and the rest
# ---

Outcome = JsonObject | ServerError | None
"""The result of a request, or its error; None while neither has arrived."""


@dataclass(frozen=True, slots=True)
class PendingRequest:
    """A request in flight."""

    id: int
    method: str
    era: Era
    ear: RequestCallbacks | None = None
    hearing: RequestMessages | None = None
    """Set if a background task reads the response: the caller's task then serves the server's requests."""

    async def hear(self, news: News) -> None:
        """Deliver progress or a log message to the caller."""
        if self.hearing is not None:
            self.hearing.add(news)
        elif self.ear is not None:
            await self.ear.hear(news)


class IncomingMessages:
    """Dispatches messages one by one. The router gets those that are not about the response being read."""

    def __init__(self, heard: Heard, hearings: MessageRouter, limit: NotificationLimit) -> None:
        self._heard, self._hearings, self._limit = heard, hearings, limit
        self.running = 0
        """Number of requests in flight."""
        self.unclaimed = 0
        """Number of messages without a receiver: wrong ids, late responses, excess requests."""

    async def take(self, data: bytes, asked: PendingRequest | None) -> Outcome:
        """Dispatch one message; return the outcome if it is the response to the given request."""
        try:
            value = parse_message(data)
        except InvalidResponse as fault:
            about = guess_id(data[:END_BYTES], data[-END_BYTES:])
            if asked is not None and about in {None, asked.id}:
                return fault
            self._useless(len(data))
            return None
        found: Outcome = None
        # Revision 2025-03-26 allows several messages in one batch.
        messages = cast("list[Json]", value) if type(value) is list else (value,)
        size = len(data) // max(1, len(messages))
        for message in messages:
            mine = await self._sorted(message, size, asked)
            found = found if mine is None else mine
        return found

    async def _sorted(self, message: Json, size: int, asked: PendingRequest | None) -> Outcome:
        if type(message) is not dict:
            self._useless(size)
            return None
        fields = cast("JsonObject", message)
        method = fields.get("method")
        if type(method) is not str:
            return self._claimed(fields, size, asked)
        admitted = self._limit.admit(method, size)
        if "id" in fields:
            self.unclaimed += not self._hearings.ask(fields, size, asked.hearing if asked else None)
        elif admitted:
            await self._told(method, params_of(fields), size, asked)
        return None

    def _useless(self, size: int) -> None:
        self.unclaimed += 1
        self._limit.admit("", size)

    def _claimed(self, fields: JsonObject, size: int, asked: PendingRequest | None) -> Outcome:
        found, whose = response_outcome(fields), fields.get("id")
        if found is not None and asked is not None:
            # True and 1.0 equal 1 in Python, and are no ids.
            if type(whose) is int and whose == asked.id:
                return found
            # A server that could not parse a request cannot return its id.
            if whose is None and isinstance(found, JsonRpcError):
                return found
        self._useless(size)
        return None

    async def _told(self, method: str, params: JsonObject, size: int, asked: PendingRequest | None) -> None:
        ear = asked.ear if asked is not None else None
        if method == PROGRESS:
            mine = asked is not None and params.get("progressToken") == asked.id
            if asked is not None and mine and ear is not None and ear.report is not None:
                await asked.hear(progress_of(params))
            else:
                self.unclaimed += 1
        elif method == CANCELLED:
            self._hearings.withdraw(params)
        elif method != LOG_MESSAGE or size > MAX_LOG_BYTES or not await self._logged(params, asked):
            self._heard(method, params)

    async def _logged(self, params: JsonObject, asked: PendingRequest | None) -> bool:
        if asked is None:
            return self._hearings.log(params, self.running - len(self._hearings.open))
        if asked.ear is None or asked.ear.channel is None:
            return False
        await asked.hear(params)
        return True


# --- HTTP for both web transports: one session per server, bounded bodies, errors that state what was sent
# ---

CONNECT_TIMEOUT_SECONDS = 3.0
"""Connect timeout in seconds, from the DNS lookup to the end of the TLS handshake."""

MAX_ERROR_BYTES = 64 << 10
"""Maximum bytes of an error body; the text of a larger one is ignored."""

JSON, STREAM = "application/json", "text/event-stream"

_SLICE_BYTES = 4 << 10
"""Bytes of one slice of a body."""
_MAX_CACHED_NAME_CHARS = 512
"""Maximum characters of a name for which the headers are cached."""

_REQUEST_HEADERS = {"Accept": f"{JSON}, {STREAM}", "Accept-Encoding": "identity"}
_FIXED_HEADERS = frozenset(
    {"accept", "accept-encoding", "content-encoding", "content-length", "transfer-encoding"}
)
"""Headers that the operator's configuration cannot set."""
_UNKNOWN_SESSION = re.compile(rb"session|not initialized", re.IGNORECASE)
"""Matches an error body about an unknown session: each server words it in its own way."""
_STATUS_MESSAGES = {
    401: "the server wants credentials, or does not accept those it got; check its headers in the config",
    403: "the server does not allow this with the credentials it got; check its headers in the config",
    404: "there is nothing at the server's URL; check its path",
    405: "the server's URL does not take such requests; check its path and its transport",
    413: "the request is too large for the server",
    429: "the server has had too many requests",
}


@asynccontextmanager
async def session(
    url: str, headers: Mapping[str, str], egress: Egress, look: Resolver | None = None
) -> AsyncGenerator[Client]:
    """Open a session for one server: no cookies, no proxies, no redirects; only connecting has a timeout."""
    if reason := egress.refusal(url):
        raise NotSent(f"the server's URL is refused: {reason}")
    async with Client(
        URL(url),
        _merged(headers),
        egress,
        content_type=JSON,
        connect_seconds=CONNECT_TIMEOUT_SECONDS,
        resolver=look,
    ) as opened:
        yield opened


def modern_head(revision: str, method: str, name: str | None) -> Mapping[str, str]:
    """Return the headers of a modern request; they are the same for every call of a tool, so cached."""
    # A name may be a URI of any origin and length: long ones are not cached.
    make = _modern_head if name is None or len(name) <= _MAX_CACHED_NAME_CHARS else _modern_head.__wrapped__
    return make(revision, method, name)


@lru_cache(maxsize=1024)
def _modern_head(revision: str, method: str, name: str | None) -> Mapping[str, str]:
    head = {REVISION_HEADER: revision, METHOD_HEADER: method}
    if name is not None:
        head[NAME_HEADER] = header_value(name)
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
        begin, self._at = self._at, self._at + _SLICE_BYTES
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


async def whole(response: Response, most: int = MAX_MESSAGE_BYTES) -> bytes:
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
        message = _STATUS_MESSAGES.get(status, "the server did not answer properly")
    return HttpStatusError(status, f"{message} (HTTP {status})")


def _merged(headers: Mapping[str, str]) -> dict[str, str]:
    """Merge the operator's headers with the fixed ones, which win; names are case-insensitive."""
    given = {name: value for name, value in headers.items() if name.lower() not in _FIXED_HEADERS}
    named = "user-agent" in map(str.lower, given)
    return {**({} if named else {"User-Agent": f"toolcrib/{VERSION}"}), **given, **_REQUEST_HEADERS}


def _too_large(most: int) -> ServerError:
    return ResponseTooLarge(f"the server's answer is larger than {most >> 20} MiB")


async def drain(response: Response) -> None:
    """Read the short rest of an unneeded body, so that the connection can be reused."""
    left = MAX_ERROR_BYTES
    while left > 0 and (data := await piece(response)):
        left -= len(data)


def refusal_in(text: bytes) -> JsonRpcError | None:
    """Return the JSON-RPC error in an error body; None if it is none."""
    try:
        value = parse_message(text)
    except InvalidResponse:
        return None
    found = response_error(cast("JsonObject", value).get("error")) if type(value) is dict else None
    return found if isinstance(found, JsonRpcError) else None


def ends_session(status: int, text: bytes, said: JsonRpcError | None) -> bool:
    """Return whether an error response means that the server no longer knows our session."""
    if status == 404:
        return True
    known = said is None or said.code in SESSION_ERRORS
    return status == 400 and known and _UNKNOWN_SESSION.search(text) is not None
