"""MCP servers over HTTP: how they are, a test, a reload, a removal, and approvals; never a secret."""

import json
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import anyio
import jsonschema_rs
import pytest

from tests.gateways import ADMIN, InProcessGateway, Reply
from toolcrib.config import load
from toolcrib.runtime import build
from toolcrib.server import GatewayApp

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).resolve().parents[3]
SECRET = "a-secret-nobody-should-read"
PATIENCE = 30
CHANGING = """
import os
from tests.servers.plain import Lines, Server, Tool
Lines(Server("changing", {"say": Tool("Say " + os.environ["WORD"], lambda given: given)})).run()
"""


def stdio(*arguments: str, **more: Any) -> dict[str, Any]:
    """A server of ours, as the config names it."""
    return {"transport": "stdio", "command": [sys.executable, "-ES", *arguments], "cwd": str(ROOT), **more}


def ledger(folder: Path, **more: Any) -> dict[str, Any]:
    return stdio("-m", "tests.servers.ledger", str(folder), **more)


def changing(word: str, pin: str) -> dict[str, Any]:
    return stdio("-c", CHANGING, env={"WORD": word}, pin=pin)


GONE = {"transport": "stdio", "command": ["/nowhere/at-all"], "restart": {"enabled": False}}


@dataclass(frozen=True)
class ServedGateway:
    """A gateway with a config file of its own."""

    gateway: InProcessGateway
    path: Path

    async def write(self, servers: dict[str, Any], **more: Any) -> None:
        await anyio.Path(self.path).write_text(spelled(servers, **more))

    async def ask(self, method: str, target: str, shape: str | None = None, body: Any = None) -> Reply:
        """Send a request as the operator; with a shape, the response must match it."""
        with anyio.fail_after(PATIENCE):
            reply = await self.gateway.request(method, target, body=body)
        if shape is not None:
            assert reply.status == 200, reply.body
            described = (await self.gateway.request("GET", "/openapi.json")).json["components"]
            jsonschema_rs.validate(
                {"$ref": f"#/components/schemas/{shape}", "components": described}, reply.json
            )
        return reply

    async def status(self) -> Any:
        return (await self.ask("GET", "/mcp/status", "Servers")).json


def spelled(servers: dict[str, Any], **more: Any) -> str:
    """A config; JSON is YAML."""
    return json.dumps({"mcp": {"servers": servers, **more}})


@asynccontextmanager
async def serve_config(path: Path, servers: dict[str, Any], **more: Any) -> AsyncGenerator[ServedGateway]:
    await anyio.Path(path).write_text(spelled(servers, **more))
    env = {"TOOLCRIB_ADMIN_KEY": ADMIN}
    document = replace(load(path, env=env), store="sqlite://")
    async with build(document, env=env) as runtime:
        server = GatewayApp(runtime)
        async with server.running():
            with anyio.fail_after(PATIENCE):
                await runtime.settled(PATIENCE)
            yield ServedGateway(InProcessGateway(runtime, server), path)


@pytest.fixture
async def served(tmp_path: Path) -> AsyncGenerator[ServedGateway]:
    secret = {"TOKEN": SECRET}
    servers = {"books": ledger(tmp_path, env=secret), "gone": GONE, "off": {**GONE, "enabled": False}}
    async with serve_config(tmp_path / "toolcrib.yaml", servers, allow_stdio=True) as opened:
        yield opened


@pytest.mark.requirement("C6")
async def test_status_shows_every_server_and_where_names_lead(served: ServedGateway) -> None:
    status = await served.status()
    books, gone, off = (status["servers"][name] for name in ("books", "gone", "off"))
    assert (status["enabled"], books["state"], books["up"], books["restarts"]) == (True, "up", True, 0)
    assert {"append", "pid"} <= set(books["discovered_tools"])
    assert {"mcp_books_append", "mcp_books_pid"} <= set(books["registered_tools"])
    assert status["tool_routes"]["mcp_books_append"] == {"server": "books", "tool": "append"}
    assert (gone["up"], gone["state"]) == (False, "stopped")
    assert gone["last_error"]
    assert (off["enabled"], off["up"]) == (False, False)
    assert SECRET not in str(status)


@pytest.mark.requirement("C6")
async def test_server_test_sends_a_request(served: ServedGateway) -> None:
    fine = (await served.ask("POST", "/mcp/test/books", "Tested")).json
    assert fine["ok"] is True
    assert "mcp_books_append" in fine["tools"]
    assert "error" not in fine
    for name in ("gone", "off"):
        failed = (await served.ask("POST", f"/mcp/test/{name}", "Tested")).json
        assert (failed["ok"], failed["tools"]) == (False, [])
        assert failed["error"]


@pytest.mark.parametrize(
    "method, path", [("POST", "/mcp/test/nowhere"), ("DELETE", "/mcp/servers/nowhere"), ("POST", "/api/pins")]
)
async def test_unknown_targets_are_not_found(served: ServedGateway, method: str, path: str) -> None:
    reply = await served.ask(method, path, body={"name": "books:append"} if path == "/api/pins" else None)
    assert (reply.status, reply.code) == (404, "NOT_FOUND")


@pytest.mark.requirement("C5")
async def test_reload_reports_and_dry_run_only_reports(served: ServedGateway, tmp_path: Path) -> None:
    await served.write({"books": ledger(tmp_path, env={"TOKEN": SECRET}), "more": ledger(tmp_path)})
    dry = (await served.ask("POST", "/reload?dry_run=true", "Plan")).json
    assert (dry["dry_run"], dry["added"], dry["removed"], dry["untouched"]) == (
        True,
        ["more"],
        ["gone"],
        ["books"],
    )
    assert set((await served.status())["servers"]) == {"books", "gone", "off"}
    done = (await served.ask("POST", "/reload", "Plan")).json
    assert done == {**dry, "dry_run": False}
    status = await served.status()
    assert {name: each["state"] for name, each in status["servers"].items()} == {"books": "up", "more": "up"}
    called = await served.gateway.call("mcp_more_append", {"op_id": "one"})
    assert called.json["data"]["op_id"] == "one"


@pytest.mark.requirement("C5")
async def test_a_bad_config_is_refused_whole_with_every_fault(served: ServedGateway) -> None:
    before = await served.status()
    text = "mcp:\n  servers:\n    a: {transport: carrier-pigeon}\n    b: {transport: http, urll: x}\n"
    await anyio.Path(served.path).write_text(text)
    for target in ("/reload", "/reload?dry_run=true"):
        refused = await served.ask("POST", target)
        assert (refused.status, refused.code) == (400, "INVALID_REQUEST")
        faults = refused.json["error"]["details"]["faults"]
        assert {"mcp.servers.a.transport", "mcp.servers.b.urll"} <= {each["where"] for each in faults}
        assert {(each["file"], each["line"]) for each in faults} == {
            (str(served.path), 3),
            (str(served.path), 4),
        }
        assert all(each["message"] for each in faults)
    after = await served.status()
    assert after["tool_routes"] == before["tool_routes"]
    assert after["servers"].keys() == before["servers"].keys()


@pytest.mark.requirement("B8")
async def test_only_added_servers_can_be_removed(served: ServedGateway, tmp_path: Path) -> None:
    refused = await served.ask("DELETE", "/mcp/servers/books")
    assert (refused.status, refused.code) == (403, "SCOPE_DENIED")
    command = ledger(tmp_path)
    with anyio.fail_after(PATIENCE):
        added = await served.gateway.call("mcp_add_server", {"server_id": "extra", **command})
    assert added.status == 200, added.body
    assert (await served.status())["servers"]["extra"]["added"] is True
    plan = (await served.ask("DELETE", "/mcp/servers/extra", "Plan")).json
    assert (plan["removed"], plan["added"]) == (["extra"], [])
    assert "extra" not in (await served.status())["servers"]
    assert (await served.gateway.call("mcp_extra_append", {"op_id": "x"})).code == "TOOL_NOT_FOUND"


async def test_a_changed_definition_is_hidden_until_it_is_approved(tmp_path: Path) -> None:
    servers = {"one": changing("this", "strict"), "two": changing("this", "notify")}
    async with serve_config(tmp_path / "toolcrib.yaml", servers) as served:
        assert (await served.ask("GET", "/api/pins", "Pins")).json == {"pins": []}
        await served.write({"one": changing("that", "strict"), "two": changing("that", "notify")})
        await served.ask("POST", "/reload", "Plan")
        pins = {each["name"]: each for each in (await served.ask("GET", "/api/pins", "Pins")).json["pins"]}
        assert {name: each["mode"] for name, each in pins.items()} == {
            "one:say": "strict",
            "two:say": "notify",
        }
        assert (await served.gateway.call("one:say")).code == "TOOL_NOT_FOUND"
        assert (await served.gateway.call("two:say")).status == 200
        seal = pins["one:say"]["seal"]
        stale = await served.ask("POST", "/api/pins", body={"name": "one:say", "seal": "0" * 64})
        assert (stale.status, stale.json["error"]["path"]) == (400, "seal")
        approved = await served.ask("POST", "/api/pins", "Approved", {"name": "one:say", "seal": seal})
        assert approved.json == {"name": "one:say", "seal": seal}
        assert (await served.gateway.call("one:say")).status == 200
        await served.ask("POST", "/api/pins", "Approved", {"name": "mcp_two_say"})
        assert (await served.ask("GET", "/api/pins", "Pins")).json == {"pins": []}


@pytest.mark.parametrize(
    "method, target, body",
    [
        ("GET", "/mcp/status?verbose=1", None),
        ("POST", "/mcp/test/books?now=1", None),
        ("DELETE", "/mcp/servers/books?all=1", None),
        ("POST", "/reload?dry_run=maybe", None),
        ("POST", "/reload?dry_run=true&dry_run=true", None),
        ("GET", "/api/pins?all=1", None),
        ("POST", "/api/pins", {}),
        ("POST", "/api/pins", {"name": ""}),
        ("POST", "/api/pins", {"name": "x", "seal": 7}),
        ("POST", "/api/pins", {"name": "x", "mode": "off"}),
        ("POST", "/api/pins", ["x"]),
    ],
)
async def test_wrong_requests(gateway: InProcessGateway, method: str, target: str, body: Any) -> None:
    reply = await gateway.request(method, target, body=body)
    assert (reply.status, reply.code) == (400, "INVALID_REQUEST")
