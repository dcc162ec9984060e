"""A server that is reset after it has acted is not asked again; one that could not be reached is."""

from collections import Counter
from pathlib import Path
from typing import Any

import anyio
import pytest
from aiohttp import web

from tests import figures
from tests.gateway_process import gateway_process
from tests.parts.ports import free_port
from tests.servers.client import Client, until
from tests.servers.client import client as operator_of
from tests.servers.settings import config

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.no_cover]

NOT_ASKED = {"SOURCE_DOWN", "NETWORK_ERROR"}
"""Nothing was sent to the server, and the call may be made again."""
SERVER: dict[str, Any] = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}}
TOOL = {
    "name": "pay",
    "description": "Pay, then break the connection.",
    "inputSchema": {"type": "object", "properties": {"op": {"type": "string"}}, "required": ["op"]},
}


class Resetting:
    """An MCP server over HTTP that acts and then breaks the connection without an answer."""

    def __init__(self) -> None:
        self.executions: Counter[str] = Counter()
        self.port = free_port()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        message: dict[str, Any] = await request.json() if request.method == "POST" else {}
        if "id" not in message:
            return web.Response(status=202 if message else 405)
        result: Any = {}
        if message["method"] == "initialize":
            result = {**SERVER, "serverInfo": {"name": "resetting", "version": "1"}}
        elif message["method"] == "tools/list":
            result = {"tools": [TOOL]}
        elif message["method"] == "tools/call":
            self.executions[message["params"]["arguments"]["op"]] += 1
            if message["params"]["arguments"]["op"].startswith("reset"):
                assert request.transport is not None
                request.transport.abort()
            result = {"content": [{"type": "text", "text": "paid"}]}
        elif message["method"] != "ping":
            error = {"code": -32601, "message": "unknown method"}
            return web.json_response({"jsonrpc": "2.0", "id": message["id"], "error": error})
        return web.json_response({"jsonrpc": "2.0", "id": message["id"], "result": result})

    async def start(self) -> web.AppRunner:
        app = web.Application()
        app.router.add_route("*", "/mcp", self.answer)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", self.port).start()
        return runner


async def pay(operator: Client, operation: str, refused: Counter[str]) -> str | None:
    """Pay until the server was asked; the code of the error, None where it went well."""
    while True:
        answer = await operator.call("web:pay", {"op": operation})
        if answer.code not in NOT_ASKED:
            return answer.code
        refused[answer.code] += 1
        await anyio.sleep(0.02)


async def is_refused(operator: Client) -> bool:
    """Whether the gateway knows that the server is gone."""
    return (await operator.call("web:pay", {"op": "closing"})).code in NOT_ASKED


@pytest.mark.check(24)
@pytest.mark.requirement("I5")
async def test_a_reset_after_the_effect_is_not_retried(
    tmp_path: Path, record_property: figures.Record
) -> None:
    times = figures.figure(short=100, long=1000)
    server, codes, refused = Resetting(), Counter[str | None](), Counter[str]()
    runner = await server.start()
    text = config({"web": {"transport": "http", "url": f"http://127.0.0.1:{server.port}/mcp"}})
    try:
        async with (
            gateway_process(tmp_path, text, demo=False, log=tmp_path / "log") as gateway,
            operator_of(gateway) as operator,
        ):
            await operator.answering("web:pay", {"op": "good-first"})
            for number in range(times):
                codes[await pay(operator, f"reset-{number}", refused)] += 1
                # Many failures in a row would open the breaker, and nothing would reach the server.
                assert await pay(operator, f"good-{number}", refused) is None
    finally:
        await runner.cleanup()
    done = {name: count for name, count in server.executions.items() if name.startswith("reset")}
    record_property(
        "figure", f"{times} resets: {sum(done.values())} executions; {dict(codes)}; not sent: {dict(refused)}"
    )
    assert len(done) == times
    assert set(server.executions.values()) == {1}
    assert codes == {"OUTCOME_UNKNOWN": times}


@pytest.mark.check(24)
@pytest.mark.requirement("I5")
async def test_unsent_call_is_sent_once_later(tmp_path: Path, record_property: figures.Record) -> None:
    times = figures.figure(short=100, long=1000)
    server, refused = Resetting(), Counter[str]()
    runner = await server.start()
    text = config({"web": {"transport": "http", "url": f"http://127.0.0.1:{server.port}/mcp"}})
    try:
        async with (
            gateway_process(tmp_path, text, demo=False, log=tmp_path / "log") as gateway,
            operator_of(gateway) as operator,
        ):
            await operator.answering("web:pay", {"op": "good-first"})
            await runner.cleanup()
            # On a connection that the gateway does not yet know to be closed, the outcome is unknown.
            await until(lambda: is_refused(operator))
            for number in range(times):
                answer = await operator.call("web:pay", {"op": f"good-{number}"})
                assert answer.code in NOT_ASKED, answer.body
                refused[answer.code] += 1
            runner = await server.start()
            for number in range(times):
                assert await pay(operator, f"good-{number}", refused) is None
    finally:
        await runner.cleanup()
    executions = server.executions.values()
    record_property("figure", f"{times} not sent ({dict(refused)}), then {sum(executions)} executions")
    assert len(executions) == times + 1
    assert set(executions) == {1}
