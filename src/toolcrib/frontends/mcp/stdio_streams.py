"""The process's own stdin and stdout as lines: by the event loop for pipes, by a thread for other files."""

import asyncio
import os
import stat
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Protocol

import anyio
import anyio.to_thread

from toolcrib.pipe_end import PipeEnd

MOST_BYTES = 4 * 1024 * 1024
"""Longest accepted line, in bytes."""

_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class SkippedLine:
    """Stands for a line that exceeded the limit and was skipped."""

    limit: int


class _Bytes(Protocol):
    """A byte stream; an empty read means its end."""

    async def read(self, most: int, /) -> bytes: ...


class LineReader:
    """Splits a byte stream into lines; yields `SkippedLine` for one that is too long."""

    def __init__(self, source: _Bytes, limit: int = MOST_BYTES) -> None:
        self._source, self._limit = source, limit

    @classmethod
    @asynccontextmanager
    async def of_stdin(cls) -> AsyncGenerator["LineReader"]:
        """Open stdin for reading."""
        if not _is_pipe(sys.stdin.fileno()):
            yield cls(_Threaded(sys.stdin.fileno()))
            return
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=_CHUNK)
        transport, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), PipeEnd(os.dup(sys.stdin.fileno())).give_to(loop)
        )
        try:
            yield cls(reader)
        finally:
            transport.close()

    async def __aiter__(self) -> AsyncIterator[bytes | SkippedLine]:
        """Yield every line that is not blank, also the last one without a newline."""
        held, skipping = bytearray(), False
        while chunk := await self._source.read(_CHUNK):
            *ended, rest = chunk.split(b"\n")
            for piece in ended:
                held += piece
                if skipping or len(held) > self._limit:
                    yield SkippedLine(self._limit)
                elif held.strip():
                    yield bytes(held)
                held, skipping = bytearray(), False
            held += rest
            if len(held) > self._limit:
                held, skipping = bytearray(), True
        if held.strip() and not skipping:
            yield bytes(held)


class _Threaded:
    """A file or a terminal: reads may block, so they run in a thread."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    async def read(self, most: int, /) -> bytes:
        return await anyio.to_thread.run_sync(os.read, self._descriptor, most, abandon_on_cancel=True)


class LineWriter:
    """Writes lines to stdout, in the order of the calls."""

    def __init__(self, descriptor: int, writer: asyncio.StreamWriter | None) -> None:
        self._descriptor, self._writer = descriptor, writer

    @classmethod
    @asynccontextmanager
    async def to_stdout(cls) -> AsyncGenerator["LineWriter"]:
        """Take over stdout: file descriptor 1 is redirected to stderr for all other output."""
        sys.stdout.flush()
        kept = os.dup(1)
        os.dup2(2, 1)
        try:
            yield cls(kept, await _writer(kept) if _is_pipe(kept) else None)
        finally:
            sys.stdout.flush()
            os.dup2(kept, 1)
            os.close(kept)

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
