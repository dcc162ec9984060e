"""Upstreams get arguments that were written again from what was validated, never the caller's own bytes."""

import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from aiohttp import web

from tests.frontends.mcp.messages import ENVELOPE, modern_headers
from tests.gateways import InProcessGateway, open_gateway
from tests.servers.echo import ECHO
from tests.servers.settings import PYTHON, config, stdio
from tests.walks.app_host import host_with_apps
from tests.walks.fake_app import FakeApp

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.requirement("I5")]

REPEATED = '{"text": 1, "t\\u0065xt":\t"kept","more":{"x":1,"x":2}}'
WRITTEN = {"text": "kept", "more": {"x": 2}}


async def call_in_every_form(gateway: InProcessGateway, name: str, **headers: str) -> None:
    """Call by REST with an object and with a text, and by MCP."""
    for arguments in (REPEATED, json.dumps(REPEATED)):
        body = f'{{"name": "{name}", "arguments": {arguments}}}'.encode()
        reply = await gateway.request("POST", "/api/tools/execute", body=body, headers=headers)
        assert reply.status == 200, reply.body
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": ENVELOPE}}
    told = {**modern_headers("tools/list"), **headers}
    listed = (await gateway.request("POST", "/mcp", body=asked, headers=told)).json["result"]["tools"]
    (safe,) = [each["name"] for each in listed if each["name"].endswith(name.rpartition(":")[2])]
    params = f'{{"name":"{safe}","arguments":{REPEATED},"_meta":{json.dumps(ENVELOPE)}}}'
    sent = f'{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}'.encode()
    told = {**modern_headers("tools/call", safe), **headers}
    reply = await gateway.request("POST", "/mcp", body=sent, headers=told)
    assert not reply.json["result"].get("isError"), reply.body


def check(raw: list[bytes]) -> None:
    """Each of three calls arrived once, with every key once."""
    assert len(raw) == 3
    for each in raw:
        assert each.count(b'"text"') == each.count(b'"kept"')
        assert b"\\u0065" not in each
        assert each.count(b'"x"') == each.count(b'"more"')


async def test_stdio_servers_get_written_arguments(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    server = stdio("/bin/sh", "-c", f"tee {seen} | {' '.join(PYTHON)} tests.servers.echo")
    async with open_gateway(config({"up": server})) as gateway:
        assert await gateway.runtime.settled(20)
        await call_in_every_form(gateway, "up:echo")
    lines = [line for line in seen.read_bytes().splitlines() if b"tools/call" in line]
    assert [json.loads(line)["params"]["arguments"] for line in lines] == [WRITTEN] * 3
    check(lines)


async def test_http_servers_get_written_arguments() -> None:
    raw: list[bytes] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        body = await request.read()
        message: Any = json.loads(body or b"{}")
        if message.get("method") == "tools/call":
            raw.append(body)
        if "id" not in message:
            return web.Response(status=202 if body else 405)
        return web.json_response(ECHO.answer(message))

    app = web.Application()
    app.router.add_route("*", "/mcp", answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}/mcp"
        async with open_gateway(config({"up": {"transport": "http", "url": url}})) as gateway:
            assert await gateway.runtime.settled(20)
            await call_in_every_form(gateway, "up:echo")
    finally:
        with anyio.CancelScope(shield=True):
            await runner.cleanup()
    assert [json.loads(each)["params"]["arguments"] for each in raw] == [WRITTEN] * 3
    check(raw)


async def test_apps_get_written_arguments() -> None:
    raw: list[bytes] = []

    async def keep(fake_app: FakeApp, call: dict[str, Any], request: web.Request) -> web.StreamResponse:
        del fake_app
        raw.append(await request.read())
        return web.json_response({"success": True, "content": call["arguments"]})

    async with host_with_apps("com.example.notes") as (host, (fake_app,)):
        fake_app.tool = keep
        await call_in_every_form(host.gateway, "com.example.notes:note", **{"x-user-id": "ann"})
    assert [json.loads(each)["arguments"] for each in raw] == [WRITTEN] * 3
    check(raw)
