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
from toolcrib.egress.http_connection import Response
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
    Heard,
    InvalidResponse,
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
    aside,
    check_coding,
    drain,
    ends_session,
    messages,
    modern_head,
    refusal_in,
    send,
    session,
    status_fault,
    whole,
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
    async def dial(self, heard: Heard) -> AsyncGenerator[Connection]:
        """Open a session; the first request opens the connection."""
        async with session(self.url, self.headers, self.egress) as opened, background() as jobs:
            connection = _Connection(URL(self.url), opened, heard, jobs)
            try:
                yield connection
            finally:
                with anyio.CancelScope(shield=True):
                    await connection.end()


class _Connection:
    def __init__(self, url: URL, opened: Client, heard: Heard, jobs: ConnectionTasks) -> None:
        self._url, self._opened, self._jobs = url, opened, jobs
        self._hearings = MessageRouter(self._answer, self._post)
        self._limit = NotificationLimit(self._lose)
        self._inbox = IncomingMessages(heard, self._hearings, self._limit)
        self._era: Era = "modern"
        self._revision = MODERN
        self._session: str | None = None
        self._last = 0
        self._why = ""
        self._gone = anyio.Event()
        self._scopes: set[anyio.CancelScope] = set()

    def speak(self, era: Era, revision: str) -> None:
        self._era, self._revision = era, revision

    def relay(self, capabilities: JsonObject) -> None:
        self._hearings.relay(capabilities)

    async def request(
        self,
        method: str,
        params: bytes,
        *,
        name: str | None = None,
        headers: Mapping[str, str] | None = None,
        ear: RequestCallbacks | None = None,
    ) -> JsonObject:
        self._last += 1
        asked = PendingRequest(self._last, method, self._era, ear)
        if method not in GATEWAY_METHODS:
            self._limit.allow_for_call()
        if ear is not None and ear.report is not None:
            params = with_progress_token(params, asked.id)
        body, head = encode_request(asked.id, method, params), self._head(method, name)
        if headers:
            head = {**head, **headers}
        self._inbox.running += 1
        try:
            if ear is None or ear.channel is None or asked.era == "modern":
                self._hearings.unheard = self._hearings.unheard or method not in GATEWAY_METHODS
                return await self._fetched(asked, head, body)
            return await self._listened(asked, ear, head, body)
        finally:
            self._inbox.running -= 1

    async def notify(self, method: str, params: bytes) -> None:
        with self._open():
            return await self._post(encode_notification(method, params), method)
        raise ConnectionLost(self._why)

    async def hear(self) -> None:
        if self._era == "legacy" and not self._why:
            with self._open():
                await self._hear()

    async def lost(self) -> str:
        await self._gone.wait()
        if self._limit.flooded:
            raise ServerMisbehaved(self._why)
        return self._why

    def details(self) -> Mapping[str, Any]:
        dropped = {"dropped_messages": self._limit.dropped} if self._limit.dropped else {}
        return {"session": self._session is not None, "unclaimed": self._inbox.unclaimed, **dropped}

    async def end(self) -> None:
        """Cancel everything in flight; delete our session at the server, if there is one."""
        kept = self._session is not None and not self._why
        self._lose("the connection to the server was closed")
        for scope in tuple(self._scopes):
            scope.cancel()
        self._opened.close_connections()
        if not kept:
            return
        with anyio.move_on_after(BEST_EFFORT_TIMEOUT_SECONDS), suppress(ServerError):
            (await send(self._opened, "DELETE", self._url, self._head(""))).close()

    # Outgoing

    async def _fetched(self, asked: PendingRequest, head: Mapping[str, str], body: bytes) -> JsonObject:
        """Send a request and read its response, in the caller's task; `end` closes its connection."""
        if self._why:
            raise NotSent(self._why)
        try:
            response = await send(self._opened, "POST", self._url, head, body)
            return await self._answered(response, asked)
        except anyio.get_cancelled_exc_class():
            self._abandon(asked)
            raise
        except ConnectionLost as cut:
            raise (ConnectionLost(self._why) if self._why else cut) from cut.__cause__

    async def _listened(
        self, asked: PendingRequest, ear: RequestCallbacks, head: Mapping[str, str], body: bytes
    ) -> JsonObject:
        """Like `_fetched`, for a caller that also receives messages outside of its response (legacy)."""
        hearing, over = self._hearings.begin(asked.id, ear), partial(self._hearings.close, asked.id)
        try:
            if self._hearings.relays:
                read = partial(self._fetched, replace(asked, hearing=hearing), head, body)
                return await aside(self._jobs, read, hearing, over)
            found = await self._fetched(asked, head, body)
            await hearing.flush()
            return found
        finally:
            over()

    @contextmanager
    def _open(self) -> Generator[None]:
        """Run the block until the connection ends, which cancels it; raise NotSent if it has ended."""
        if self._why:
            raise NotSent(self._why)
        with anyio.CancelScope() as scope:
            self._scopes.add(scope)
            try:
                yield
            finally:
                self._scopes.discard(scope)

    def _head(self, method: str, name: str | None = None) -> Mapping[str, str]:
        if self._era == "modern":
            return modern_head(self._revision, method, name)
        # A handshake starts a new session: session id and revision of the previous one do not apply.
        if method == INITIALIZE:
            self._session = None
            return {}
        head = {} if self._revision < REVISION_HEADER_SINCE else {REVISION_HEADER: self._revision}
        if self._session is not None:
            head[SESSION_HEADER] = self._session
        return head

    async def _post(self, body: bytes, method: str = "") -> None:
        """Send a message that has no response."""
        response = await send(self._opened, "POST", self._url, self._head(method), body)
        try:
            if response.status >= 300:
                raise await self._fault(response)
            await drain(response)
        finally:
            response.close()

    async def _tell(self, body: bytes) -> None:
        """Send a message that has no response, best-effort: errors are ignored, and the time is limited."""
        with anyio.move_on_after(BEST_EFFORT_TIMEOUT_SECONDS), suppress(ServerError):
            await self._post(body)

    def _abandon(self, asked: PendingRequest) -> None:
        """Send `notifications/cancelled` to a legacy server; a modern one sees its response close."""
        if asked.era == "modern" or asked.method == INITIALIZE or self._why:
            return
        params = orjson.dumps({"requestId": asked.id, "reason": "the caller no longer waits"})
        self._jobs.start(self._tell, encode_notification(CANCELLED, params))

    def _answer(self, body: bytes) -> bool:
        """Reply to a request of the server; a modern server may not send any."""
        return self._era == "legacy" and self._jobs.start(self._tell, body)

    # Incoming

    async def _answered(self, response: Response, asked: PendingRequest) -> JsonObject:
        try:
            await self._check(response)
            self._welcome(response, asked)
            if response.content_type == STREAM:
                return await self._streamed(response, asked)
            found = await self._inbox.take(await whole(response), asked)
        except BaseException:
            response.close()
            raise
        if found is None:
            raise InvalidResponse("the server's answer is not for the request it was sent")
        return _result(found)

    async def _check(self, response: Response) -> None:
        """Raise an error unless status, content coding and content type are those of a response."""
        if response.status >= 300:
            raise await self._fault(response)
        check_coding(response)
        if response.content_type not in {JSON, STREAM}:
            raise InvalidResponse(f"the server answered with neither {JSON} nor {STREAM}")

    def _welcome(self, response: Response, asked: PendingRequest) -> None:
        """Store the session id that the response to a handshake may carry."""
        if asked.method != INITIALIZE or asked.era == "modern":
            return
        if SESSION_HEADER not in response.headers:
            self._session = None
            return
        given = response.headers.get(SESSION_HEADER)
        if not _SESSION_ID.match(given):
            raise InvalidResponse("the server gave a session id that the protocol does not allow")
        self._session = given

    async def _fault(self, response: Response) -> ServerError:
        """Return the error of an HTTP error response; an unknown session also ends the connection."""
        if response.status < 400:
            return status_fault(response)
        text = b""
        with suppress(ServerError):
            check_coding(response)
            text = await whole(response, MAX_ERROR_BYTES)
        said = refusal_in(text)
        if self._session is not None and ends_session(response.status, text, said):
            self._lose("the server ended our session")
            return NotSent(self._why)
        return said or status_fault(response)

    def _lose(self, why: str) -> None:
        self._why = self._why or why
        self._hearings.shut()
        self._gone.set()

    async def _streamed(self, response: Response, asked: PendingRequest) -> JsonObject:
        """Read events up to the response; a legacy stream that disconnects is resumed (Last-Event-ID)."""
        events, tries = EventStreamParser(too_large=ResponseTooLarge), 0
        while True:
            reached = events.last_id
            try:
                found = await self._read(response, events, asked)
                ended = ConnectionLost("the server ended its answer before it gave a result")
            except ConnectionLost as cut:
                found, ended = None, cut
            except BaseException:
                response.close()
                raise
            if found is not None:
                self._let_go(response)
                return _result(found)
            response.close()
            tries = tries + 1 if events.last_id == reached else 0
            if asked.era == "modern" or not events.last_id or tries >= _MAX_RESUMES:
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

    async def _hear(self) -> None:
        events, pause = EventStreamParser(too_large=ResponseTooLarge), _RECONNECT_DELAY_SECONDS
        while not self._why:
            opened, reached = anyio.current_time(), events.last_id
            if not await self._listen(events):
                return
            if events.last_id != reached or anyio.current_time() - opened > _STABLE_SECONDS:
                pause = _RECONNECT_DELAY_SECONDS
            await anyio.sleep(events.pause(pause, pause - _RECONNECT_DELAY_SECONDS))
            pause = min(2 * pause, _MAX_RECONNECT_DELAY_SECONDS)

    async def _listen(self, events: EventStreamParser) -> bool:
        """Read one stream to its end; return whether another one should be opened."""
        try:
            response = await self._get(events)
        except ServerError:
            return True
        try:
            if response.status >= 400:
                await self._fault(response)
                return response.status >= 500 or response.status in _TEMPORARY_STATUSES
            if response.status >= 300 or response.content_type != STREAM:
                return False
            await self._read(response, events, None)
        except ServerError:
            return True
        finally:
            response.close()
        return True

    async def _get(self, events: EventStreamParser) -> Response:
        events.restart()
        head = {**self._head(""), "Accept": STREAM}
        if events.last_id:
            head["Last-Event-ID"] = events.last_id
        response = await send(self._opened, "GET", self._url, head)
        try:
            check_coding(response)
        except InvalidResponse:
            response.close()
            raise
        return response

    async def _read(
        self, response: Response, events: EventStreamParser, asked: PendingRequest | None
    ) -> Outcome:
        slices = BodySlices(response)
        while data := await slices.next():
            for message in messages(events.feed(data), events, self._limit):
                found = await self._inbox.take(message, asked)
                if found is not None:
                    return found
            if self._limit.over:
                await self._limit.throttle()
                if self._why:
                    raise ConnectionLost(self._why)
        return None

    def _let_go(self, response: Response) -> None:
        """Return the connection to the pool: its stream has ended, or is about to."""
        if response.at_end() or not self._jobs.start(_finish, response):
            response.close()


async def _finish(response: Response) -> None:
    try:
        with anyio.move_on_after(BEST_EFFORT_TIMEOUT_SECONDS), suppress(ServerError):
            await drain(response)
    finally:
        response.close()


def _result(found: JsonObject | ServerError) -> JsonObject:
    if isinstance(found, ServerError):
        raise found
    return found
