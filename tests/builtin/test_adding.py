"""Agents add servers to a real gateway: they work at once, leak no secret, and refusals give the reason."""

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from tests.gateways import ADMIN, InProcessGateway, open_gateway
from tests.texts import matches
from toolcrib.config import parse
from toolcrib.model import Caller, JsonObject
from toolcrib.runtime import Runtime, build

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("B8")]

ROOT = Path(__file__).resolve().parents[2]
OPERATOR = Caller(id="operator", permissions=frozenset({"*"}))
SECRET = "a-secret-nobody-should-read"


@pytest.fixture
async def gateway() -> AsyncGenerator[InProcessGateway]:
    async with open_gateway("mcp: {allow_stdio: true}") as opened:
        yield opened


def ledger(folder: Path) -> JsonObject:
    """A server of a program, with a secret in its environment."""
    command = [sys.executable, "-ES", "-m", "tests.servers.ledger", str(folder)]
    return {"command": command[0], "args": command[1:], "cwd": str(ROOT), "env": {"TOKEN": SECRET}}


@asynccontextmanager
async def kept(config: str) -> AsyncGenerator[Runtime]:
    """A house that keeps what it is told."""
    env = {"TOOLCRIB_ADMIN_KEY": ADMIN}
    async with build(parse(config, "toolcrib.yaml", env), env=env) as runtime:
        yield runtime


async def test_added_server_is_listed_and_callable_at_once(gateway: InProcessGateway, tmp_path: Path) -> None:
    with anyio.fail_after(30):
        added = await gateway.call("crib:mcp_add_server", {"server_id": "books", **ledger(tmp_path)})
        assert added.status == 200, added.body
        assert added.json["data"]["state"] == "up"
        assert "mcp_books_append" in added.json["data"]["tools"]
        called = await gateway.call("mcp_books_append", {"op_id": "one"})
        assert called.json["data"]["op_id"] == "one"
        listed = await gateway.call("mcp_list_servers", {})
    (server,) = listed.json["data"]["servers"]
    assert (server["id"], server["state"], server["added"]) == ("books", "up", True)
    assert "mcp_books_append" in server["tools"]
    assert matches("tools", "added server is listed and callable at once", listed.json["message"])
    assert SECRET.encode() not in added.body + listed.body


async def test_failed_server_stays_with_reason(gateway: InProcessGateway) -> None:
    arguments = {"server_id": "gone", "command": "/nowhere/at-all", "env": {"TOKEN": SECRET}}
    with anyio.fail_after(30):
        added = await gateway.call("mcp_add_server", arguments)
    assert added.status == 200, added.body
    assert added.json["data"]["tools"] == []
    assert added.json["data"]["error"]
    assert SECRET.encode() not in added.body
    listed = await gateway.call("mcp_list_servers")
    assert [each["id"] for each in listed.json["data"]["servers"]] == ["gone"]


async def test_added_server_survives_restart(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'toolcrib.db'}"
    config, books = f"store: {store}\nmcp: {{allow_stdio: true}}", tmp_path / "books"
    books.mkdir()
    with anyio.fail_after(60):
        async with kept(config) as runtime:
            arguments = {"server_id": "books", **ledger(books)}
            added = await runtime.gateway.call("mcp_add_server", arguments, OPERATOR)
            assert added.problem is None
        async with kept(config) as runtime:
            called = await runtime.gateway.call("mcp_books_append", {"op_id": "one"}, OPERATOR)
            assert called.data["op_id"] == "one"
        async with kept(f"store: {store}") as runtime:
            assert (await runtime.console.servers.test("books"))["ok"] is False
            (warning,) = runtime.console.status()["warnings"]
            assert "mcp.allow_stdio" in warning


async def test_addresses_of_the_machines_own_network_are_refused(gateway: InProcessGateway) -> None:
    arguments = {"server_id": "cloud", "url": "http://169.254.169.254/mcp", "headers": {"A": SECRET}}
    refused = await gateway.call("mcp_add_server", arguments)
    assert (refused.status, refused.code) == (403, "PERMISSION_DENIED")
    assert SECRET.encode() not in refused.body


async def test_a_program_needs_the_operators_leave(tmp_path: Path) -> None:
    async with open_gateway() as gateway:
        refused = await gateway.call("mcp_add_server", {"server_id": "books", **ledger(tmp_path)})
        assert (refused.status, refused.code) == (403, "PERMISSION_DENIED")
        assert "mcp.allow_stdio" in refused.json["error"]["message"]
        assert SECRET.encode() not in refused.body
        assert (await gateway.call("mcp_list_servers")).json["data"]["servers"] == []


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"server_id": "Not An Id", "url": "https://x.example"},
        {"server_id": "crib", "url": "https://x.example"},
        {"server_id": "x"},
        {"server_id": "x", "url": "ftp://x.example"},
        {"server_id": "x", "url": "https://x.example", "header": {"A": SECRET}},
        {"server_id": "x", "url": "https://x.example", "headers": {"A": [SECRET]}},
        {"server_id": "x", "url": "https://x.example", "command": "npx", "env": {"A": SECRET}},
    ],
)
async def test_invalid_arguments_are_refused_without_values(
    gateway: InProcessGateway, arguments: JsonObject
) -> None:
    refused = await gateway.call("mcp_add_server", arguments)
    assert (refused.status, refused.code) == (400, "INVALID_ARGUMENTS")
    assert SECRET.encode() not in refused.body


async def test_the_same_id_twice(gateway: InProcessGateway) -> None:
    lazy = {"server_id": "x", "url": "https://x.example/mcp", "start": "lazy"}
    assert (await gateway.call("mcp_add_server", lazy)).status == 200
    again = await gateway.call("mcp_add_server", lazy)
    assert (again.status, again.code) == (409, "ALREADY_EXISTS")


async def test_each_tool_needs_its_permission(gateway: InProcessGateway) -> None:
    plain = await gateway.key("plain")
    watcher = await gateway.key("watcher", permissions=["crib:status"])
    names = [each["name"] for each in (await gateway.request("GET", "/api/tools", key=plain)).json["tools"]]
    assert [name for name in names if name.startswith("crib:")] == ["crib:search_tools"]
    assert (await gateway.call("mcp_list_servers", key=plain)).code == "PERMISSION_DENIED"
    assert (await gateway.call("mcp_list_servers", key=watcher)).status == 200
    arguments = {"server_id": "x", "url": "https://x.example"}
    assert (await gateway.call("mcp_add_server", arguments, key=watcher)).code == "PERMISSION_DENIED"


async def test_no_tool_calls_another_by_name(gateway: InProcessGateway) -> None:
    tools = (await gateway.request("GET", "/api/tools")).json["tools"]
    ours = [each for each in tools if each["source"] == "crib"]
    assert {each["name"] for each in ours} == {
        "crib:search_tools",
        "crib:mcp_add_server",
        "crib:mcp_list_servers",
    }
