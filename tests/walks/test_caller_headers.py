"""What callers send to prove who they are, and whatever else they send along, stays with the gateway."""

import shlex
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import anyio
import pytest
from anyio.abc import ByteReceiveStream, ByteSendStream, SocketAttribute, SocketStream

from tests import figures
from tests.gateway_process import ADMIN_KEY, GatewayProcess, gateway_process
from tests.parts.ports import free_port
from tests.servers.client import client as operator_of
from tests.servers.settings import PYTHON, ROOT, config, stdio
from tests.soak.activities import TOOL
from tests.soak.callers import modern_message
from tests.walks.fake_app import FakeApp

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.no_cover]

CALLS = 200
CANARY = "canary-5e1d77"
CANARIES = {
    "Cookie": f"session={CANARY}-cookie",
    "Proxy-Authorization": f"Bearer {CANARY}-proxy",
    "X-Api-Key": f"{CANARY}-api-key",
    "X-Canary": f"{CANARY}-any",
    "X-Forwarded-Access-Token": f"{CANARY}-token",
    "X-Agent-Version": "1",
}
PACKAGE = "com.example.canary"


@asynccontextmanager
async def recorded(port: int, heard: bytearray) -> AsyncGenerator[int]:
    """Stand before a server and write down what it is sent; the port to connect to."""

    async def pump(source: ByteReceiveStream, target: ByteSendStream, kept: bytearray | None) -> None:
        try:
            async for piece in source:
                if kept is not None:
                    kept.extend(piece)
                await target.send(piece)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return

    async def forward(near: SocketStream) -> None:
        async with near, await anyio.connect_tcp("127.0.0.1", port) as far, anyio.create_task_group() as both:
            both.start_soon(pump, far, near, None)
            await pump(near, far, heard)
            both.cancel_scope.cancel()

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, forward)
        yield listener.extra(SocketAttribute.local_port)  # noqa: S610 - not Django's
        tasks.cancel_scope.cancel()


@asynccontextmanager
async def web_server(transport: str, heard: bytearray) -> AsyncGenerator[dict[str, Any]]:
    """Run a server on the web behind a recorder; its settings."""
    port = free_port()
    process = await anyio.open_process([*PYTHON, "tests.servers.web", transport, str(port)], cwd=ROOT)
    try:
        async with recorded(port, heard) as front:
            path = {"http": "/mcp", "sse": "/sse"}[transport]
            yield {"transport": transport, "url": f"http://127.0.0.1:{front}{path}"}
    finally:
        process.kill()
        with anyio.CancelScope(shield=True):
            await process.aclose()


def listening_program(file: Path) -> dict[str, Any]:
    """A program that is started with all it hears and its environment written down."""
    server = shlex.join([*PYTHON, "tests.servers.ledger", str(file.parent)])
    return stdio("/bin/sh", "-c", f"env > {file}.env; tee {file} | {server}")


def said_to(file: Path) -> bytes:
    """Return all that was written down of such a program."""
    return file.read_bytes() + Path(f"{file}.env").read_bytes()


async def call(
    gateway: GatewayProcess, session: aiohttp.ClientSession, name: str, arguments: Any, turn: int
) -> None:
    """Call by REST and by MCP in turns, with a canary in every header."""
    headers = {**CANARIES, **({"X-User-Id": "ann"} if name.startswith(PACKAGE) else {})}
    if turn % 2 and not name.startswith(PACKAGE):
        exposed = f"mcp_{name.replace(':', '_')}"
        body, more = modern_message("tools/call", {"name": exposed, "arguments": arguments})
        url = f"{gateway.url}/mcp"
    else:
        body, more, url = {"name": name, "arguments": arguments}, {}, f"{gateway.url}/api/tools/execute"
    async with session.post(url, json=body, headers={**headers, **more}) as answer:
        assert answer.status == 200, await answer.text()
        assert "error" not in await answer.json()


async def admit(gateway: GatewayProcess, fake_app: FakeApp) -> None:
    """Register an app for a user who is there."""
    steps: list[tuple[str, str, Any]] = [
        ("POST", f"/api/apps/{PACKAGE}/tools", {"tools": [TOOL]}),
        ("PUT", "/api/users/ann/session", {"device": "Even Realities G1"}),
        ("PUT", f"/api/users/ann/apps/{PACKAGE}", {}),
    ]
    async with aiohttp.ClientSession(gateway.url, headers=gateway.admin) as session:
        body = {"name": PACKAGE, "publicUrl": fake_app.address, "appType": "background"}
        async with session.put(f"/api/apps/{PACKAGE}", json=body) as answer:
            fake_app.key = (await answer.json())["apiKey"]
        for method, path, body in steps:
            async with session.request(method, path, json=body) as answer:
                assert answer.status < 300, await answer.text()


@pytest.mark.check(8)
@pytest.mark.requirement("I5")
async def test_headers_of_callers_reach_no_server(tmp_path: Path, record_property: figures.Record) -> None:
    heard: dict[str, bytearray] = {"http": bytearray(), "sse": bytearray()}
    program = tmp_path / "program"
    async with AsyncExitStack() as stack:
        servers = {kind: await stack.enter_async_context(web_server(kind, heard[kind])) for kind in heard}
        servers["program"] = listening_program(program)
        fake_app = await stack.enter_async_context(FakeApp(PACKAGE).running())
        gateway = await stack.enter_async_context(
            gateway_process(tmp_path, config(servers), log=tmp_path / "log")
        )
        operator = await stack.enter_async_context(operator_of(gateway))
        tools: dict[str, Any] = {
            "http:echo": {"text": "x"},
            "sse:echo": {"text": "x"},
            "program:append": {"op_id": "x"},
        }
        for name, arguments in tools.items():
            await operator.answering(name, arguments)
        await admit(gateway, fake_app)
        tools[f"{PACKAGE}:note"] = {"text": "x"}
        async with aiohttp.ClientSession(headers=gateway.admin) as session:
            for turn in range(CALLS):
                name = list(tools)[turn % len(tools)]
                await call(gateway, session, name, tools[name], turn // len(tools))
    told = {
        **{kind: bytes(text) for kind, text in heard.items()},
        "program": said_to(program),
        "app": repr((fake_app.headers, fake_app.calls, fake_app.webhooks)).encode(),
    }
    found = {
        kind: text.count(CANARY.encode()) + text.count(ADMIN_KEY.encode()) for kind, text in told.items()
    }
    record_property("figure", f"{CALLS} calls over {', '.join(told)}: {sum(found.values())} canaries seen")
    assert min(len(text) for text in told.values()) > 1000, "or nothing was recorded"
    assert len(fake_app.calls) == CALLS // len(tools)
    assert found == dict.fromkeys(told, 0)
