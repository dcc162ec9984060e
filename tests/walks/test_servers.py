"""Twelve MCP servers of other people behind one gateway: all listed, all answering, whoever is broken."""

import json
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from subprocess import DEVNULL
from typing import Any

import anyio
import anyio.to_thread
import pytest
from aiohttp import web

from tests.gateway_process import gateway_process
from tests.parts.ports import free_port
from tests.servers.client import Client, client, until
from tests.servers.raw_client import raw
from tests.servers.settings import config, ledger, stdio
from tests.servers.third_party import PAGE, TWELVE, Known, known, npm

pytestmark = pytest.mark.anyio

PARTS = ("node", "npm_servers", "modern_servers", "legacy_servers", "chromium")
PATIENT = {"defaults": {"timeout_ms": 30000}}
"""The first call of some starts a browser or loads a library."""
HANG = "import time; time.sleep(600)"
LAST_WORDS = "no licence found: put one into licence.txt"
QUIT = f"import sys; sys.exit({LAST_WORDS!r})"
NO_HANG = 30.0
"""Seconds a broken server must not cost the others, however slow the machine is."""


def broken() -> dict[str, dict[str, Any]]:
    """Three ways not to start."""
    return {
        "memory": stdio("no-such-program-anywhere", "--stdio"),
        "calculator": stdio(sys.executable, "-c", QUIT),
        "hello-world": stdio(sys.executable, "-c", HANG, start_timeout_ms=2000),
    }


WORDS = {
    "memory": "no-such-program-anywhere",
    "calculator": "exited with status 1",
    "hello-world": "within 2 s",
}
"""What an operator must find in the last error of each."""


@pytest.fixture
async def page_url() -> AsyncGenerator[str]:
    """A page on this machine."""

    async def answer(_: web.Request) -> web.Response:
        return web.Response(body=PAGE, content_type="text/html")

    app = web.Application()
    app.router.add_get("/{any:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}/"
    await runner.cleanup()


@asynccontextmanager
async def everything_at(port: int, transport: str, path: str) -> AsyncGenerator[str]:
    """Run the reference server over HTTP; the answer is its address."""
    command = npm("mcp-server-everything", transport)
    async with await anyio.open_process(
        command, stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL, env={"PORT": str(port)}
    ) as process:
        await until(lambda: listens(port))
        yield f"http://127.0.0.1:{port}{path}"
        process.terminate()


async def listens(port: int) -> bool:
    try:
        stream = await anyio.connect_tcp("127.0.0.1", port)
    except OSError:
        return False
    await stream.aclose()
    return True


def asked_directly(server: Known) -> set[str]:
    with raw(server.command, server.env) as direct:
        return direct.tools()


async def listed_directly(servers: Mapping[str, Known]) -> set[str]:
    """Canonical names of all their tools, as the servers themselves tell them."""
    found: set[str] = set()

    async def ask(name: str, server: Known) -> None:
        tools = await anyio.to_thread.run_sync(asked_directly, server)
        found.update(f"{name}:{tool}" for tool in tools)

    async with anyio.create_task_group() as tasks:
        for name, server in servers.items():
            tasks.start_soon(ask, name, server)
    return found


async def answers(crib: Client, name: str, server: Known) -> None:
    answer = await crib.answering(f"{name}:{server.tool}", server.arguments)
    assert server.expected in json.dumps(answer.body, ensure_ascii=False), answer.body


@pytest.mark.no_cover
@pytest.mark.slow
@pytest.mark.needs(*PARTS)
@pytest.mark.requirement("B2")
async def test_twelve_servers_from_one_config(tmp_path: Path, page_url: str) -> None:
    servers = {name: known(name, tmp_path, page_url) for name in TWELVE}
    expected = await listed_directly(servers)
    settings = {name: {**server.settings(), **PATIENT} for name, server in servers.items()}
    async with (
        everything_at(free_port(), "streamableHttp", "/mcp") as http_url,
        everything_at(free_port(), "sse", "/sse") as sse_url,
    ):
        settings["everything_http"] = {"transport": "http", "url": http_url}
        settings["everything_sse"] = {"transport": "sse", "url": sse_url}
        expected |= {
            name.replace("everything:", f"everything_{kind}:")
            for name in expected
            for kind in ("http", "sse")
            if name.startswith("everything:")
        }
        async with (
            gateway_process(tmp_path, config(settings), demo=False) as gateway,
            client(gateway) as crib,
        ):

            async def all_listed() -> bool:
                return await crib.tools() >= expected

            await until(all_listed)
            for name in settings:
                await answers(crib, name, servers[name.partition("_")[0]])
            assert await crib.all_up()


async def slowest_start(folder: Path, settings: Mapping[str, Any], wanted: Mapping[str, Known]) -> float:
    """Seconds until each of the wanted ones has answered; then look at what is told of the rest."""
    await anyio.Path(folder).mkdir(exist_ok=True)
    began = anyio.current_time()
    async with gateway_process(folder, config(settings), demo=False) as gateway, client(gateway) as crib:
        async with anyio.create_task_group() as tasks:
            for name, server in wanted.items():
                tasks.start_soon(answers, crib, name, server)
        took = anyio.current_time() - began
        await all_told(crib, settings.keys() - wanted.keys())
        for name, server in wanted.items():
            await answers(crib, name, server)
    return took


async def all_told(crib: Client, names: set[str]) -> None:
    """Wait until every broken server is shown down with words that help."""

    async def told() -> bool:
        states = await crib.servers()
        return all(WORDS[name] in (states[name]["last_error"] or "") for name in names)

    await until(told)
    states = await crib.servers()
    for name in names:
        assert not states[name]["up"]
        assert states[name]["state"] in {"down", "crash_loop", "starting"}
        assert states[name]["stderr_tail"] == ([LAST_WORDS] if name == "calculator" else [])


@pytest.mark.no_cover
@pytest.mark.slow
@pytest.mark.needs(*PARTS)
@pytest.mark.requirement("B6")
async def test_three_broken_servers_do_not_delay_start(tmp_path: Path, page_url: str) -> None:
    times: list[float] = []
    for run, replaced in (("without", {}), ("with", broken())):
        servers = {name: known(name, tmp_path / run, page_url) for name in TWELVE if name not in broken()}
        settings = {name: {**server.settings(), **PATIENT} for name, server in servers.items()}
        times.append(await slowest_start(tmp_path / run, {**settings, **replaced}, servers))
    print(
        f"first answers of all nine after {times[0]:.1f} s alone, {times[1]:.1f} s beside three broken ones"
    )
    assert times[1] < 3 * times[0] + NO_HANG


@pytest.mark.slow
@pytest.mark.requirement("B6")
async def test_broken_servers_are_reported_while_others_serve(tmp_path: Path) -> None:
    settings = {"books": ledger(tmp_path / "books"), **broken()}
    async with gateway_process(tmp_path, config(settings), demo=False) as gateway, client(gateway) as crib:
        assert (await crib.answering("books:append", {"op_id": "one"})).data["op_id"] == "one"
        await all_told(crib, set(broken()))
        assert (await crib.call("books:append", {"op_id": "two"})).data["op_id"] == "two"


@pytest.mark.requirement("B6")
@pytest.mark.slow
async def test_one_switch_turns_all_servers_off(tmp_path: Path) -> None:
    settings = {"books": ledger(tmp_path / "books")}
    text = config(settings, mcp={"enabled": False, "servers": settings})
    async with gateway_process(tmp_path, text, demo=False) as gateway, client(gateway) as crib:
        status = await crib.get("/mcp/status")
        assert status["enabled"] is False
        assert not any(server["up"] for server in status["servers"].values())
        assert not any(name.startswith("books:") for name in await crib.tools())
