"""Every route there is, asked by everyone there is: a route that is not in the table fails the test."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass, replace
from time import time
from typing import Any

import pytest

from tests.gateways import ADMIN, InProcessGateway, Reply, open_gateway
from toolcrib import create_tool
from toolcrib.interfaces import KeyRecord

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("I1")]

CONFIG = "contexts: {few: {tools: ['tools:hello']}}"
ROLES = ("anonymous", "plain", "scoped", "revoked", "expired", "acting", "admin")
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
INITIALIZE = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}
MCP = {"accept": "application/json, text/event-stream"}


@create_tool(category="query")
async def hello() -> str:
    """Say hello."""
    return "hello"


@dataclass(frozen=True)
class Probe:
    """What is sent to a route, and the status each role gets, in the order of `ROLES`."""

    statuses: tuple[int, ...]
    target: str | None = None
    body: Any = None
    headers: dict[str, str] | None = None
    leaves: bool = False
    """Whether the one who asks is gone once there is an answer, which would never end otherwise."""


def for_all(status: int = 200, **more: Any) -> Probe:
    return Probe((status,) * 7, **more)


def for_keys(status: int = 200, **more: Any) -> Probe:
    return Probe((401, status, status, 401, 401, status, status), **more)


def for_operators(status: int = 200, **more: Any) -> Probe:
    return Probe((401, 403, 403, 401, 401, 403, status), **more)


def for_acting(status: int = 200, **more: Any) -> Probe:
    return Probe((401, 403, 403, 401, 401, status, status), **more)


ANN, APP, NOWHERE = "/api/users/ann", "com.example.notes", "com.example.nowhere"
STORAGE = "/api/sdk/simple-storage/ann"

TABLE: dict[tuple[str, str], Probe] = {
    ("GET", "/"): for_all(),
    ("GET", "/assets/{file}"): for_all(target="/assets/page.css"),
    ("GET", "/admin"): for_all(303),
    ("GET", "/health"): for_all(),
    ("GET", "/ready"): for_all(),
    ("GET", "/metrics"): for_all(),
    ("GET", "/openapi.json"): for_all(),
    ("GET", "/api/tools"): for_keys(),
    ("POST", "/api/tools/execute"): for_keys(body={"name": "hello"}),
    ("POST", "/api/tools/answer"): for_keys(body={"format": "anthropic", "message": {"content": ""}}),
    ("GET", "/api/calls"): for_keys(),
    ("GET", "/api/usage"): for_keys(),
    ("GET", "/api/explain"): for_keys(target="/api/explain?name=hello"),
    ("GET", "/api/audit"): for_operators(),
    ("GET", "/api/status"): for_operators(),
    ("GET", "/api/keys"): for_operators(),
    ("POST", "/api/keys"): for_operators(201, body={"name": "made"}),
    ("DELETE", "/api/keys/{name}"): for_operators(target="/api/keys/victim"),
    ("POST", "/api/keys/{name}/rotate"): for_operators(target="/api/keys/victim/rotate"),
    ("GET", "/mcp/status"): for_operators(),
    ("POST", "/mcp/test/{server_id}"): for_operators(404, target="/mcp/test/nowhere"),
    ("DELETE", "/mcp/servers/{server_id}"): for_operators(404, target="/mcp/servers/nowhere"),
    ("POST", "/reload"): for_operators(),
    ("GET", "/api/pins"): for_operators(),
    ("POST", "/api/pins"): for_operators(404, body={"name": "hello"}),
    ("GET", "/api/apps"): for_operators(),
    ("GET", "/api/apps/{package}"): for_operators(target=f"/api/apps/{APP}"),
    ("GET", "/api/apps/{package}/tools"): for_operators(target=f"/api/apps/{APP}/tools"),
    ("PUT", "/api/apps/{package}"): for_operators(
        201, target="/api/apps/org.example.new", body={"name": "N"}
    ),
    ("DELETE", "/api/apps/{package}"): for_operators(404, target=f"/api/apps/{NOWHERE}"),
    ("POST", "/api/apps/{package}/key/rotate"): for_operators(404, target=f"/api/apps/{NOWHERE}/key/rotate"),
    ("POST", "/api/apps/{package}/tools"): for_operators(
        404, target=f"/api/apps/{NOWHERE}/tools", body={"tools": []}
    ),
    ("GET", "/api/users"): for_operators(),
    ("GET", "/api/users/{id}"): for_operators(target=ANN),
    ("PUT", "/api/users/{id}"): for_operators(target="/api/users/zoe", body={"language": "de"}),
    ("DELETE", "/api/users/{id}"): for_operators(404, target="/api/users/nobody"),
    ("PUT", "/api/users/{id}/apps/{package}"): for_operators(target=f"{ANN}/apps/{APP}"),
    ("DELETE", "/api/users/{id}/apps/{package}"): for_operators(404, target=f"{ANN}/apps/{NOWHERE}"),
    ("POST", "/api/users/{id}/apps/{package}/start"): for_operators(
        404, target=f"{ANN}/apps/{NOWHERE}/start"
    ),
    ("POST", "/api/users/{id}/apps/{package}/stop"): for_operators(target=f"{ANN}/apps/{APP}/stop"),
    ("PUT", "/api/users/{id}/tools/{name}/disabled"): for_operators(target=f"{ANN}/tools/hello/disabled"),
    ("DELETE", "/api/users/{id}/tools/{name}/disabled"): for_operators(target=f"{ANN}/tools/hello/disabled"),
    ("GET", "/api/users/{id}/session"): for_operators(target=f"{ANN}/session"),
    ("PUT", "/api/users/{id}/session"): for_operators(target=f"{ANN}/session", body={}),
    ("DELETE", "/api/users/{id}/session"): for_operators(404, target="/api/users/nobody/session"),
    ("POST", "/api/users/{id}/transcription"): for_operators(
        target=f"{ANN}/transcription", body={"text": "hello", "isFinal": True}
    ),
    ("GET", "/api/users/{id}/events"): for_operators(target=f"{ANN}/events", leaves=True),
    ("GET", "/api/sdk/simple-storage/{user}"): for_all(401, target=STORAGE),
    ("PUT", "/api/sdk/simple-storage/{user}"): for_all(401, target=STORAGE, body={"data": {}}),
    ("DELETE", "/api/sdk/simple-storage/{user}"): for_all(401, target=STORAGE),
    ("GET", "/api/sdk/simple-storage/{user}/{key}"): for_all(401, target=f"{STORAGE}/k"),
    ("PUT", "/api/sdk/simple-storage/{user}/{key}"): for_all(401, target=f"{STORAGE}/k", body={"value": ""}),
    ("DELETE", "/api/sdk/simple-storage/{user}/{key}"): for_all(401, target=f"{STORAGE}/k"),
    ("GET", "/api/tools/apps/{package}/tools"): for_operators(target=f"/api/tools/apps/{APP}/tools"),
    ("GET", "/api/tools/users/{user}/tools"): for_acting(target="/api/tools/users/ann/tools"),
    ("POST", "/api/tools/apps/{package}/tool"): for_acting(
        404, target=f"/api/tools/apps/{APP}/tool", body={"toolId": "nothing", "userId": "ann"}
    ),
    ("GET", "/app-ws"): for_all(400),
    ("POST", "/api/signin"): for_operators(),
    ("POST", "/api/signin/exchange"): for_all(
        401, body={"token": "guess"}, headers={"sec-fetch-site": "same-origin"}
    ),
    ("POST", "/api/signout"): for_keys(400),
    ("GET", "/mcp"): for_keys(400, headers=MCP),
    ("POST", "/mcp"): for_keys(body=INITIALIZE, headers=MCP),
    ("DELETE", "/mcp"): for_keys(400, headers=MCP),
    ("GET", "/contexts/{name}/mcp"): for_keys(400, target="/contexts/few/mcp", headers=MCP),
    ("POST", "/contexts/{name}/mcp"): for_keys(target="/contexts/few/mcp", body=INITIALIZE, headers=MCP),
    ("DELETE", "/contexts/{name}/mcp"): for_keys(400, target="/contexts/few/mcp", headers=MCP),
}

APPS_READ = {
    ("GET", "/api/apps"),
    ("GET", "/api/apps/{package}"),
    ("GET", "/api/apps/{package}/tools"),
    ("GET", "/api/tools/apps/{package}/tools"),
}
ACTING = {route for route, probe in TABLE.items() if probe.statuses[5] != 403 and 403 in probe.statuses}
"""To act for a user is no permission, but the nature of a key."""

NEEDS = {
    "crib:apps": APPS_READ | {each for each in TABLE if each[1].startswith("/api/apps")},
    "crib:users": APPS_READ | {each for each in TABLE if each[1].startswith("/api/users")},
    "crib:keys": {
        ("GET", "/api/keys"),
        ("POST", "/api/keys"),
        ("DELETE", "/api/keys/{name}"),
        ("POST", "/api/keys/{name}/rotate"),
    },
    "crib:status": {("GET", "/api/status"), ("GET", "/mcp/status")},
    "crib:servers": {
        ("POST", "/mcp/test/{server_id}"),
        ("DELETE", "/mcp/servers/{server_id}"),
        ("POST", "/reload"),
        ("GET", "/api/pins"),
        ("POST", "/api/pins"),
    },
    "crib:admin": {("POST", "/api/signin"), ("GET", "/api/audit")},
}


def group(route: tuple[str, str]) -> str:
    """What is asked in one house: of apps and users all, for what is changed there disturbs nobody."""
    together = ("/api/apps", "/api/users", "/api/sdk", "/api/tools/")
    return next((each for each in together if route[1].startswith(each)), " ".join(route))


GROUPS = {name: [each for each in TABLE if group(each) == name] for name in map(group, TABLE)}


@dataclass(frozen=True)
class RoleKeys:
    """A house, and the key of everyone who asks."""

    gateway: InProcessGateway
    keys: dict[str, str | None]
    victim: str = "victim"
    """The key that is rotated and revoked; `crib:keys` alone reaches those it has made."""

    async def ask(
        self,
        route: tuple[str, str],
        role: str,
        *,
        extra: dict[str, str] | None = None,
        client: str = "127.0.0.1",
    ) -> Reply:
        probe = TABLE[route]
        headers = {**(probe.headers or {}), **(extra or {})}
        target, key = (probe.target or route[1]).replace("victim", self.victim), self.keys[role]
        more: Any = {"headers": headers, "client": client, "leaves": probe.leaves}
        return await self.gateway.request(route[0], target, key=key, body=probe.body, **more)


async def expired(gateway: InProcessGateway) -> KeyRecord:
    """Return the key of that name as it is an hour later."""
    record = await gateway.runtime.console.store.keys.find("expired")
    assert record is not None
    return replace(record, expires=time() - 1)


@pytest.fixture
async def role_keys() -> AsyncGenerator[RoleKeys]:
    async with open_gateway(CONFIG, tools=[hello]) as gateway:
        keys: dict[str, str | None] = {"anonymous": None, "admin": ADMIN}
        keys["plain"] = await gateway.key("plain")
        keys["scoped"] = await gateway.key("scoped", contexts=["few"])
        keys["revoked"] = await gateway.key("revoked", permissions=["*"], actAs=True)
        keys["acting"] = await gateway.key("acting", actAs=True)
        keys["expired"] = await gateway.key("expired", permissions=["*"], actAs=True, expires=time() + 3600)
        gateway.runtime.identity.ring.apply([await expired(gateway)])
        await gateway.key("victim")
        await gateway.request("DELETE", "/api/keys/revoked")
        await gateway.request("PUT", f"/api/apps/{APP}", body={"name": "Notes"})
        await gateway.request("PUT", f"{ANN}/apps/{APP}")
        await gateway.request("PUT", f"{ANN}/session")
        yield RoleKeys(gateway, keys)


@pytest.mark.check(2)
async def test_the_table_holds_every_route(role_keys: RoleKeys) -> None:
    assert {(route.method, route.path) for route in role_keys.gateway.server.router.routes} == set(TABLE)


@pytest.mark.parametrize("routes", GROUPS.values(), ids=GROUPS)
@pytest.mark.check(2)
async def test_permission_matrix_of_routes(role_keys: RoleKeys, routes: list[tuple[str, str]]) -> None:
    wrong: list[str] = []
    for route in routes:
        for role, expected in zip(ROLES, TABLE[route].statuses, strict=True):
            reply = await role_keys.ask(route, role)
            if reply.status != expected:
                wrong.append(f"{' '.join(route)} {role}: {reply.status} instead of {expected}")
            if expected in {401, 403}:
                assert reply.code == {401: "UNAUTHENTICATED", 403: "SCOPE_DENIED"}[expected]
                assert ("www-authenticate" in reply.headers) is (expected == 401)
    assert wrong == []


@pytest.mark.check(2)
async def test_only_these_are_open_to_strangers_elsewhere(role_keys: RoleKeys) -> None:
    opened = {"/", "/assets/{file}", "/admin", "/health", "/ready", "/app-ws"}
    for route in TABLE:
        reply = await role_keys.ask(route, "anonymous", client="198.51.100.7")
        assert (reply.status == 401) is (route[1] not in opened), route


@pytest.mark.check(1)
async def test_acting_for_users_needs_act_as(role_keys: RoleKeys) -> None:
    for route, probe in TABLE.items():
        for role in ("anonymous", "plain", "scoped", "revoked", "expired"):
            reply = await role_keys.ask(route, role, extra={"x-user-id": "ann"})
            assert reply.status in {401, 403} or probe.statuses[0] in {200, 303, 400}, (route, role)


@pytest.mark.parametrize("permission", NEEDS)
@pytest.mark.check(2)
async def test_each_permission_opens_its_own_routes_and_no_others(
    role_keys: RoleKeys, permission: str
) -> None:
    holder = role_keys.keys["holder"] = await role_keys.gateway.key("holder", permissions=[permission])
    if permission == "crib:keys":
        await role_keys.gateway.request("POST", "/api/keys", key=holder, body={"name": "own"})
        role_keys = replace(role_keys, victim="own")
    for route, probe in TABLE.items():
        if 403 in probe.statuses and route not in ACTING:
            opened = (await role_keys.ask(route, "holder")).status not in {401, 403}
            assert opened is (permission == "crib:admin" or route in NEEDS[permission]), route


@pytest.mark.check(2)
async def test_users_and_their_agents_reach_only_own_data(
    role_keys: RoleKeys,
) -> None:
    role_keys.keys["ann"] = await role_keys.gateway.key("ann", user="ann")
    role_keys.keys["bob"] = await role_keys.gateway.key("bob", user="bob")
    theirs = [each for each in TABLE if each[1].startswith("/api/users/") or each in APPS_READ | ACTING]
    for route in theirs:
        if "nobody" in (TABLE[route].target or "") or "zoe" in (TABLE[route].target or ""):
            continue
        expected = TABLE[route].statuses[-1]
        assert (await role_keys.ask(route, "ann")).status == expected, route
        assert (await role_keys.ask(route, "acting", extra={"x-user-id": "ann"})).status == expected, route
        assert ((await role_keys.ask(route, "bob")).status == 403) is (route not in APPS_READ), route


USERS = {route for route in TABLE if route[1].startswith("/api/users")}
WHOLE = NEEDS["crib:servers"] | USERS | {("GET", "/api/audit"), ("GET", "/mcp/status")}
"""What concerns the gateway as a whole, and no key that is confined to contexts."""


async def test_admin_with_contexts_cannot_change_the_gateway(role_keys: RoleKeys) -> None:
    narrow: Any = {"permissions": ["crib:admin"], "contexts": ["few"]}
    role_keys.keys["narrow"] = await role_keys.gateway.key("narrow", **narrow)
    refused = {route for route in TABLE if (await role_keys.ask(route, "narrow")).status == 403}
    others = {("POST", "/api/keys"), ("DELETE", "/api/keys/{name}"), ("POST", "/api/keys/{name}/rotate")}
    assert refused - ACTING == WHOLE | others


@pytest.mark.requirement("F4")
@pytest.mark.check(2)
async def test_a_key_of_one_context_reaches_no_other(role_keys: RoleKeys) -> None:
    scoped = role_keys.keys["scoped"]
    more: Any = {"body": INITIALIZE, "headers": MCP}
    assert (
        await role_keys.gateway.request("POST", "/contexts/default/mcp", key=scoped, **more)
    ).status == 404
    assert (
        await role_keys.gateway.request("POST", "/contexts/default/mcp", key=role_keys.keys["plain"], **more)
    ).status == 200
    for target in ("/api/tools?context=default", "/api/explain?name=hello&context=default"):
        assert (await role_keys.gateway.request("GET", target, key=scoped)).status == 404


@pytest.mark.parametrize(
    "header, value, status, code",
    [
        ("host", "evil.example", 421, "HOST_REFUSED"),
        ("host", "127.0.0.1.evil.example:6740", 421, "HOST_REFUSED"),
        ("host", "a/admin", 400, "INVALID_REQUEST"),
        ("host", "a#", 400, "INVALID_REQUEST"),
        ("host", "x/health?y=", 400, "INVALID_REQUEST"),
        ("origin", "http://evil.example", 403, "ORIGIN_REFUSED"),
        ("origin", "null", 403, "ORIGIN_REFUSED"),
        ("origin", "http://127.0.0.1:6741", 403, "ORIGIN_REFUSED"),
    ],
)
@pytest.mark.check(10)
async def test_hostile_hosts_and_origins_reach_no_route(
    role_keys: RoleKeys, header: str, value: str, status: int, code: str
) -> None:
    for route in TABLE:
        for role in ("anonymous", "admin"):
            reply = await role_keys.ask(route, role, extra={header: value})
            assert (reply.status, reply.code) == (status, code), route
