"""The plain paths of the gateway on uvicorn as it comes, with both of its parsers."""

import json
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any

import anyio
import httpx2
import pytest
import uvicorn

from tests.frontends.mcp.messages import ENVELOPE, message, modern_headers
from tests.frontends.rest.tools import add
from tests.gateways import ADMIN, open_gateway
from toolcrib.http.runner import address_of, listen
from toolcrib.server import GatewayApp

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.requirement("I5")]

ME = {"authorization": f"Bearer {ADMIN}"}


class Stock(uvicorn.Server):
    """uvicorn, which leaves the signals to pytest and reports that it listens."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = anyio.Event()

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        self.listening.set()


@asynccontextmanager
async def stock(app: GatewayApp, http: Any) -> AsyncGenerator[str]:
    config = uvicorn.Config(app, http=http, ws="none", lifespan="off", log_config=None)
    server = Stock(config)
    with listen("127.0.0.1", 0) as listening:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(server.serve, [listening])
            await server.listening.wait()
            yield address_of(listening)
            server.should_exit = True


@dataclass
class Client:
    """A client of the gateway."""

    http: httpx2.AsyncClient
    url: str

    async def ask(self, method: str, path: str, **more: Any) -> httpx2.Response:
        headers = {**ME, **more.pop("headers", {})}
        return await self.http.request(method, self.url + path, headers=headers, **more)

    async def call(self, **arguments: Any) -> httpx2.Response:
        body = {"name": "add", "arguments": arguments}
        return await self.ask("POST", "/api/tools/execute", json=body)


@pytest.fixture(params=["httptools", "h11"])
async def client(request: pytest.FixtureRequest) -> AsyncGenerator[Client]:
    async with (
        open_gateway(tools=[add]) as gateway,
        stock(gateway.server, request.param) as url,
        httpx2.AsyncClient() as http,
    ):
        yield Client(http, url)


async def test_plain_paths(client: Client) -> None:
    assert (await client.ask("GET", "/health")).status_code == 200
    assert (await client.ask("HEAD", "/health")).status_code == 200
    listed = (await client.ask("GET", "/api/tools")).json()["tools"]
    assert "tools:add" in {each["name"] for each in listed}
    assert (await client.call(a=1, b=2)).json()["data"] == {"total": 3}
    sent = message("tools/call", name="add", arguments={"a": 1, "b": 4}, _meta=ENVELOPE)
    answer = await client.ask("POST", "/mcp", json=sent, headers=modern_headers("tools/call", "add"))
    assert answer.json()["result"]["structuredContent"]["total"] == 5


async def test_events(client: Client) -> None:
    body = {"name": "add", "arguments": {"a": 1}}
    headers = {"accept": "text/event-stream"}
    answer = await client.ask("POST", "/api/tools/execute", json=body, headers=headers)
    assert answer.headers["content-type"] == "text/event-stream"
    last = [line for line in answer.text.splitlines() if line.startswith("data: ")][-1]
    assert json.loads(last.removeprefix("data: "))["data"] == {"total": 2}


@pytest.mark.parametrize(
    "method, path, more, expected",
    [
        ("GET", "/nothing", {}, (404, "NOT_FOUND")),
        ("GET", "/api%2ftools", {}, (404, "NOT_FOUND")),
        ("GET", "/api%5ctools", {}, (404, "NOT_FOUND")),
        ("DELETE", "/health", {}, (405, "METHOD_NOT_ALLOWED")),
        ("GET", "/api/tools", {"headers": {"authorization": "Bearer no"}}, (401, "UNAUTHENTICATED")),
        ("GET", "/health", {"headers": {"host": "evil.example"}}, (421, "HOST_REFUSED")),
        ("POST", "/api/tools/execute", {"content": b"{"}, (400, "INVALID_REQUEST")),
        ("POST", "/api/tools/execute", {"content": b'{"name":"a","name":"b"}'}, (400, "INVALID_REQUEST")),
    ],
)
async def test_errors(
    client: Client, method: str, path: str, more: dict[str, Any], expected: tuple[int, str]
) -> None:
    answer = await client.ask(method, path, **more)
    assert (answer.status_code, answer.json()["error"]["code"]) == expected


async def test_chunked_bodies_in_parts(client: Client) -> None:
    async def parts() -> AsyncGenerator[bytes]:
        yield b'{"name": "add", '
        yield b'"arguments": {"a": 3}}'

    answer = await client.ask("POST", "/api/tools/execute", content=parts())
    assert answer.json()["data"] == {"total": 4}
