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
from toolcrib.egress.response import ConnectionClosed, NoConnection, NotHttp, Response
from toolcrib.mcp.headers import METHOD_HEADER, NAME_HEADER, REVISION_HEADER, header_value
from toolcrib.mcp.jsonrpc import END_BYTES, MAX_MESSAGE_BYTES, SESSION_ERRORS, guess_id, params_of
from toolcrib.mcp.methods import CANCELLED, LOG_MESSAGE, PROGRESS
from toolcrib.mcp.revisions import Era
from toolcrib.mcp.sse import EventStreamParser, ServerSentEvent
from toolcrib.model import Json, JsonObject
from toolcrib.sources.mcp.connection import (
    ConnectionLost,
    ConnectionTasks,
    HttpStatusError,
    InvalidResponse,
    JsonRpcError,
    Notify,
    NotSent,
    RequestCallbacks,
    RequestNotification,
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

ReadResponse = Callable[[], Awaitable[JsonObject]]


async def in_background(
    jobs: ConnectionTasks, read: ReadResponse, messages: RequestMessages, on_end: Callable[[], None]
) -> JsonObject:
    """Return the result of `read`, which runs in a background task; deliver messages until then.

    `over` is called when the read has ended; it closes the request's messages.
    """
    response: asyncio.Future[JsonObject] = asyncio.get_running_loop().create_future()
    scope = anyio.CancelScope()
    if not jobs.start(_run_read, read, response, scope, on_end, max_running=MAX_BACKGROUND_READS):
        raise NotSent("too many requests are under way already")
    try:
        return await messages.deliver_until(response)
    finally:
        scope.cancel()
        if not response.cancel():
            response.exception()  # retrieved: asyncio logs every exception that is never retrieved


async def _run_read(
    read: ReadResponse,
    response: "asyncio.Future[JsonObject]",
    scope: anyio.CancelScope,
    on_end: Callable[[], None],
) -> None:
    outcome: JsonObject | ServerError = ConnectionLost("the connection to the server was closed")
    try:
        with scope:
            outcome = await read()
    except ServerError as fault:
        outcome = fault
    finally:
        if not response.done():
            if isinstance(outcome, ServerError):
                response.set_exception(outcome)
            else:
                response.set_result(outcome)
        on_end()


# --- Dispatches what arrives while a request is in flight: response, progress, server requests and the rest

Outcome = JsonObject | ServerError | None
"""The result of a request, or its error; None while neither has arrived."""


@dataclass(frozen=True, slots=True)
class PendingRequest:
    """A request in flight."""

    id: int
    method: str
    era: Era
    callbacks: RequestCallbacks | None = None
    messages: RequestMessages | None = None
    """Set if a background task reads the response: the caller's task then serves the server's requests."""

    async def deliver(self, news: RequestNotification) -> None:
        """Deliver progress or a log message to the caller."""
        if self.messages is not None:
            self.messages.add(news)
        elif self.callbacks is not None:
            await self.callbacks.deliver(news)


class IncomingMessages:
    """Dispatches messages one by one. The router gets those that are not about the response being read."""

    def __init__(self, notify: Notify, router: MessageRouter, limit: NotificationLimit) -> None:
        self._notify, self._router, self._limit = notify, router, limit
        self.running = 0
        """Number of requests in flight."""
        self.unclaimed = 0
        """Number of messages without a receiver: wrong ids, late responses, excess requests."""

    async def dispatch(self, data: bytes, request: PendingRequest | None) -> Outcome:
        """Dispatch one message; return the outcome if it is the response to the given request."""
        try:
            value = parse_message(data)
        except InvalidResponse as fault:
            request_id = guess_id(data[:END_BYTES], data[-END_BYTES:])
            if request is not None and request_id in {None, request.id}:
                return fault
            self._count_unclaimed(len(data))
            return None
        outcome: Outcome = None
        # Revision 2025-03-26 allows several messages in one batch.
        messages = cast("list[Json]", value) if type(value) is list else (value,)
        size = len(data) // max(1, len(messages))
        for message in messages:
            mine = await self._dispatch_one(message, size, request)
            outcome = outcome if mine is None else mine
        return outcome

    async def _dispatch_one(self, message: Json, size: int, request: PendingRequest | None) -> Outcome:
        if type(message) is not dict:
            self._count_unclaimed(size)
            return None
        fields = cast("JsonObject", message)
        method = fields.get("method")
        if type(method) is not str:
            return self._outcome_of(fields, size, request)
        admitted = self._limit.admit(method, size)
        if "id" in fields:
            self.unclaimed += not self._router.ask(fields, size, request.messages if request else None)
        elif admitted:
            await self._handle_notification(method, params_of(fields), size, request)
        return None

    def _count_unclaimed(self, size: int) -> None:
        self.unclaimed += 1
        self._limit.admit("", size)

    def _outcome_of(self, fields: JsonObject, size: int, request: PendingRequest | None) -> Outcome:
        outcome, response_id = response_outcome(fields), fields.get("id")
        if outcome is not None and request is not None:
            # True and 1.0 equal 1 in Python, and are no ids.
            if type(response_id) is int and response_id == request.id:
                return outcome
            # A server that could not parse a request cannot return its id.
            if response_id is None and isinstance(outcome, JsonRpcError):
                return outcome
        self._count_unclaimed(size)
        return None

    async def _handle_notification(
        self, method: str, params: JsonObject, size: int, request: PendingRequest | None
    ) -> None:
        callbacks = request.callbacks if request is not None else None
        if method == PROGRESS:
            mine = request is not None and params.get("progressToken") == request.id
            if request is not None and mine and callbacks is not None and callbacks.report is not None:
                await request.deliver(progress_of(params))
            else:
                self.unclaimed += 1
        elif method == CANCELLED:
            self._router.withdraw(params)
        elif method != LOG_MESSAGE or size > MAX_LOG_BYTES or not await self._deliver_log(params, request):
            self._notify(method, params)

    async def _deliver_log(self, params: JsonObject, request: PendingRequest | None) -> bool:
        if request is None:
            return self._router.log(params, self.running - len(self._router.in_flight))
        if request.callbacks is None or request.callbacks.channel is None:
            return False
        await request.deliver(params)
        return True


# --- HTTP for both web transports: one session per server, bounded bodies, errors that state what was sent

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
    url: str, headers: Mapping[str, str], egress: Egress, resolver: Resolver | None = None
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
        resolver=resolver,
    ) as client:
        yield client


def modern_headers(revision: str, method: str, name: str | None) -> Mapping[str, str]:
    """Return the headers of a modern request; they are the same for every call of a tool, so cached."""
    # A name may be a URI of any origin and length: long ones are not cached.
    is_short = name is None or len(name) <= _MAX_CACHED_NAME_CHARS
    make = _modern_headers if is_short else _modern_headers.__wrapped__
    return make(revision, method, name)


@lru_cache(maxsize=1024)
def _modern_headers(revision: str, method: str, name: str | None) -> Mapping[str, str]:
    headers = {REVISION_HEADER: revision, METHOD_HEADER: method}
    if name is not None:
        headers[NAME_HEADER] = header_value(name)
    return MappingProxyType(headers)


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
        why = "a header or the URL holds what HTTP does not allow"
        raise NotSent(f"the request cannot be sent: {why}") from error
    except ConnectionClosed as error:
        raise ConnectionLost("the server closed the connection before it answered") from error


async def read_chunk(response: Response) -> bytes:
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
            self._data, self._at = await read_chunk(self._response), 0
        await self._turns.rest()
        begin, self._at = self._at, self._at + _SLICE_BYTES
        return self._data[begin : self._at]


def event_messages(
    events: Sequence[ServerSentEvent], parser: EventStreamParser, limit: NotificationLimit
) -> list[bytes]:
    """Return the messages among events; comments and other events count against the notification limit."""
    if parser.idle:
        limit.charge(parser.idle)
        parser.idle = 0
    # An event with empty data only carries the id to resume from.
    data = [event.data for event in events if event.type == "message" and event.data]
    if len(data) != len(events):
        skipped = [len(event.data) for event in events if event.type != "message" or not event.data]
        limit.charge(len(skipped), sum(skipped))
    return data


async def read_body(response: Response, max_bytes: int = MAX_MESSAGE_BYTES) -> bytes:
    """Read a body up to a limit; raise ResponseTooLarge above it, without reading any further."""
    if (response.content_length or 0) > max_bytes:
        raise _too_large(max_bytes)
    parts: list[bytes] = []
    size = 0
    while data := await read_chunk(response):
        parts.append(data)
        size += len(data)
        if size > max_bytes:
            raise _too_large(max_bytes)
        if response.at_end():
            break
    return b"".join(parts)


def check_coding(response: Response) -> None:
    """Refuse a compressed response: none was requested, and it may be a decompression bomb."""
    coding = response.headers.get("Content-Encoding").strip().lower()
    if coding not in {"", "identity"}:
        raise InvalidResponse("the server compressed its answer though it was asked not to")


def status_error(response: Response) -> HttpStatusError:
    """Return the error for an HTTP status that is not a success."""
    status = response.status
    if 300 <= status < 400:
        message = "the server redirects elsewhere, and redirects are not followed; give the URL it leads to"
    else:
        message = _STATUS_MESSAGES.get(status, "the server did not answer properly")
    return HttpStatusError(status, f"{message} (HTTP {status})")


def _merged(headers: Mapping[str, str]) -> dict[str, str]:
    """Merge the operator's headers with the fixed ones, which win; names are case-insensitive."""
    configured = {name: value for name, value in headers.items() if name.lower() not in _FIXED_HEADERS}
    named = "user-agent" in map(str.lower, configured)
    return {**({} if named else {"User-Agent": f"toolcrib/{VERSION}"}), **configured, **_REQUEST_HEADERS}


def _too_large(max_bytes: int) -> ServerError:
    return ResponseTooLarge(f"the server's answer is larger than {max_bytes >> 20} MiB")


async def drain(response: Response) -> None:
    """Read the short rest of an unneeded body, so that the connection can be reused."""
    left = MAX_ERROR_BYTES
    while left > 0 and (data := await read_chunk(response)):
        left -= len(data)


def json_rpc_error_in(text: bytes) -> JsonRpcError | None:
    """Return the JSON-RPC error in an error body; None if it is none."""
    try:
        value = parse_message(text)
    except InvalidResponse:
        return None
    outcome = response_error(cast("JsonObject", value).get("error")) if type(value) is dict else None
    return outcome if isinstance(outcome, JsonRpcError) else None


def ends_session(status: int, text: bytes, error: JsonRpcError | None) -> bool:
    """Return whether an error response means that the server no longer knows our session."""
    if status == 404:
        return True
    known = error is None or error.code in SESSION_ERRORS
    return status == 400 and known and _UNKNOWN_SESSION.search(text) is not None
