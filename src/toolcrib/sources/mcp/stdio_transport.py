"""MCP over the standard streams of a child process: one JSON-RPC message per line."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel

from toolcrib.interfaces import ServerMisbehaved
from toolcrib.mcp.jsonrpc import MAX_MESSAGE_BYTES, guess_id
from toolcrib.mcp.lines import MAX_SKIPPED_BYTES, OverlongLine
from toolcrib.mcp.revisions import Era
from toolcrib.model import JsonObject
from toolcrib.sources.mcp.connection import (
    Connection,
    ConnectionLost,
    InvalidResponse,
    Notify,
    RequestCallbacks,
    ResponseTooLarge,
)
from toolcrib.sources.mcp.process_streams import (
    ProcessErrors,
    ProcessInput,
    ProcessOutput,
    RateLimitedLog,
    Redact,
    StderrTail,
)
from toolcrib.sources.mcp.request_multiplexer import NotificationLimit, RequestMultiplexer
from toolcrib.sources.mcp.server_process import NO_LIMITS, Process, ProcessLimits, environment, find, launch

MAX_UNREAD_BYTES = 1 << 20
"""Bytes buffered for a server that does not read, above which best-effort messages are dropped."""

_EXIT_WAIT_SECONDS, _MAX_EXIT_WAITS = 0.1, 50
"""Seconds of silence after a first sign of the end (an exit, a closed stream) until the connection is closed
without the other signs (the status, responses in the pipe); and how often further output may extend that."""


_LAUNCHING: anyio.lowlevel.RunVar[anyio.Lock] = anyio.lowlevel.RunVar("_LAUNCHING")


def _launch_lock() -> anyio.Lock:
    """Return the lock of this event loop that lets one server start at a time.

    Starting a process blocks the loop for milliseconds; servers that start together, as after a reload,
    would block it for the sum of them.
    """
    try:
        return _LAUNCHING.get()
    except LookupError:
        lock = anyio.Lock()
        _LAUNCHING.set(lock)
        return lock


@dataclass(frozen=True, slots=True, kw_only=True)
class StdioTransport:
    """Starts a server and connects to its standard streams; every `dial` starts its own process."""

    command: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    cwd: Path | None = None
    redact: Redact = str
    """Redacts the secrets in the server's standard error."""
    server: str = ""
    """Name in the log; its program's name if empty."""
    limits: ProcessLimits = NO_LIMITS
    patience: float = 2.0
    """Timeout in seconds of each step of ending it: closing its input, SIGTERM, SIGKILL."""

    @asynccontextmanager
    async def dial(self, notify: Notify) -> AsyncGenerator[Connection]:
        """Start the server; leaving the context ends it and all its descendants."""
        env = environment(self.env)
        program = find(self.command, env, self.cwd)
        connection = _Connection(notify, redact=self.redact, server=self.server or Path(program).name)
        async with _launch_lock():
            # Other tasks run between two starts; a cancellation after the start would leak the process.
            await anyio.lowlevel.checkpoint()
            process = launch(
                program,
                self.command,
                env=env,
                cwd=self.cwd,
                grace=self.patience,
                ended=connection.exited,
                limits=self.limits,
            )
        try:
            await connection.open(process)
            yield connection
        finally:
            with anyio.CancelScope(shield=True):
                await connection.close(process, self.patience)


class _Connection:
    """One running server. Callbacks of the event loop read its streams: there is no reader task."""

    def __init__(self, notify: Notify, *, redact: Redact, server: str) -> None:
        self._limit = limit = NotificationLimit(self._end)
        self._exchange = RequestMultiplexer(
            self._send, notify, send_reply=self._answer, reply=self._reply, limit=limit
        )
        self._input = ProcessInput(partial(self._ending, "it closed its standard input"))
        ended = partial(self._ending, "it closed its standard output")
        endless = partial(
            self._end, f"it wrote more than {MAX_SKIPPED_BYTES >> 20} MiB without an end of line"
        )
        self._output = ProcessOutput(self._handle_line, ended, endless, limit.pause, limit.charge)
        self._stderr_tail = StderrTail(redact, server)
        self._errors = ProcessErrors(self._stderr_tail)
        message = "%s wrote to its standard output what is no message: %s"
        self._stray_log = RateLimitedLog(message, redact, server)
        self._stray_lines = self._unanswered = 0
        self._pid: int | None = None
        self._exit_reason = self._first_sign = ""
        self._lost_reason: str | None = None
        self._closed = anyio.Event()
        self._exit_timer: asyncio.TimerHandle | None = None
        self._has_output = False

    def use_revision(self, era: Era, revision: str) -> None:
        """Do nothing: on this transport, the era only shows in the messages."""

    def relay(self, capabilities: JsonObject) -> None:
        self._exchange.relay(capabilities)

    async def request(
        self,
        method: str,
        params: bytes,
        *,
        name: str | None = None,
        headers: Mapping[str, str] | None = None,
        callbacks: RequestCallbacks | None = None,
    ) -> JsonObject:
        if self._input.full:
            await self._input.wait_writable()
        return await self._exchange.request(method, params, callbacks=callbacks)

    async def notify(self, method: str, params: bytes) -> None:
        if self._input.full:
            await self._input.wait_writable()
        self._exchange.notify(method, params)

    async def receive(self) -> None:
        await self._closed.wait()

    async def lost(self) -> str:
        await self._closed.wait()
        if self._limit.flooded:
            raise ServerMisbehaved(self._lost_reason)
        return self._lost_reason or ""

    def details(self) -> Mapping[str, Any]:
        counts = {
            "stray_lines": self._stray_lines,
            "unclaimed_answers": self._exchange.unclaimed,
            "requests_not_answered": self._unanswered,
            "dropped_messages": self._limit.dropped,
        }
        running = {"pid": self._pid} if self._pid is not None and self._lost_reason is None else {}
        return {
            **running,
            "stderr_tail": self._stderr_tail.lines(),
            **{name: count for name, count in counts.items() if count},
        }

    async def open(self, process: Process) -> None:
        loop, streams = asyncio.get_running_loop(), process.streams
        # Shielded, as it takes no time: a cancellation here would leave it open who closes a descriptor.
        with anyio.CancelScope(shield=True):
            await loop.connect_write_pipe(lambda: self._input, streams.stdin.give_to(loop))
            await loop.connect_read_pipe(lambda: self._output, streams.stdout.give_to(loop))
            await loop.connect_read_pipe(lambda: self._errors, streams.stderr.give_to(loop))
        await process.started()
        self._pid = process.pid

    async def close(self, process: Process, patience: float) -> None:
        self._end("it was stopped")
        self._input.close()
        await process.stop(patience)
        for pipe in (self._input, self._output, self._errors):
            await pipe.abort()
        process.streams.close()
        self._stray_log.close()

    def exited(self, reason: str) -> None:
        """Handle the end of the process."""
        self._exit_reason = reason
        self._ending(reason)

    def _send(self, data: bytes) -> None:
        self._input.write(data + b"\n")

    def _reply(self, data: bytes) -> None:
        if self._input.unread > MAX_UNREAD_BYTES:
            self._unanswered += 1
        else:
            self._send(data)

    async def _answer(self, data: bytes) -> None:
        if self._input.full:
            await self._input.wait_writable()
        self._send(data)

    def _handle_line(self, line: bytes | OverlongLine) -> None:
        if self._lost_reason is not None:
            return
        self._has_output = True
        if isinstance(line, OverlongLine):
            self._handle_overlong_line(line)
            return
        try:
            self._exchange.feed(line)
        except InvalidResponse:
            self._log_stray_line(line)

    def _handle_overlong_line(self, line: OverlongLine) -> None:
        request = guess_id(line.head, line.tail)
        if request is not None:
            fault = ResponseTooLarge(f"the answer is over {MAX_MESSAGE_BYTES >> 20} MiB")
            self._exchange.fail(request, fault)
        elif line.tail:
            self._log_stray_line(line.head)

    def _log_stray_line(self, line: bytes) -> None:
        self._stray_lines += 1
        self._stray_log.write([line])

    def _ending(self, reason: str) -> None:
        """Handle one sign of the end. The last responses, or the status, may still arrive."""
        self._first_sign = self._first_sign or reason
        if self._exit_reason and self._output.ended:
            self._end(self._exit_reason)
        elif self._exit_timer is None and self._lost_reason is None:
            self._await_output(_MAX_EXIT_WAITS)

    def _await_output(self, times: int) -> None:
        self._has_output = False
        loop = asyncio.get_running_loop()
        self._exit_timer = loop.call_later(_EXIT_WAIT_SECONDS, self._on_exit_timer, times - 1)

    def _on_exit_timer(self, times: int) -> None:
        if self._has_output and times:
            self._await_output(times)
        else:
            self._end(self._exit_reason or self._first_sign)

    def _end(self, reason: str) -> None:
        if self._exit_timer is not None:
            self._exit_timer.cancel()
        if self._lost_reason is None:
            self._lost_reason = reason
            self._exchange.close(ConnectionLost(reason))
            self._input.release_waiters()
            self._closed.set()
