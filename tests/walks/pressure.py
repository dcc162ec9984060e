"""A real gateway under pressure: what its process holds, and raw connections that hold on to things."""

import asyncio
import os
import re
import socket
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import anyio

from tests.gateway_process import ADMIN_KEY, GatewayProcess, gateway_process
from tests.walks.connections import new_key

FUNCTIONS = '''
import sys
from time import thread_time

import anyio
from toolcrib.sdk import create_tool

HELD = []

@create_tool(category="query", timeout=30)
async def pause(seconds: float) -> bool:
    """Answer after a while."""
    await anyio.sleep(seconds)
    return True

@create_tool(category="query", timeout=30)
def burn(seconds: float) -> bool:
    """Use so much CPU time, with the interpreter lock held."""
    end = thread_time() + seconds
    while thread_time() < end:
        sum(range(200))
    return True

@create_tool(category="query")
async def switch_interval() -> float:
    """Answer with the switch interval of the process."""
    return sys.getswitchinterval()

@create_tool(category="query")
async def large(megabytes: int) -> str:
    """Answer with a lot."""
    return "x" * (megabytes << 20)

@create_tool(category="query")
def large_in_thread(megabytes: int) -> str:
    """Answer with a lot, from a thread."""
    return "x" * (megabytes << 20)

@create_tool(category="query", timeout=30)
async def keep(text: str, seconds: float) -> int:
    """Keep a large argument for a while."""
    await anyio.sleep(seconds)
    return len(text)

@create_tool(category="query")
async def hold(megabytes: int) -> int:
    """Hold memory, or let go of it."""
    HELD[:] = [bytearray(b"x") * (1 << 20) for _ in range(megabytes)]
    return len(HELD)
'''
CONFIG = "functions: [pressed]\nlog: {level: warning}\n"


class GatewayUnderPressure(GatewayProcess):
    """A gateway, and what its process takes."""

    @property
    def resident(self) -> int:
        """Resident bytes."""
        pages = Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    @property
    def processor_seconds(self) -> float:
        """What it has used of the processor."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    async def keys(self, number: int) -> list[str]:
        """Make keys."""
        return [await new_key(self.url, ADMIN_KEY, f"key{each}") for each in range(number)]

    async def answer(self, path: str, key: str | None = ADMIN_KEY, body: bytes | None = None) -> "Answered":
        """Ask on a connection of its own."""
        async with raw(self) as wire:
            await wire.send(head("GET" if body is None else "POST", path, key, body) + (body or b""))
            return await wire.answer()

    async def metric(self, name: str) -> int:
        """Read one of the metrics that are a single number."""
        found = re.search(rf"(?m)^toolcrib_{name} (\d+)", (await self.answer("/metrics")).text)
        assert found is not None, name
        return int(found[1])


class Answered:
    """An answer as it came."""

    def __init__(self, raw_answer: bytes) -> None:
        first, _, self.text = raw_answer.decode("utf-8", "replace").partition("\r\n\r\n")
        self.head = first.lower()
        self.status = int(self.head.split()[1]) if first else 0

    @property
    def summary(self) -> tuple[int, bool]:
        """The status, and whether it says when to try again."""
        return self.status, "\r\nretry-after: " in self.head


class RawConnection:
    """One raw connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def send(self, data: bytes) -> None:
        """Send; nothing happens where the other side has hung up."""
        try:
            self.writer.write(data)
            await self.writer.drain()
        except OSError:
            return

    async def answer(self, within: float = 30.0) -> Answered:
        """Return the next answer, or what came of it."""
        got = b""
        try:
            with anyio.fail_after(within):
                while not _is_whole(got) and (data := await self.reader.read(1 << 16)):
                    got += data
        except OSError:
            pass
        return Answered(got)


def _is_whole(got: bytes) -> bool:
    first, end, rest = got.partition(b"\r\n\r\n")
    length = re.search(rb"(?i)content-length: *(\d+)", first)
    return bool(end) and length is not None and len(rest) >= int(length[1])


@asynccontextmanager
async def raw(gateway: GatewayProcess, *, receive_buffer: int = 0) -> AsyncGenerator[RawConnection]:
    """Open a connection until the block ends; a small buffer makes the other side keep what is not read."""
    at = urlsplit(gateway.url)
    opened = socket.socket()
    opened.setblocking(False)
    if receive_buffer:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    try:
        await asyncio.get_running_loop().sock_connect(opened, (at.hostname, at.port))
    except BaseException:  # cancelled too: no transport owns the socket yet
        opened.close()
        raise
    reader, writer = await asyncio.open_connection(sock=opened, limit=1 << 10 if receive_buffer else 1 << 16)
    try:
        yield RawConnection(reader, writer)
    finally:
        writer.transport.abort()


@asynccontextmanager
async def many(
    gateway: GatewayProcess, number: int, *, receive_buffer: int = 0
) -> AsyncGenerator[Sequence[RawConnection]]:
    """Open many connections."""
    async with AsyncExitStack() as stack:
        yield [
            await stack.enter_async_context(raw(gateway, receive_buffer=receive_buffer))
            for _ in range(number)
        ]


def head(method: str, path: str, key: str | None, body: bytes | int | None = None) -> bytes:
    """Spell the head of a request; a number is the length a body is said to have."""
    lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1"]
    lines += [] if key is None else [f"Authorization: Bearer {key}"]
    if body is not None:
        size = body if isinstance(body, int) else len(body)
        lines += ["Content-Type: application/json", f"Content-Length: {size}"]
    return "\r\n".join((*lines, "", "")).encode()


@asynccontextmanager
async def gateway_under_pressure(
    home: Path, limits: str = "", *, python: str | Path = sys.executable, more: str = ""
) -> AsyncGenerator[GatewayUnderPressure]:
    """Run a gateway; its log is the file `log` in its home."""
    await anyio.Path(home / "pressed.py").write_text(FUNCTIONS)
    config = f"{CONFIG}limits: {{per_user: null{', ' if limits else ''}{limits}}}\n{more}"
    async with gateway_process(home, config, demo=False, log=home / "log", python=python) as gateway:
        yield GatewayUnderPressure(gateway.url, gateway.process)
