"""Streamable HTTP: every request is its own POST; the response is a JSON body or an event stream."""

import re
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import anyio
import orjson
from yarl import URL

from toolcrib.egress import Egress
from toolcrib.egress.client import Client
from toolcrib.egress.response import Response
from toolcrib.interfaces import ServerMisbehaved
from toolcrib.mcp.headers import REVISION_HEADER, SESSION_HEADER
from toolcrib.mcp.jsonrpc import encode_notification, encode_request
from toolcrib.mcp.meta import with_progress_token
from toolcrib.mcp.methods import CANCELLED, INITIALIZE
from toolcrib.mcp.revisions import MODERN, REVISION_HEADER_SINCE, Era
from toolcrib.mcp.sse import EventStreamParser
from toolcrib.model import JsonObject
from toolcrib.sources.mcp.connection import (
    Connection,
    ConnectionLost,
    ConnectionTasks,
    InvalidResponse,
    Notify,
    NotSent,
    RequestCallbacks,
    ResponseTooLarge,
    ServerError,
    background,
)
from toolcrib.sources.mcp.http_session import (
    JSON,
    MAX_ERROR_BYTES,
    STREAM,
    BodySlices,
    IncomingMessages,
    Outcome,
    PendingRequest,
    check_coding,
    drain,
    ends_session,
    event_messages,
    in_background,
    json_rpc_error_in,
    modern_headers,
    read_body,
    send,
    session,
    status_error,
)
from toolcrib.sources.mcp.request_multiplexer import NotificationLimit
from toolcrib.sources.mcp.server_messages import GATEWAY_METHODS, MessageRouter

BEST_EFFORT_TIMEOUT_SECONDS = 2.0
"""Timeout in seconds of best-effort exchanges: cancellations, our own replies, the end of a session."""

_RECONNECT_DELAY_SECONDS, _MAX_RECONNECT_DELAY_SECONDS, _STABLE_SECONDS = 1.0, 30.0, 5.0
"""Reconnection delay in seconds, initial and maximum; a stream open for longer than the third resets it."""
_MAX_RESUMES = 5
"""Maximum attempts in a row to resume a response without a new event."""
_SESSION_ID = re.compile(r"[\x21-\x7e]{1,1024}\Z")
"""Visible ASCII, as the protocol requires, and at most 1,024 characters."""
_TEMPORARY_STATUSES = frozenset({408, 409, 425, 429})
"""Statuses that refuse a stream temporarily; 409 means that our previous stream is still open there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpTransport:
    """A server at a URL. `headers` are the operator's, sent with every request."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    egress: Egress = field(default_factory=Egress)

    @asynccontextmanager
    async def dial(self, notify: Notify) -> AsyncGenerator[Connection]:
        """Open a session; the first request opens the connection."""
        async with session(self.url, self.headers, self.egress) as client, background() as jobs:
            connection = _Connection(URL(self.url), client, notify, jobs)
            try:
                yield connection
            finally:
                with anyio.CancelScope(shield=True):
                    await connection.end()


class _Connection:
    def __init__(self, url: URL, client: Client, notify: Notify, jobs: ConnectionTasks) -> None:
        self._url, self._client, self._jobs = url, client, jobs
        self._router = MessageRouter(self._answer, self._post)
        self._limit = NotificationLimit(self._mark_lost)
        self._incoming = IncomingMessages(notify, self._router, self._limit)
        self._era: Era = "modern"
        self._revision = MODERN
        self._session: str | None = None
        self._last_id = 0
        self._lost_reason = ""
        self._closed = anyio.Event()
        self._scopes: set[anyio.CancelScope] = set()

    def use_revision(self, era: Era, revision: str) -> None:
        self._era, self._revision = era, revision

    def relay(self, capabilities: JsonObject) -> None:
        self._router.relay(capabilities)

    async def request(
        self,
        method: str,
        params: bytes,
        *,
        name: str | None = None,
        headers: Mapping[str, str] | None = None,
        callbacks: RequestCallbacks | None = None,
    ) -> JsonObject:
        self._last_id += 1
        request = PendingRequest(self._last_id, method, self._era, callbacks)
        if method not in GATEWAY_METHODS:
            self._limit.allow_for_call()
        if callbacks is not None and callbacks.report is not None:
            params = with_progress_token(params, request.id)
        body = encode_request(request.id, method, params)
        request_headers = self._request_headers(method, name)
        if headers:
            request_headers = {**request_headers, **headers}
        self._incoming.running += 1
        try:
            if callbacks is None or callbacks.channel is None or request.era == "modern":
                self._router.has_unrouted = self._router.has_unrouted or method not in GATEWAY_METHODS
                return await self._exchange(request, request_headers, body)
            return await self._exchange_with_messages(request, callbacks, request_headers, body)
        finally:
            self._incoming.running -= 1

    async def notify(self, method: str, params: bytes) -> None:
        with self._open():
            return await self._post(encode_notification(method, params), method)
        raise ConnectionLost(self._lost_reason)

    async def receive(self) -> None:
        if self._era == "legacy" and not self._lost_reason:
            with self._open():
                await self._receive_events()

    async def lost(self) -> str:
        await self._closed.wait()
        if self._limit.flooded:
            raise ServerMisbehaved(self._lost_reason)
        return self._lost_reason

    def details(self) -> Mapping[str, Any]:
        dropped = {"dropped_messages": self._limit.dropped} if self._limit.dropped else {}
        return {"session": self._session is not None, "unclaimed": self._incoming.unclaimed, **dropped}

    async def end(self) -> None:
        """Cancel everything in flight; delete our session at the server, if there is one."""
        has_session = self._session is not None and not self._lost_reason
        self._mark_lost("the connection to the server was closed")
        for scope in tuple(self._scopes):
            scope.cancel()
        self._client.close_connections()
        if not has_session:
            return
        with anyio.move_on_after(BEST_EFFORT_TIMEOUT_SECONDS), suppress(ServerError):
            (await send(self._client, "DELETE", self._url, self._request_headers(""))).close()

    # Outgoing

    async def _exchange(
        self, request: PendingRequest, request_headers: Mapping[str, str], body: bytes
    ) -> JsonObject:
        """Send a request and read its response, in the caller's task; `end` closes its connection."""
        if self._lost_reason:
            raise NotSent(self._lost_reason)
        try:
            response = await send(self._client, "POST", self._url, request_headers, body)
            return await self._read_response(response, request)
        except anyio.get_cancelled_exc_class():
            self._abandon(request)
            raise
        except ConnectionLost as error:
            raise (ConnectionLost(self._lost_reason) if self._lost_reason else error) from error.__cause__

    async def _exchange_with_messages(
        self,
        request: PendingRequest,
        callbacks: RequestCallbacks,
        request_headers: Mapping[str, str],
        body: bytes,
    ) -> JsonObject:
        """Like `_fetched`, for a caller that also receives messages outside of its response (legacy)."""
        messages, on_end = self._router.begin(request.id, callbacks), partial(self._router.close, request.id)
        try:
            if self._router.relays:
                read = partial(self._exchange, replace(request, messages=messages), request_headers, body)
                return await in_background(self._jobs, read, messages, on_end)
            outcome = await self._exchange(request, request_headers, body)
            await messages.flush()
            return outcome
        finally:
            on_end()

    @contextmanager
    def _open(self) -> Generator[None]:
        """Run the block until the connection ends, which cancels it; raise NotSent if it has ended."""
        if self._lost_reason:
            raise NotSent(self._lost_reason)
        with anyio.CancelScope() as scope:
            self._scopes.add(scope)
            try:
                yield
            finally:
                self._scopes.discard(scope)

    def _request_headers(self, method: str, name: str | None = None) -> Mapping[str, str]:
        if self._era == "modern":
            return modern_headers(self._revision, method, name)
        # A handshake starts a new session: session id and revision of the previous one do not apply.
        if method == INITIALIZE:
            self._session = None
            return {}
        request_headers = {} if self._revision < REVISION_HEADER_SINCE else {REVISION_HEADER: self._revision}
        if self._session is not None:
            request_headers[SESSION_HEADER] = self._session
        return request_headers

    async def _post(self, body: bytes, method: str = "") -> None:
        """Send a message that has no response."""
        response = await send(self._client, "POST", self._url, self._request_headers(method), body)
        try:
            if response.status >= 300:
                raise await self._error_of(response)
            await drain(response)
        finally:
            response.close()

    async def _post_best_effort(self, body: bytes) -> None:
        """Send a message that has no response, best-effort: errors are ignored, and the time is limited."""
        with anyio.move_on_after(BEST_EFFORT_TIMEOUT_SECONDS), suppress(ServerError):
            await self._post(body)

    def _abandon(self, request: PendingRequest) -> None:
        """Send `notifications/cancelled` to a legacy server; a modern one sees its response close."""
        if request.era == "modern" or request.method == INITIALIZE or self._lost_reason:
            return
        params = orjson.dumps({"requestId": request.id, "reason": "the caller no longer waits"})
        self._jobs.start(self._post_best_effort, encode_notification(CANCELLED, params))

    def _answer(self, body: bytes) -> bool:
        """Reply to a request of the server; a modern server may not send any."""
        return self._era == "legacy" and self._jobs.start(self._post_best_effort, body)

    # Incoming

    async def _read_response(self, response: Response, request: PendingRequest) -> JsonObject:
        try:
            await self._check(response)
            self._store_session_id(response, request)
            if response.content_type == STREAM:
                return await self._read_stream(response, request)
            outcome = await self._incoming.dispatch(await read_body(response), request)
        except BaseException:
            response.close()
            raise
        if outcome is None:
            raise InvalidResponse("the server's answer is not for the request it was sent")
        return _result(outcome)

    async def _check(self, response: Response) -> None:
        """Raise an error unless status, content coding and content type are those of a response."""
        if response.status >= 300:
            raise await self._error_of(response)
        check_coding(response)
        if response.content_type not in {JSON, STREAM}:
            raise InvalidResponse(f"the server answered with neither {JSON} nor {STREAM}")

    def _store_session_id(self, response: Response, request: PendingRequest) -> None:
        """Store the session id that the response to a handshake may carry."""
        if request.method != INITIALIZE or request.era == "modern":
            return
        if SESSION_HEADER not in response.headers:
            self._session = None
            return
        session_id = response.headers.get(SESSION_HEADER)
        if not _SESSION_ID.match(session_id):
            raise InvalidResponse("the server gave a session id that the protocol does not allow")
        self._session = session_id

    async def _error_of(self, response: Response) -> ServerError:
        """Return the error of an HTTP error response; an unknown session also ends the connection."""
        if response.status < 400:
            return status_error(response)
        text = b""
        with suppress(ServerError):
            check_coding(response)
            text = await read_body(response, MAX_ERROR_BYTES)
        error = json_rpc_error_in(text)
        if self._session is not None and ends_session(response.status, text, error):
            self._mark_lost("the server ended our session")
            return NotSent(self._lost_reason)
        return error or status_error(response)

    def _mark_lost(self, reason: str) -> None:
        self._lost_reason = self._lost_reason or reason
        self._router.mark_lost()
        self._closed.set()

    async def _read_stream(self, response: Response, request: PendingRequest) -> JsonObject:
        """Read events up to the response; a legacy stream that disconnects is resumed (Last-Event-ID)."""
        events, attempts = EventStreamParser(too_large=ResponseTooLarge), 0
        while True:
            last_id = events.last_id
            try:
                outcome = await self._read_events(response, events, request)
                ended = ConnectionLost("the server ended its answer before it gave a result")
            except ConnectionLost as error:
                outcome, ended = None, error
            except BaseException:
                response.close()
                raise
            if outcome is not None:
                self._release(response)
                return _result(outcome)
            response.close()
            attempts = attempts + 1 if events.last_id == last_id else 0
            if request.era == "modern" or not events.last_id or attempts >= _MAX_RESUMES:
                raise ended
            response = await self._resumed(events, ended)

    async def _resumed(self, events: EventStreamParser, ended: ConnectionLost) -> Response:
        try:
            with self._open():
                await anyio.sleep(events.pause(_RECONNECT_DELAY_SECONDS))
                response = await self._get(events)
                if response.status == 200 and response.content_type == STREAM:
                    return response
                response.close()
        except ServerError as fault:
            raise ended from fault
        raise ended

    async def _receive_events(self) -> None:
        events, pause = EventStreamParser(too_large=ResponseTooLarge), _RECONNECT_DELAY_SECONDS
        while not self._lost_reason:
            client, last_id = anyio.current_time(), events.last_id
            if not await self._read_event_stream(events):
                return
            if events.last_id != last_id or anyio.current_time() - client > _STABLE_SECONDS:
                pause = _RECONNECT_DELAY_SECONDS
            await anyio.sleep(events.pause(pause, pause - _RECONNECT_DELAY_SECONDS))
            pause = min(2 * pause, _MAX_RECONNECT_DELAY_SECONDS)

    async def _read_event_stream(self, events: EventStreamParser) -> bool:
        """Read one stream to its end; return whether another one should be opened."""
        try:
            response = await self._get(events)
        except ServerError:
            return True
        try:
            if response.status >= 400:
                await self._error_of(response)
                return response.status >= 500 or response.status in _TEMPORARY_STATUSES
            if response.status >= 300 or response.content_type != STREAM:
                return False
            await self._read_events(response, events, None)
        except ServerError:
            return True
        finally:
            response.close()
        return True

    async def _get(self, events: EventStreamParser) -> Response:
        events.restart()
        request_headers = {**self._request_headers(""), "Accept": STREAM}
        if events.last_id:
            request_headers["Last-Event-ID"] = events.last_id
        response = await send(self._client, "GET", self._url, request_headers)
        try:
            check_coding(response)
        except InvalidResponse:
            response.close()
            raise
        return response

    async def _read_events(
        self, response: Response, events: EventStreamParser, request: PendingRequest | None
    ) -> Outcome:
        slices = BodySlices(response)
        while data := await slices.next():
            for message in event_messages(events.feed(data), events, self._limit):
                outcome = await self._incoming.dispatch(message, request)
                if outcome is not None:
                    return outcome
            if self._limit.over:
                await self._limit.throttle()
                if self._lost_reason:
                    raise ConnectionLost(self._lost_reason)
        return None

    def _release(self, response: Response) -> None:
        """Return the connection to the pool: its stream has ended, or is about to."""
        if response.at_end() or not self._jobs.start(_drain_and_close, response):
            response.close()


async def _drain_and_close(response: Response) -> None:
    try:
        with anyio.move_on_after(BEST_EFFORT_TIMEOUT_SECONDS), suppress(ServerError):
            await drain(response)
    finally:
        response.close()


def _result(outcome: JsonObject | ServerError) -> JsonObject:
    if isinstance(outcome, ServerError):
        raise outcome
    return outcome
