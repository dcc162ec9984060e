"""A change that was stored has an audit record of its own, whatever fails after it and whoever leaves."""

import json
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from anyio import to_thread

from tests.gateway_process import ADMIN_KEY
from tests.gateways import InProcessGateway, open_gateway
from tests.walks.pressure import GatewayUnderPressure, gateway_under_pressure, head, raw
from tests.walks.test_audit import records
from toolcrib.model import JsonObject

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("I8")]

ADD = "mcp_add_server"


@pytest.fixture
async def crib() -> AsyncGenerator[InProcessGateway]:
    async with open_gateway() as opened:
        yield opened


async def test_stored_change_succeeds_despite_later_failures(
    crib: InProcessGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    users = crib.runtime.console.users
    names = [f"user{each}" for each in range(40)]
    for name in names:
        await users.put(name, language="en", time_zone=None)

    async def fails(id: str) -> None:
        raise RuntimeError(id)

    monkeypatch.setattr(users.sessions, "end", fails)
    for name in names:
        with pytest.raises(RuntimeError):
            await users.drop(name)
    removed = [each for each in await records(crib) if each["action"] == "users.remove"]
    assert sorted(each["target"] for each in removed) == sorted(names)
    assert {each["outcome"] for each in removed} == {"success"}
    assert all(each["before"] for each in removed)


@pytest.mark.slow
@pytest.mark.no_cover
async def test_disconnect_does_not_change_the_record(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as tested, socket.create_server(("127.0.0.1", 0)) as added:
        more = f"mcp: {{servers: {{tested: {{transport: http, url: '{_url(tested)}', start: lazy}}}}}}\n"
        arguments = {"server_id": "added", "url": _url(added)}
        async with gateway_under_pressure(tmp_path, more=more) as gateway:
            async with _left(gateway, added, "/api/tools/execute", {"name": ADD, "arguments": arguments}):
                (add,) = await _audited(gateway, "servers.add")
            async with _left(gateway, tested, "/mcp/test/tested", {}):
                tested.close()
            (test,) = await _audited(gateway, "servers.test")
    assert (add["outcome"], add["after"] is None) == ("success", False)
    assert (test["outcome"], test["after"]["ok"]) == ("success", False)


def _url(server: socket.socket) -> str:
    return f"http://127.0.0.1:{server.getsockname()[1]}/mcp"


@asynccontextmanager
async def _left(
    gateway: GatewayUnderPressure, silent: socket.socket, path: str, body: JsonObject
) -> AsyncGenerator[None]:
    """Ask, and leave once a server that never answers has been connected to; it hangs up at the end."""
    sent = json.dumps(body).encode()
    silent.settimeout(30)
    async with raw(gateway) as wire:
        await wire.send(head("POST", path, ADMIN_KEY, sent) + sent)
        connected, _ = await to_thread.run_sync(silent.accept)
    with connected:
        yield


async def _audited(gateway: GatewayUnderPressure, action: str) -> list[JsonObject]:
    """Wait for the records of an action."""
    with anyio.fail_after(60):
        while True:
            records = json.loads((await gateway.answer("/api/audit?limit=100")).text)["records"]
            if found := [each for each in records if each["action"] == action]:
                return found
            await anyio.sleep(0.05)
