"""Many connections of several keys to one gateway, by a client that costs little itself."""

import asyncio
import json
import re
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from time import perf_counter
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import anyio
from anyio.abc import TaskGroup

_LENGTH = re.compile(rb"(?i)content-length: *(\d+)")


class Measured(NamedTuple):
    """What became of some calls."""

    outcomes: Counter[str]
    p99: float
    """In milliseconds."""


class Connection:
    """One kept-alive connection of a key."""

    def __init__(self, url: str, key: str) -> None:
        self._host, self._key = urlsplit(url).netloc, key
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def post(self, path: str, body: Any, **headers: str) -> tuple[int, Any]:
        """Send one request; return its status and JSON."""
        if self._streams is None:
            host, _, port = self._host.partition(":")
            self._streams = await asyncio.open_connection(host, int(port))
        reader, writer = self._streams
        data = json.dumps(body).encode()
        given = {"Host": self._host, "Authorization": f"Bearer {self._key}", **headers}
        given |= {"Content-Type": "application/json", "Content-Length": str(len(data))}
        lines = [f"POST {path} HTTP/1.1", *(f"{name}: {value}" for name, value in given.items()), "", ""]
        writer.write("\r\n".join(lines).encode() + data)
        head = await reader.readuntil(b"\r\n\r\n")
        length = _LENGTH.search(head)
        assert length is not None, head
        return int(head.split()[1]), json.loads(await reader.readexactly(int(length[1])))

    async def call(self, name: str, arguments: Any = None, **headers: str) -> str:
        """Call a tool; return the code of the error, or `ok`."""
        body: dict[str, Any] = {"name": name, "arguments": arguments or {}}
        status, answer = await self.post("/api/tools/execute", body, **headers)
        return "ok" if status == 200 else answer["error"]["code"]

    def close(self) -> None:
        """Leave at once, whatever is under way."""
        if self._streams is not None:
            self._streams[1].transport.abort()
            self._streams = None


async def new_key(url: str, admin: str, name: str) -> str:
    """Make a key that may use everything."""
    connection = Connection(url, admin)
    status, answer = await connection.post("/api/keys", {"name": name, "permissions": ["*"]})
    connection.close()
    assert status == 201, answer
    return answer["key"]


async def measured(url: str, key: str, name: str, *, connections: int, each: int) -> Measured:
    """Call a tool on some connections at once, on each so many times one after the other."""
    outcomes, seconds = Counter[str](), list[float]()

    async def one() -> None:
        connection = Connection(url, key)
        try:
            for _ in range(each):
                began = perf_counter()
                outcomes[await connection.call(name)] += 1
                seconds.append(perf_counter() - began)
        finally:
            connection.close()

    async with anyio.create_task_group() as tasks:
        for _ in range(connections):
            tasks.start_soon(one)
    return Measured(outcomes, sorted(seconds)[int(len(seconds) * 0.99) - 1] * 1000)


class ConnectionCrowd:
    """Calls of one key that are under way at once, each on a connection of its own."""

    def __init__(self, tasks: TaskGroup, url: str, key: str) -> None:
        self._tasks, self._url, self._key = tasks, url, key
        self.outcomes = Counter[str]()

    def call(self, name: str, arguments: Any, times: int) -> None:
        """Make one call on each of so many connections."""
        for _ in range(times):
            self._tasks.start_soon(self._one, name, arguments)

    def flood(self, name: str, connections: int) -> None:
        """Call again and again on so many connections, until the crowd leaves."""
        for _ in range(connections):
            self._tasks.start_soon(self._again, name)

    async def _one(self, name: str, arguments: Any) -> None:
        connection = Connection(self._url, self._key)
        try:
            self.outcomes[await connection.call(name, arguments)] += 1
        finally:
            connection.close()

    async def _again(self, name: str) -> None:
        connection = Connection(self._url, self._key)
        try:
            while True:
                self.outcomes[await connection.call(name)] += 1
        finally:
            connection.close()


@asynccontextmanager
async def crowd(url: str, key: str) -> AsyncGenerator[ConnectionCrowd]:
    """Let a crowd of one key in; it leaves when the block ends, whatever is under way."""
    async with anyio.create_task_group() as tasks:
        yield ConnectionCrowd(tasks, url, key)
        tasks.cancel_scope.cancel()
