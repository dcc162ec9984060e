"""The MCP frontend over stdin and stdout."""

import asyncio
import os
import stat
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from math import inf
from typing import Any, Protocol

import anyio
import anyio.to_thread
import orjson
from anyio.abc import TaskGroup

from toolcrib.descriptors import PipeEnd
from toolcrib.errors import Refused
from toolcrib.frontends.mcp.client_requests import RunningRequests
from toolcrib.frontends.mcp.engine import Engine, error_reply, parse_initialize
from toolcrib.frontends.mcp.request import (
    MCP_ORIGIN,
    UNCHECKED_KEYS,
    UNKNOWN_CLIENT,
    JsonRpcReply,
    McpRequest,
    Peer,
    ProtocolError,
    checked_message,
    meta_of,
    origin_of,
    peer_of,
)
from toolcrib.frontends.mcp.sessions import McpSession
from toolcrib.gateway import Gateway
from toolcrib.http.request import check_duplicate_keys, parse_body
from toolcrib.mcp.jsonrpc import (
    INVALID_REQUEST,
    PARSE_ERROR,
    encode_error,
    encode_response,
    id_of,
    is_response,
)
from toolcrib.mcp.lines import LineSplitter, OverlongLine
from toolcrib.mcp.meta import VERSION_KEY
from toolcrib.mcp.methods import CANCELLED, DISCOVER, INITIALIZE, INITIALIZED, LISTEN, PING, SET_LEVEL
from toolcrib.mcp.revisions import LEGACY, MODERN
from toolcrib.model import Caller, JsonObject

# --- The process's own stdin and stdout as lines: by the event loop for pipes, by a thread for other files
# ---

MAX_LINE_BYTES = 4 * 1024 * 1024
"""Longest accepted line, in bytes."""

_CHUNK_BYTES = 1 << 16


class _ByteStream(Protocol):
    """A byte stream; an empty read means its end."""

    async def read(self, max_bytes: int, /) -> bytes: ...


class LineReader:
    """Splits a byte stream into lines; yields `OverlongLine` for one that is too long."""

    def __init__(self, source: _ByteStream, limit: int = MAX_LINE_BYTES) -> None:
        self._source, self._limit = source, limit

    @classmethod
    @asynccontextmanager
    async def of_stdin(cls) -> AsyncGenerator["LineReader"]:
        """Open stdin for reading."""
        if not _is_pipe(sys.stdin.fileno()):
            yield cls(_ThreadedReader(sys.stdin.fileno()))
            return
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=_CHUNK_BYTES)
        transport, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), PipeEnd(os.dup(sys.stdin.fileno())).give_to(loop)
        )
        try:
            yield cls(reader)
        finally:
            transport.close()

    async def __aiter__(self) -> AsyncIterator[bytes | OverlongLine]:
        """Yield every line that is not blank, also the last one without a newline."""
        lines = LineSplitter(self._limit, inf)
        while chunk := await self._source.read(_CHUNK_BYTES):
            for line in lines.feed(chunk):
                if line.tail if isinstance(line, OverlongLine) else line.strip():
                    yield line
        if (rest := lines.end()).strip():
            yield rest


class _ThreadedReader:
    """A file or a terminal: reads may block, so they run in a thread."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    async def read(self, max_bytes: int, /) -> bytes:
        return await anyio.to_thread.run_sync(os.read, self._descriptor, max_bytes, abandon_on_cancel=True)


class LineWriter:
    """Writes lines to stdout, in the order of the calls."""

    def __init__(self, descriptor: int, writer: asyncio.StreamWriter | None) -> None:
        self._descriptor, self._writer = descriptor, writer

    @classmethod
    @asynccontextmanager
    async def to_stdout(cls) -> AsyncGenerator["LineWriter"]:
        """Take over stdout: file descriptor 1 is redirected to stderr for all other output."""
        sys.stdout.flush()
        descriptor = os.dup(1)
        os.dup2(2, 1)
        try:
            yield cls(descriptor, await _writer(descriptor) if _is_pipe(descriptor) else None)
        finally:
            sys.stdout.flush()
            os.dup2(descriptor, 1)
            os.close(descriptor)

    async def line(self, message: bytes) -> None:
        """Write one message; waits while the reader is slow (backpressure)."""
        if self._writer is None:
            os.write(self._descriptor, message + b"\n")
            return
        self._writer.write(message + b"\n")
        await self._writer.drain()


async def _writer(descriptor: int) -> asyncio.StreamWriter:
    loop = asyncio.get_running_loop()
    transport, protocol = await loop.connect_write_pipe(
        lambda: asyncio.streams.FlowControlMixin(loop=loop), PipeEnd(os.dup(descriptor)).give_to(loop)
    )
    return asyncio.StreamWriter(transport, protocol, None, loop)


def _is_pipe(descriptor: int) -> bool:
    """Whether the event loop can poll it. A terminal is shared: non-blocking mode would affect others."""
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


# --- MCP over stdio, for a client that starts the gateway as a child process ---

_HANDSHAKE_METHODS = frozenset({PING, DISCOVER, SET_LEVEL})
"""Methods that are answered before the sources have settled."""
_FINISH_TIMEOUT_SECONDS = 1.0
"""Seconds for the last responses after the client has closed stdin."""


async def serve_stdio(gateway: Gateway, caller: Caller, settled: Callable[[], Awaitable[object]]) -> None:
    """Serve one client until it closes stdin; other output to stdout is redirected to stderr.

    Handshake requests are answered at once, others once `settled` returns: clients list the tools right after
    the start, and many never list them again.
    """
    async with (
        LineReader.of_stdin() as lines,
        LineWriter.to_stdout() as output,
        anyio.create_task_group() as tasks,
    ):
        client = _Client(Engine(gateway), caller, output, tasks)
        tasks.start_soon(client.settle, settled)
        async for line in lines:
            client.take(line)
        await client.finish()
        tasks.cancel_scope.cancel()


class _Client:
    """The only client of this process. The era is determined per message."""

    streams = True

    def __init__(self, engine: Engine, caller: Caller, output: LineWriter, tasks: TaskGroup) -> None:
        self._engine, self._caller, self._output, self._tasks = engine, caller, output, tasks
        self._session: McpSession | None = None
        self._unknown_peer = Peer(caller=caller, revision=LEGACY, capabilities={})
        self._running = RunningRequests()
        self._running_count = 0
        self._ready, self._idle = anyio.Event(), anyio.Event()

    async def settle(self, settled: Callable[[], Awaitable[object]]) -> None:
        """Release the held requests once the sources have settled."""
        await settled()
        self._ready.set()

    async def send(self, message: bytes) -> None:
        """Write one message."""
        await self._output.line(message)

    async def finish(self) -> None:
        """Wait for the last responses, with a timeout that starts once requests are no longer held back."""
        if self._running_count:
            await self._ready.wait()
        with anyio.move_on_after(_FINISH_TIMEOUT_SECONDS):
            while self._running_count:
                await self._idle.wait()

    def take(self, line: bytes | OverlongLine) -> None:
        """Handle one line: a message, or an invalid one that gets an error response."""
        if isinstance(line, OverlongLine):
            self._start(
                self.send, encode_error(None, INVALID_REQUEST, f"the line is over {MAX_LINE_BYTES} bytes")
            )
            return
        message, code = None, PARSE_ERROR
        try:
            message = parse_body(line)
            code = INVALID_REQUEST
            check_duplicate_keys(line, message, UNCHECKED_KEYS)
            self._handle(checked_message(message))
        except Refused as error:
            self._start(self.send, encode_error(id_of(message), code, str(error)))

    def _handle(self, message: JsonObject) -> None:
        if is_response(message):
            if self._session is not None:
                self._session.take(message)
        elif "id" not in message:
            self._handle_notification(message["method"], message.get("params", {}))
        elif message["method"] == INITIALIZE:
            # Handled synchronously: it sets the session that the next messages use.
            self._start(self.send, self._initialize(message["id"], message.get("params", {})).body)
        elif message["method"] == LISTEN:
            # Not counted as open: it never ends, and `finish` must not wait for it.
            self._tasks.start_soon(self._answer, message)
        else:
            self._start(self._answer, message)

    def _handle_notification(self, method: str, params: JsonObject) -> None:
        if method == CANCELLED:
            self._running.cancel(params.get("requestId"))
        elif method == INITIALIZED:
            session = self._opened_session()
            if session.stream is None:
                session.stream = anyio.CancelScope()
                self._tasks.start_soon(self._engine.changes.send_changes, session, self._caller, self.send)

    def _opened_session(self) -> McpSession:
        """Return the session; creates one with defaults for a client that skipped `initialize`."""
        if self._session is None:
            self._session = McpSession("stdio", self._caller, LEGACY, {}, UNKNOWN_CLIENT)
        return self._session

    def _start(self, handler: Callable[[Any], Awaitable[None]], argument: Any) -> None:
        self._running_count += 1
        self._tasks.start_soon(self._count_running, handler, argument)

    async def _count_running(self, handler: Callable[[Any], Awaitable[None]], argument: Any) -> None:
        try:
            await handler(argument)
        finally:
            self._running_count -= 1
            if not self._running_count:
                self._idle.set()
                self._idle = anyio.Event()

    async def _answer(self, message: JsonObject) -> None:
        reply = await self._running.run(message["id"], self._reply(message))
        if reply is not None:
            await self.send(reply.body)

    def _initialize(self, id: str | int, params: JsonObject) -> JsonRpcReply:
        try:
            revision, capabilities, client = parse_initialize(params)
        except ProtocolError as error:
            return error_reply(id, error)
        self._session = McpSession("stdio", self._caller, revision, capabilities, client)
        return JsonRpcReply(
            encode_response(id, orjson.dumps(self._engine.initialize_result(self._caller, revision)))
        )

    async def _reply(self, message: JsonObject) -> JsonRpcReply:
        params = message.get("params", {})
        meta = meta_of(params)
        try:
            peer = self._peer(message, meta)
        except ProtocolError as error:
            return error_reply(message["id"], error)
        origin = origin_of(MCP_ORIGIN, peer, meta)
        request = McpRequest(message["id"], message["method"], params, peer, self, origin)
        if message["method"] not in _HANDSHAKE_METHODS:
            await self._ready.wait()
        return await self._engine.answer(request)

    def _peer(self, message: JsonObject, meta: JsonObject) -> Peer:
        if VERSION_KEY in meta or message["method"] == DISCOVER:
            return peer_of(message, self._caller, None)
        if self._session is not None:
            return self._session.peer
        if message["method"] == PING:
            return self._unknown_peer
        hint = f"introduce yourself with `initialize` first, or say in `_meta` that you speak {MODERN}"
        raise ProtocolError(INVALID_REQUEST, hint)
