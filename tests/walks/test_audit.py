"""Every administrative action on every frontend makes exactly one audit record, before it is answered."""

import inspect
import json
import logging
import re
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from sqlalchemy import text

from tests.frontends.web.test_sessions import exchanged, signed_in
from tests.gateways import ADMIN, HOST, InProcessGateway, open_gateway
from tests.waiting import until
from tests.walks.test_routes import APP, MCP, TABLE, RoleKeys, role_keys
from toolcrib.admin import Admin, AppAdmin, ServerAdmin, UserAdmin
from toolcrib.config import load
from toolcrib.crib import Crib
from toolcrib.model import Actor, Caller, JsonObject
from toolcrib.observe.audit import check_chain
from toolcrib.runtime import build
from toolcrib.server import hung_up
from toolcrib.store.sql.store import SqlStore

__all__ = ["role_keys"]

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("I8")]

NOT_ADMINISTRATIVE = {
    "/api/tools/execute": "calls a tool; calls have a log of their own",
    "/api/tools/answer": "calls tools",
    "/api/tools/apps/{package}/tool": "calls a tool",
    "/mcp": "calls tools",
    "/contexts/{name}/mcp": "calls tools",
    "/api/signin/exchange": "makes its own record, as the key that made the link",
    "/api/users/{id}/transcription": "passes on what a user says",
    "/api/sdk/simple-storage/{user}": "data of an app, by the app itself",
    "/api/sdk/simple-storage/{user}/{key}": "data of an app, by the app itself",
}
READS = {
    Admin: {"calls", "usage", "ready", "audit_records", "status", "explain", "metrics"}
    | {"keys", "keys_after", "key", "reachable", "confined_app"},
    ServerAdmin: {"status", "pins"},
    AppAdmin: {"page", "get", "owned", "holder", "remarks"},
    UserAdmin: {"page", "get", "session", "transcribe", "listen", "use", "end_unused"},
}
LAZY = {"url": "https://mcp.example.com/mcp", "start": "lazy"}
KNOWN = {"keys", "apps", "users", "servers", "pins", "config", "signin", "store", "auth", "attempts"}


async def records(gateway: InProcessGateway, **which: Any) -> list[JsonObject]:
    """All records, the newest first."""
    chosen: dict[str, Any] = {"limit": 1000, **which}
    return await gateway.runtime.console.audit_records(**chosen)


async def made(gateway: InProcessGateway, count: int) -> list[JsonObject]:
    """The records made since there were `count`, the oldest first."""
    found = await records(gateway)
    return found[: len(found) - count][::-1]


@pytest.fixture
async def gateway() -> AsyncGenerator[InProcessGateway]:
    async with open_gateway("mcp: {allow_stdio: true}") as opened:
        yield opened


# --- completeness ---


async def test_every_route_that_changes_something_has_an_action(role_keys: RoleKeys) -> None:
    routes = role_keys.gateway.server.router.routes
    without = {each.path for each in routes if each.method != "GET" and each.action is None}
    assert without == set(NOT_ADMINISTRATIVE)
    named = [each.action for each in routes if each.action is not None]
    assert len(named) == len(set(named)) == 23
    assert {each.partition(".")[0] for each in named} <= KNOWN
    assert not any(each.action for each in routes if each.method == "GET")


@pytest.mark.parametrize("kind", READS, ids=lambda kind: kind.__name__)
def test_every_console_method_that_changes_takes_an_actor(kind: type) -> None:
    methods = {name: each for name, each in inspect.getmembers(kind, inspect.isfunction) if name[0] != "_"}
    changing = {name for name, each in methods.items() if Actor in each.__annotations__.values()}
    assert changing == set(methods) - READS[kind]
    for name in changing:
        assert "self.audit.action(actor" in inspect.getsource(methods[name]), name


async def test_every_action_by_rest_makes_one_record(role_keys: RoleKeys) -> None:
    for route in role_keys.gateway.server.router.routes:
        if route.action is None:
            continue
        for role, kind in (("admin", "admin"), ("plain", "key")):
            count = len(await records(role_keys.gateway))
            reply = await role_keys.ask((route.method, route.path), role, client="192.0.2.1")
            (record,) = await made(role_keys.gateway, count)
            assert record["action"] == route.action
            assert record["outcome"] == (reply.code or "success"), (route.path, role, reply.body)
            assert record["actor"] == {"kind": kind, "name": role, "user": None}
            assert (record["origin"]["frontend"], record["origin"]["address"]) == ("rest", "192.0.2.1")
            assert role == "admin" or reply.status in {400, 403}
    check = await check_chain(each_of(await records(role_keys.gateway)))
    assert check.intact


async def test_invalid_requests_are_recorded_with_their_code(role_keys: RoleKeys) -> None:
    for (method, path), probe in TABLE.items():
        route = next(
            each
            for each in role_keys.gateway.server.router.routes
            if (each.method, each.path) == (method, path)
        )
        if route.action is None or probe.body is None:
            continue
        count = len(await records(role_keys.gateway))
        reply = await role_keys.gateway.request(method, probe.target or path, body=b"{")
        (record,) = await made(role_keys.gateway, count)
        assert (record["action"], record["outcome"]) == (route.action, reply.code)
        assert reply.code == "INVALID_REQUEST"


async def each_of(found: list[JsonObject]) -> AsyncGenerator[JsonObject]:
    for record in found:
        yield record


# --- what a record says ---


async def test_record_has_actor_address_before_and_after(gateway: InProcessGateway) -> None:
    key = await gateway.key("ops", permissions=["crib:keys", "cards:read"], actAs=True)
    body = {"name": "ci", "permissions": ["cards:read"]}
    await gateway.begin("ann")
    await gateway.request(
        "POST", "/api/keys", key=key, body=body, headers={"x-user-id": "ann"}, client="192.0.2.5"
    )
    await gateway.request("DELETE", "/api/keys/ci", key=key, client="192.0.2.5")
    revoked, created = (await records(gateway, action="keys"))[:2]
    assert created["actor"] == {"kind": "key", "name": "ops", "user": "ann"}
    assert created["target"] == revoked["target"] == "ci"
    assert (created["before"], created["after"]["permissions"]) == (None, ["cards:read"])
    assert created["after"]["createdBy"] == "key:ops"
    assert (revoked["before"]["revoked"], revoked["after"]["revoked"] is None) == (None, False)
    assert re.fullmatch(r".+:\d+", created["origin"]["process"])


@pytest.mark.requirement("I1")
async def test_address_is_the_one_a_trusted_proxy_reports() -> None:
    async with open_gateway("server: {trusted_proxies: ['10.0.0.0/8']}") as gateway:
        forwarded = {"x-forwarded-for": "198.51.100.4, 10.0.0.2"}
        for client, expected in (("10.0.0.1", "198.51.100.4"), ("192.0.2.1", "192.0.2.1")):
            await gateway.request("POST", "/reload", headers=forwarded, client=client)
            assert (await records(gateway, limit=1))[0]["origin"]["address"] == expected


@pytest.mark.requirement("I1")
async def test_keys_have_creator_and_last_use(gateway: InProcessGateway) -> None:
    ops = await gateway.key("ops", permissions=["crib:keys"])
    await gateway.request("POST", "/api/keys", key=ops, body={"name": "ci"})
    ring, keys = gateway.runtime.identity.ring, gateway.runtime.console.store.keys
    await keys.used(ring.used)
    found = {each["name"]: each for each in (await gateway.request("GET", "/api/keys")).json["keys"]}
    assert (found["ops"]["createdBy"], found["ci"]["createdBy"]) == ("admin", "key:ops")
    assert found["ops"]["lastUsed"] > found["ops"]["created"] - 1
    assert found["ci"]["lastUsed"] is None
    assert "admin" not in ring.used


async def test_records_are_listed_newest_first_by_pages(gateway: InProcessGateway) -> None:
    for name in ("a", "b", "c"):
        await gateway.key(name)
    first = (await gateway.request("GET", "/api/audit?limit=2&action=keys&actor=admin")).json["records"]
    assert [each["target"] for each in first] == ["c", "b"]
    rest = await gateway.request("GET", f"/api/audit?before={first[-1]['number']}&since=1")
    assert [each["target"] for each in rest.json["records"]] == ["a"]
    for wrong in ("limit=0", "before=x", "since=x", "other=1"):
        assert (await gateway.request("GET", f"/api/audit?{wrong}")).status == 400


# --- the other frontends ---


async def test_page_is_recorded_from_sign_in_to_sign_out(gateway: InProcessGateway) -> None:
    session = await signed_in(gateway)
    headers = session.both
    await gateway.request("POST", "/api/keys", key=None, body={"name": "made"}, headers=headers)
    await gateway.request("POST", "/api/signout", key=None, headers=headers)
    forged = {**session.cookie_alone, "x-crib-token": "wrong"}
    await gateway.request("POST", "/api/keys", key=None, body={"name": "forged"}, headers=forged)
    found = (await records(gateway))[::-1]
    assert [(each["action"], each["origin"]["frontend"]) for each in found[:4]] == [
        ("signin.link", "rest"),
        ("signin.start", "page"),
        ("keys.create", "page"),
        ("signin.end", "page"),
    ]
    assert {each["actor"]["name"] for each in found[:4]} == {"admin"}


async def test_wrong_secret_of_the_page_is_recorded(gateway: InProcessGateway) -> None:
    forged = {**(await signed_in(gateway)).cookie_alone, "x-crib-token": "wrong"}
    reply = await gateway.request("POST", "/api/keys", key=None, body={"name": "forged"}, headers=forged)
    (record,) = await records(gateway, limit=1)
    assert (record["action"], record["target"]) == ("auth.failed", "session")
    assert (record["outcome"], record["actor"]["kind"]) == (reply.code, "unknown")
    assert reply.code == "UNAUTHENTICATED"


async def by_rest(gateway: InProcessGateway, key: str, arguments: Any) -> None:
    await gateway.call("mcp_add_server", arguments, key=key)


async def by_mcp(gateway: InProcessGateway, key: str, arguments: Any) -> None:
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"name": "mcp_add_server", "arguments": arguments, "_meta": meta}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    headers = {**MCP, "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call"}
    headers["mcp-name"] = "mcp_add_server"
    reply = await gateway.request("POST", "/mcp", key=key, body=body, headers=headers)
    assert reply.status == 200, reply.body


async def by_provider(gateway: InProcessGateway, key: str, arguments: Any) -> None:
    use = {"type": "tool_use", "id": "t1", "name": "mcp_add_server", "input": arguments}
    body = {"format": "anthropic", "message": {"role": "assistant", "content": [use]}}
    reply = await gateway.request("POST", "/api/tools/answer", key=key, body=body)
    assert reply.status == 200, reply.body


async def by_library(gateway: InProcessGateway, key: str, arguments: Any) -> None:
    caller = gateway.runtime.identity.bearer(f"Bearer {key}".encode())
    await gateway.runtime.gateway.call("mcp_add_server", arguments, caller)


FRONTENDS = {by_rest: "rest", by_mcp: "mcp", by_provider: "rest", by_library: "library"}


@pytest.mark.parametrize("add, frontend", FRONTENDS.items(), ids=lambda each: getattr(each, "__name__", ""))
async def test_server_added_by_a_tool_is_recorded(gateway: InProcessGateway, add: Any, frontend: str) -> None:
    keys = {"admin": ADMIN, "plain": await gateway.key("plain")}
    expected = [
        ("admin", {"server_id": "web", **LAZY}, "success"),
        ("admin", {"server_id": "web", **LAZY}, "ALREADY_EXISTS"),
        ("admin", {"server_id": "web2", "args": ["x"]}, "INVALID_ARGUMENTS"),
        ("admin", {"server_id": "NOT A NAME"}, "INVALID_ARGUMENTS"),
        ("admin", {"server_id": "bad", "url": "ftp://x"}, "INVALID_REQUEST"),
        ("plain", {"server_id": "web3", **LAZY}, "PERMISSION_DENIED"),
    ]
    for role, arguments, outcome in expected:
        count = len(await records(gateway))
        await add(gateway, keys[role], arguments)
        (record,) = await made(gateway, count)
        assert (record["action"], record["outcome"]) == ("servers.add", outcome), arguments
        assert (record["target"], record["actor"]["name"]) == (arguments["server_id"], role)
        assert record["origin"]["frontend"] == frontend


async def test_embedding_program_is_recorded_as_library() -> None:
    async with Crib(env={}) as gateway:
        console = gateway.runtime.console
        await console.create_key("one")
        await gateway.call("mcp_add_server", {"server_id": "web", **LAZY})
        found = await console.audit_records()
    assert [each["action"] for each in found] == ["servers.add", "keys.create"]
    assert {each["actor"]["kind"] for each in found} == {"library"}


async def test_reload_by_signal_and_file_watch_is_recorded(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "toolcrib")
    path = tmp_path / "toolcrib.yaml"
    path.write_text("reload: {watch: true}\n")
    env = {"TOOLCRIB_ADMIN_KEY": ADMIN}
    document = replace(load(path, env=env), store="sqlite://")
    async with build(document, env=env) as role_keys:
        await hung_up(role_keys)
        path.write_text("reload: {watch: true}\ncontexts: {few: {}}\n")
        await until(lambda: sum("config.reload" in each.message for each in caplog.records) >= 2)
        found = await role_keys.console.audit_records(action="config.reload")
        path.write_text("contexts: 3\n")
        await hung_up(role_keys)
        refused = (await role_keys.console.audit_records(limit=1))[0]
    assert {"signal", "file_watch"} == {each["actor"]["kind"] for each in found}
    assert any("contexts" in each["after"]["applied"] for each in found)
    assert (refused["outcome"], refused["actor"]["kind"]) == ("INVALID_REQUEST", "signal")


# --- before the answer ---


async def test_unwritten_record_makes_the_answer_an_error(
    gateway: InProcessGateway, caplog: pytest.LogCaptureFixture
) -> None:
    store = gateway.runtime.console.store
    assert isinstance(store, SqlStore)
    async with store.database.write() as connection:
        await connection.execute(text("DROP TABLE toolcrib_audit"))
    reply = await gateway.request("POST", "/api/keys", body={"name": "made"})
    assert (reply.status, reply.code) == (504, "OUTCOME_UNKNOWN")
    assert b"tc_" not in reply.body
    assert [key.name for key in await store.keys.all()] == ["made"], "the change was made"
    (logged,) = [each for each in caplog.records if each.levelno == logging.ERROR]
    assert vars(logged)["audit"]["target"] == "made"
    refused = await gateway.request("POST", "/api/keys", body={"name": "not a name"})
    assert refused.code == "INVALID_REQUEST", "an attempt that failed keeps its own error"
    assert (await gateway.request("GET", "/api/tools")).status == 200


async def test_cancelled_action_is_recorded(gateway: InProcessGateway) -> None:
    audit, actor = gateway.runtime.console.audit, Actor.of(Caller(id="key:x", key="x"), "rest")
    with anyio.CancelScope() as scope:
        async with audit.action(actor, "servers.test", "slow"):
            scope.cancel()
            await anyio.sleep_forever()
    with pytest.raises(RuntimeError):
        async with audit.action(actor, "servers.test", "broken"):
            raise RuntimeError
    found = await records(gateway)
    assert [(each["target"], each["outcome"]) for each in found] == [
        ("broken", "EXECUTION_ERROR"),
        ("slow", "CANCELLED"),
    ]


async def test_each_record_is_logged_with_its_hash(
    gateway: InProcessGateway, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "toolcrib"):
        await gateway.key("one")
    (record,) = await records(gateway)
    logged = [vars(each)["audit"] for each in caplog.records if hasattr(each, "audit")]
    assert logged == [record]


async def test_refused_floods_of_one_key_are_counted(gateway: InProcessGateway) -> None:
    plain = await gateway.key("plain")
    for _ in range(50):
        await gateway.request("POST", "/reload", key=plain)
    await gateway.runtime.console.audit.flush(everything=True)
    found = await records(gateway, actor="plain")
    assert len(found) == 31
    assert (found[0]["action"], found[0]["after"]["count"]) == ("attempts.refused", 20)


# --- secrets ---


@pytest.mark.requirement("I5")
async def test_no_record_holds_a_secret(gateway: InProcessGateway, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "toolcrib")
    canary = "canary-7c1f09ab55aa"
    secrets = [canary, "canary-in-a", await gateway.key("one")]
    await gateway.request("POST", "/api/keys", key=f"tc_{canary}", body={"name": "x"})
    secrets.append((await gateway.request("POST", "/api/keys/one/rotate")).json["key"])
    server = {
        "server_id": "web",
        "url": f"https://mcp.example.com/canary-in-a-path/mcp?key={canary}",
        "headers": {"Authorization": f"Bearer {canary}", "X-Thing": canary},
        "start": "lazy",
    }
    added = await gateway.call("mcp_add_server", server)
    assert added.status == 200, added.body
    arguments = ["--api-key", canary, "canary-in-an-argument", "-H", "X-Custom: canary-in-a-header"]
    program = {"server_id": "prog", "command": ["true", *arguments], "env": {"T": canary}}
    added = await gateway.call("mcp_add_server", {**program, "start": "lazy"})
    assert added.status == 200, added.body
    app = {"name": "Notes", "publicUrl": "https://notes.example.com"}
    secrets.append((await gateway.request("PUT", f"/api/apps/{APP}", body=app)).json["apiKey"])
    secrets.append((await gateway.request("POST", f"/api/apps/{APP}/key/rotate")).json["apiKey"])
    await gateway.request("PUT", f"/api/users/ann/apps/{APP}", body={"settings": {"pin": canary}})
    secrets.append((await gateway.request("POST", "/api/signin")).json["url"].partition("token=")[2])
    wrong = await exchanged(gateway, canary)
    assert wrong.code == "UNAUTHENTICATED"
    stored = await gateway.runtime.console.store.keys.all()
    secrets += [key.digest for key in stored]
    shown = json.dumps(await records(gateway))
    logged = json.dumps([vars(each).get("audit") for each in caplog.records])
    assert len(await records(gateway)) >= 9
    for secret in secrets:
        assert secret not in shown + logged
    assert HOST not in secrets
