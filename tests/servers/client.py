"""A caller of a gateway process: calls, lists, status and reload over REST, with the time each call took."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
import anyio

from tests.gateway_process import GatewayProcess

PATIENCE = 60.0
PAUSE = 0.05


@dataclass(frozen=True)
class Answer:
    """The answer of a call and its time."""

    status: int
    body: Any
    began: float
    ended: float

    @property
    def code(self) -> str | None:
        """The code of an error, None where it went well."""
        return self.body["error"]["code"] if "error" in self.body else None

    @property
    def data(self) -> Any:
        return self.body["data"]


class Client:
    """Sends requests as the operator."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self._session, self._url = session, url

    async def get(self, path: str) -> Any:
        async with self._session.get(self._url + path) as answer:
            body = await answer.json()
            assert answer.status == 200, body
            return body

    async def post(self, path: str, body: Any = None) -> tuple[int, Any]:
        async with self._session.post(self._url + path, json=body or {}) as answer:
            return answer.status, await answer.json()

    async def call(self, name: str, arguments: Mapping[str, Any] | None = None) -> Answer:
        began = anyio.current_time()
        status, body = await self.post("/api/tools/execute", {"name": name, "arguments": arguments or {}})
        return Answer(status, body, began, anyio.current_time())

    async def tools(self) -> set[str]:
        """Names of all tools that are listed and not degraded."""
        return {each["name"] for each in (await self.get("/api/tools"))["tools"] if not each.get("degraded")}

    async def servers(self) -> dict[str, Any]:
        """State of every server."""
        return (await self.get("/mcp/status"))["servers"]

    async def all_up(self, *ids: str) -> bool:
        servers = await self.servers()
        return all(servers[each]["up"] for each in ids or servers)

    async def answering(self, name: str, arguments: Mapping[str, Any] | None = None) -> Answer:
        """Call until it goes well; the answer that did."""
        until = anyio.current_time() + PATIENCE
        while (answer := await self.call(name, arguments)).status != 200:
            assert anyio.current_time() < until, answer.body
            await anyio.sleep(PAUSE)
        return answer


@asynccontextmanager
async def client(gateway: GatewayProcess) -> AsyncGenerator[Client]:
    """Open a caller with as many connections as it needs."""
    timeout = aiohttp.ClientTimeout(total=PATIENCE * 2)
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(headers=gateway.admin, timeout=timeout, connector=connector) as session:
        yield Client(session, gateway.url)


async def until(true: Callable[[], Awaitable[bool]], within: float = PATIENCE) -> None:
    """Wait for something to become true."""
    with anyio.fail_after(within):
        # Another process becomes what it becomes; there is no event to wait for.
        while not await true():  # noqa: ASYNC110
            await anyio.sleep(PAUSE)
