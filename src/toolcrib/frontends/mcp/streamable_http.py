"""The MCP frontend over streamable HTTP, with server-sent events."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import lru_cache, partial
from typing import cast

import anyio

from toolcrib.background_tasks import background_tasks, keep_running
from toolcrib.errors import Refused, ToolcribError
from toolcrib.formats.mcp import meta
from toolcrib.formats.rest import status
from toolcrib.frontends.mcp.change_notifications import end_of_stream
from toolcrib.frontends.mcp.engine import Engine, error_reply, parse_initialize
from toolcrib.frontends.mcp.request import (
    UNCHECKED_KEYS,
    JsonRpcReply,
    McpRequest,
    Peer,
    ProtocolError,
    checked_message,
    header_value,
    meta_of,
    origin_of,
    peer_of,
)
from toolcrib.frontends.mcp.sessions import IDLE_SECONDS, MAX_SESSIONS, McpSession, McpSessionTable
from toolcrib.gateway import Gateway
from toolcrib.http import HttpResponse, Request, json_response
from toolcrib.http.request import check_duplicate_keys, parse_body
from toolcrib.http.response import EVENT_STREAM_HEADERS, JSON_HEADERS, SAFE_HEADERS, retry_header
from toolcrib.interfaces import Store
from toolcrib.mcp.headers import SESSION_HEADER
from toolcrib.mcp.jsonrpc import (
    HTTP_STATUSES,
    INVALID_REQUEST,
    PARSE_ERROR,
    encode_error,
    encode_response,
    id_of,
    is_response,
)
from toolcrib.mcp.methods import CANCELLED, INITIALIZE, LISTEN
from toolcrib.mcp.revisions import BATCH_REVISION, LEGACY, LEGACY_REVISIONS
from toolcrib.mcp.sse import encode_comment, encode_event
from toolcrib.model import Json, JsonObject

# --- The response to one HTTP request: plain JSON, or an event stream once a message precedes the result ---

HEARTBEAT_SECONDS = 15.0
"""Seconds of silence after which a heartbeat comment is sent, as proxies close idle connections."""

_TICKS_PER_HEARTBEAT = 5
"""Timer ticks per `HEARTBEAT_SECONDS`."""
_COMMENT = encode_comment(b"still running")


class HttpResponseChannel:
    """Becomes an event stream with the first message; otherwise a JSON response."""

    __slots__ = ("_closed", "_request", "_streams", "open", "wrote")

    def __init__(self, request: Request, *, streams: bool = True) -> None:
        self._request, self._streams = request, streams
        self.open = self._closed = self.wrote = False

    async def send(self, message: bytes) -> None:
        """Send a message before the result; dropped for a client that does not accept event streams."""
        if self._streams:
            await self.write(encode_event(message))

    @property
    def streams(self) -> bool:
        """Whether messages can be sent before the result."""
        return self._streams

    async def write(self, part: bytes) -> None:
        """Write a part of the stream; the first part also sends the headers."""
        send = self._request.send
        self.wrote = True
        if not self.open:
            self.open = True
            await send({"type": "http.response.start", "status": 200, "headers": list(EVENT_STREAM_HEADERS)})
        await send({"type": "http.response.body", "body": part, "more_body": True})

    async def comment(self) -> None:
        """Send a heartbeat comment."""
        if not self._closed:
            await self.write(_COMMENT)

    async def finish(self, body: bytes | None, status: int) -> HttpResponse | None:
        """Send the result: as the last event, or as a plain response where no stream was opened.

        Without a body, as for a cancelled request, the stream just ends.
        """
        self._closed = True
        if body is not None and not self.open:
            return HttpResponse(status, body)
        if body is not None:
            await self.send(body)
        else:
            await self.write(b"")
        await self._request.send({"type": "http.response.body", "body": b""})
        return None


class OpenResponses:
    """All open responses: one timer sends heartbeats to those that are silent for too long."""

    def __init__(self, heartbeat_seconds: float = HEARTBEAT_SECONDS) -> None:
        self._pause = heartbeat_seconds / _TICKS_PER_HEARTBEAT
        # Number of silent ticks of each: reading the clock for every request would cost more.
        self._open: dict[HttpResponseChannel, int] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._comments: set[asyncio.Task[None]] = set()

    def add(self, response: HttpResponseChannel) -> None:
        """Send heartbeats on a response from now on."""
        self._open[response] = 0
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._pause, self._tick, loop)

    def discard(self, response: HttpResponseChannel) -> None:
        """Send no more heartbeats on it."""
        self._open.pop(response, None)

    def _tick(self, loop: asyncio.AbstractEventLoop) -> None:
        for response, silent in self._open.items():
            self._open[response] = 0 if response.wrote else silent + 1
            response.wrote = False
            if silent >= _TICKS_PER_HEARTBEAT and response.streams:
                comment = loop.create_task(_comment(response))
                self._comments.add(comment)
                comment.add_done_callback(self._comments.discard)
        self._timer = loop.call_later(self._pause, self._tick, loop) if self._open else None


async def _comment(response: HttpResponseChannel) -> None:
    # The handler of this request detects the disconnect itself; a heartbeat need not report it.
    with suppress(OSError, RuntimeError):
        await response.comment()


# --- MCP over Streamable HTTP for authenticated callers: parses messages, finds sessions, sends responses
# ---

MAX_BODY_BYTES = 4 * 1024 * 1024
"""Largest request body, in bytes."""
MAX_BATCH_MESSAGES = 100
"""Most messages of one batch."""

_LEGACY_HEADERS = frozenset(each.encode() for each in LEGACY_REVISIONS)
_ACCEPTED = HttpResponse(202, b"", SAFE_HEADERS)
_JSON, _EVENTS = b"application/json", b"text/event-stream"


class StreamableHttpFrontend:
    """Handles requests of an authenticated `request.caller`, in the context it requested."""

    def __init__(
        self,
        gateway: Gateway,
        key: bytes,
        store: Store,
        *,
        max_sessions: int = MAX_SESSIONS,
        idle_seconds: float = IDLE_SECONDS,
    ) -> None:
        self._gateway = gateway
        self._engine = Engine(gateway)
        self._sessions = McpSessionTable(
            key,
            store.mcp_sessions,
            store.clock.now,
            max_sessions=max_sessions,
            share=gateway.share,
            idle_seconds=idle_seconds,
            on_forgotten=self._session_dropped,
        )
        self._open_responses = OpenResponses()
        self._streams: dict[anyio.CancelScope, str] = {}

    @asynccontextmanager
    async def run(self) -> AsyncGenerator[None]:
        """Serve until the context is left; open streams are then closed."""
        async with background_tasks() as tasks:
            tasks.start_soon(keep_running, self._sessions.run)
            try:
                yield
            finally:
                self.end()

    def _session_dropped(self, session: McpSession) -> None:
        self._engine.resource_methods.drop_session(session)
        self._gateway.session_ended(session.id)

    def end(self, key: str | None = None) -> None:
        """Close the open streams of a revoked key; without a key, close all and fail pending questions."""
        if key is None:
            self._sessions.close_questions()
        for stream, owner in tuple(self._streams.items()):
            if key is None or key == owner:
                stream.cancel()

    def answer(self, request: Request) -> Awaitable[HttpResponse | None]:
        """Handle one request; returns None where the response was streamed."""
        return self._post(request) if request.method == "POST" else self._get_or_delete(request)

    async def _get_or_delete(self, request: Request) -> HttpResponse | None:
        if (header_value(request.headers, b"mcp-protocol-version") or LEGACY.encode()) not in _LEGACY_HEADERS:
            body = encode_error(None, INVALID_REQUEST, "in this revision every message is a POST")
            return HttpResponse(405, body, (*JSON_HEADERS, (b"allow", b"POST")))
        try:
            session = await self._session(request)
            if request.method == "DELETE":
                await self._sessions.end(session)
                return HttpResponse(200, b"", SAFE_HEADERS)
            return await self._serve_stream(request, session)
        except ToolcribError as error:
            return self._refused(request, error, INVALID_REQUEST, None)

    # --- one message, or a batch ---

    async def _post(self, request: Request) -> HttpResponse | None:
        code, message = INVALID_REQUEST, None
        try:
            body = await request.body(MAX_BODY_BYTES)
            _check_type(request.headers)
            code = PARSE_ERROR
            message = parse_body(body)
            code = INVALID_REQUEST
            check_duplicate_keys(body, message, UNCHECKED_KEYS)
            revision = header_value(request.headers, b"mcp-protocol-version")
            if revision is not None and revision not in _LEGACY_HEADERS:
                return await self._modern(request, checked_message(message))
            if type(message) is list:
                return await self._batch(request, cast("list[Json]", message))
            return await self._legacy(request, checked_message(message))
        except ToolcribError as error:
            return self._refused(request, error, code, id_of(message))

    def _refused(
        self, request: Request, error: ToolcribError, code: int, id: str | int | None
    ) -> HttpResponse:
        result = self._gateway.refusal(error.problem, request.origin)
        body = encode_error(id, code, error.problem.message, meta(result))
        return HttpResponse(status(result), body, (*JSON_HEADERS, *retry_header(error.problem)))

    # --- the modern era: stateless requests ---

    async def _modern(self, request: Request, message: JsonObject) -> HttpResponse | None:
        if is_response(message):
            raise Refused(
                "INVALID_REQUEST",
                "this protocol revision has no server requests, so a response is not accepted",
            )
        if "id" not in message:
            return _ACCEPTED
        if not _accepts(request, _JSON, _EVENTS):
            return _not_acceptable("accept both application/json and text/event-stream")
        response = HttpResponseChannel(request)
        try:
            peer = peer_of(message, request.caller, request.headers)
        except ProtocolError as error:
            return await self._finish(response, error_reply(message["id"], error))
        mcp_request = _mcp_request(request, message, peer, response)
        if mcp_request.method == LISTEN:
            return await self._finish(response, await self._serve_subscription(mcp_request))
        self._open_responses.add(response)
        try:
            reply = await self._engine.answer(mcp_request)
        finally:
            self._open_responses.discard(response)
        return await self._finish(response, reply)

    def _finish(self, response: HttpResponseChannel, reply: JsonRpcReply) -> Awaitable[HttpResponse | None]:
        return response.finish(reply.body, 200 if reply.code is None else HTTP_STATUSES.get(reply.code, 200))

    async def _serve_subscription(self, mcp_request: McpRequest) -> JsonRpcReply:
        response = cast("HttpResponseChannel", mcp_request.response)
        self._open_responses.add(response)
        try:
            with self._stream(mcp_request.peer.caller.key):
                return await self._engine.answer(mcp_request)
        finally:
            self._open_responses.discard(response)
        return JsonRpcReply(encode_response(mcp_request.id, end_of_stream(mcp_request)))

    @contextmanager
    def _stream(self, key: str) -> Generator[anyio.CancelScope]:
        """Serve a stream until the client disconnects, or `end` cancels the scope."""
        with anyio.CancelScope() as scope:
            self._streams[scope] = key
            try:
                yield scope
            finally:
                del self._streams[scope]

    # --- the handshake era: a session ---

    async def _legacy(self, request: Request, message: JsonObject) -> HttpResponse | None:
        if message.get("method") == INITIALIZE and "id" in message:
            return self._initialize(request, message)
        session = await self._session(request)
        response = HttpResponseChannel(request, streams=_accepts(request, _EVENTS))
        if "id" not in message or is_response(message):
            return self._accept(session, message)
        # In this era a disconnect is no cancellation: clients cancel with `notifications/cancelled`.
        request.scope["toolcrib.outlives"] = True
        self._open_responses.add(response)
        try:
            reply = await self._run(request, session, message, response)
        finally:
            self._open_responses.discard(response)
        return await response.finish(None if reply is None else reply.body, 200)

    def _initialize(self, request: Request, message: JsonObject) -> HttpResponse:
        try:
            revision, capabilities, client = parse_initialize(message.get("params", {}))
        except ProtocolError as error:
            return HttpResponse(200, error_reply(message["id"], error).body)
        session = self._sessions.open(request.caller, revision, capabilities, client)
        result = self._engine.initialize_result(request.caller, revision)
        reply = {"jsonrpc": "2.0", "id": message["id"], "result": result}
        return json_response(reply, 200, (b"mcp-session-id", session.id.encode()))

    async def _session(self, request: Request) -> McpSession:
        session_id = header_value(request.headers, b"mcp-session-id")
        if session_id is None:
            message = "send the Mcp-Session-Id that `initialize` was answered with"
            raise Refused("INVALID_REQUEST", message, path=SESSION_HEADER)
        return await self._sessions.find(session_id.decode("latin-1"), request.caller)

    def _accept(self, session: McpSession, message: JsonObject) -> HttpResponse:
        """Handle a notification or a response, which get no response themselves."""
        if is_response(message):
            if not session.take(message):
                why = "the question was asked by another replica, which is not here; introduce yourself again"
                raise Refused("NOT_FOUND", why, path=SESSION_HEADER)
        elif message["method"] == CANCELLED:
            session.running.cancel(message.get("params", {}).get("requestId"))
        return _ACCEPTED

    async def _run(
        self, request: Request, session: McpSession, message: JsonObject, response: HttpResponseChannel
    ) -> JsonRpcReply | None:
        mcp_request = _mcp_request(request, message, session.peer, response)
        return await session.running.run(mcp_request.id, self._engine.answer(mcp_request))

    async def _batch(self, request: Request, messages: list[Json]) -> HttpResponse | None:
        """Handle a JSON-RPC batch; only one revision has them."""
        session = await self._session(request)
        if session.peer.revision != BATCH_REVISION:
            raise Refused("INVALID_REQUEST", "the body must be one JSON-RPC message; batches are not taken")
        if not 0 < len(messages) <= MAX_BATCH_MESSAGES:
            raise Refused("INVALID_REQUEST", f"a batch holds 1 to {MAX_BATCH_MESSAGES} messages")
        checked = [checked_message(message) for message in messages]
        for each in checked:
            if "id" not in each or is_response(each):
                self._accept(session, each)
        requests = [each for each in checked if "id" in each and not is_response(each)]
        if not requests:
            return _ACCEPTED
        response = HttpResponseChannel(request, streams=_accepts(request, _EVENTS))
        bodies = await self._run_all(request, session, requests, response)
        return await response.finish(b"[%b]" % b",".join(bodies) if bodies else None, 200)

    async def _run_all(
        self,
        request: Request,
        session: McpSession,
        requests: Sequence[JsonObject],
        response: HttpResponseChannel,
    ) -> list[bytes]:
        bodies: list[bytes] = []

        async def answer(message: JsonObject) -> None:
            reply = await self._run(request, session, message, response)
            if reply is not None:
                bodies.append(reply.body)

        async with anyio.create_task_group() as tasks:
            for each in requests:
                tasks.start_soon(answer, each)
        return bodies

    async def _serve_stream(self, request: Request, session: McpSession) -> HttpResponse | None:
        """Serve the GET stream of a session; an earlier one is assumed to be broken, and cancelled."""
        if not _accepts(request, _EVENTS):
            return _not_acceptable("accept text/event-stream")
        if session.stream is not None:
            session.stream.cancel()
        response = HttpResponseChannel(request)
        with self._stream(request.caller.key) as scope:
            session.stream = scope
            self._open_responses.add(response)
            try:
                begin = partial(response.write, encode_comment(b"listening"))
                await self._engine.changes.send_changes(session, request.caller, response.send, begin)
            finally:
                self._open_responses.discard(response)
                if session.stream is scope:
                    session.stream = None
        return await response.finish(None, 200)


def _mcp_request(
    request: Request, message: JsonObject, peer: Peer, response: HttpResponseChannel
) -> McpRequest:
    params = message.get("params", {})
    origin = origin_of(request.origin, peer, meta_of(params))
    return McpRequest(message["id"], message["method"], params, peer, response, origin, request.headers)


def _accepts(request: Request, *media_types: bytes) -> bool:
    """Whether a client accepts these media types; without an Accept header, all are accepted."""
    return _accepted(request.headers.get(b"accept", b"*/*"), media_types)


@lru_cache(maxsize=256)
def _accepted(accept: bytes, media_types: tuple[bytes, ...]) -> bool:
    accepted = {each.partition(b";")[0].strip() for each in accept.lower().split(b",")}
    return all(
        not accepted.isdisjoint((media, b"%b/*" % media.partition(b"/")[0], b"*/*")) for media in media_types
    )


def _not_acceptable(what: str) -> HttpResponse:
    return HttpResponse(406, encode_error(None, INVALID_REQUEST, f"the client must {what}"))


def _check_type(headers: Mapping[bytes, bytes]) -> None:
    media = headers.get(b"content-type", b"")
    if media != b"application/json" and media.partition(b";")[0].strip().lower() != b"application/json":
        raise Refused("INVALID_REQUEST", "an MCP message is sent as application/json", path="Content-Type")
