"""A gateway whose wall clock is set 25 hours ahead, running and between starts, repeats and ends nothing."""

import sys
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.gateway_process import GatewayProcess, gateway_process

pytestmark = [pytest.mark.slow, pytest.mark.no_cover, pytest.mark.requirement("E12")]

TOOLS = '''
from pathlib import Path

from toolcrib import create_tool

LEDGER = Path(__file__).with_name("ledger.txt")


@create_tool(category="mutation")
async def pay(amount: int) -> dict[str, int]:
    """Write a payment into the ledger."""
    with LEDGER.open("a") as ledger:
        ledger.write(f"{amount}\\n")
    return {"paid": amount}
'''
PYTHON = """#!{python}
import runpy, sys, time

real = time.time


def shifted():
    with open({offset!r}) as file:
        return real() + float(file.read() or 0)


time.time = shifted
sys.argv = sys.argv[2:]  # without `-m`
sys.path.insert(0, {folder!r})
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""
JUMP = 25 * 3600
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "walk", "version": "1"},
    },
}
PING = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
ACCEPT = {"Accept": "application/json, text/event-stream"}


class RestartedGateway:
    """A client over two starts of one gateway."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.offset = folder, folder / "offset"
        self.python = folder / "python"
        (folder / "till.py").write_text(TOOLS)
        self.jump(0)
        text = PYTHON.format(python=sys.executable, offset=str(self.offset), folder=str(folder))
        self.python.write_text(text)
        self.python.chmod(0o700)

    def jump(self, seconds: float) -> None:
        """Set the wall clock of the gateway."""
        new = self.folder / "new"
        new.write_text(str(seconds))
        new.replace(self.offset)

    def paid(self) -> int:
        """How often a payment was made."""
        return len((self.folder / "ledger.txt").read_text().splitlines())


class Client:
    """Requests to one start of the gateway."""

    def __init__(self, gateway: GatewayProcess, http: aiohttp.ClientSession) -> None:
        self._url, self._http = gateway.url, http

    async def pay(self, key: str = "k") -> Any:
        body = {"name": "pay", "arguments": {"amount": 5}, "idempotencyKey": key}
        async with self._http.post(f"{self._url}/api/tools/execute", json=body) as answer:
            return (answer.status, answer.headers.get("Idempotency-Replayed"))

    async def session(self) -> str:
        async with self._http.post(f"{self._url}/mcp", json=HELLO, headers=ACCEPT) as answer:
            return answer.headers["Mcp-Session-Id"]

    async def ping(self, session: str) -> int:
        headers = {**ACCEPT, "Mcp-Session-Id": session}
        async with self._http.post(f"{self._url}/mcp", json=PING, headers=headers) as answer:
            return answer.status

    async def leave(self, session: str) -> int:
        async with self._http.delete(f"{self._url}/mcp", headers={"Mcp-Session-Id": session}) as answer:
            return answer.status

    async def begin(self) -> int:
        async with self._http.put(f"{self._url}/api/users/ann/session", json={}) as answer:
            return answer.status

    async def user(self) -> int:
        async with self._http.get(f"{self._url}/api/users/ann/session") as answer:
            return answer.status


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
async def test_a_clock_25_hours_ahead_repeats_nothing(
    tmp_path: Path, store: str, request: pytest.FixtureRequest
) -> None:
    walk = RestartedGateway(tmp_path)
    config = "functions: [till]\n"
    if store == "postgres":
        config += f"store: {request.getfixturevalue('fresh_database')}\n"
    async with gateway_process(tmp_path, config, demo=False, python=walk.python) as gateway:
        async with aiohttp.ClientSession(headers=gateway.admin) as http:
            client = Client(gateway, http)
            assert await client.pay() == (200, None)
            kept, ended = await client.session(), await client.session()
            assert (await client.leave(ended), await client.begin()) == (200, 200)
            walk.jump(JUMP)
            assert await client.pay() == (200, "true")
            assert (await client.ping(kept), await client.ping(ended), await client.user()) == (200, 404, 200)
        await gateway.kill()
    walk.jump(8 * JUMP)
    async with (
        gateway_process(tmp_path, config, demo=False, python=walk.python) as gateway,
        aiohttp.ClientSession(headers=gateway.admin) as http,
    ):
        client = Client(gateway, http)
        assert await client.pay() == (200, "true")
        assert (await client.ping(kept), await client.ping(ended), await client.user()) == (200, 404, 200)
    assert walk.paid() == 1
