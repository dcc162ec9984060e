"""Our own standard streams, line by line and without a thread where they are pipes, as they usually are."""

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
"""The longest line that is taken."""

_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class SkippedLine:
    """A line that is over the limit, and was skipped."""

    limit: int


class _Bytes(Protocol):
    """Where bytes come from; none are left once it gives an empty piece."""

    async def read(self, most: int, /) -> bytes: ...


class LineReader:
    """Lines out of a stream of bytes; what is too long is skipped, and said to be."""

    def __init__(self, source: _Bytes, limit: int = MOST_BYTES) -> None:
        self._source, self._limit = source, limit

    @classmethod
    @asynccontextmanager
    async def of_stdin(cls) -> AsyncGenerator["LineReader"]:
        """Read our standard input until it ends."""
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
        """Give every line that holds anything, the last one also where nothing ends it."""
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
    """A file or a terminal: reading it may wait, so a thread does."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    async def read(self, most: int, /) -> bytes:
        return await anyio.to_thread.run_sync(os.read, self._descriptor, most, abandon_on_cancel=True)


class LineWriter:
    """Lines out of our standard output, one at a time and in the order they were given."""

    def __init__(self, descriptor: int, writer: asyncio.StreamWriter | None) -> None:
        self._descriptor, self._writer = descriptor, writer

    @classmethod
    @asynccontextmanager
    async def to_stdout(cls) -> AsyncGenerator["LineWriter"]:
        """Keep our standard output to ourselves: what anything else prints goes to standard error."""
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
        """Write one message; whoever writes more than is read waits."""
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
    """Whether it can be waited for by the event loop. A terminal is shared with others, who may not mind."""
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
