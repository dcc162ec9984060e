"""Keys that expire, overlap after a rotation, and make other keys: on REST, on streams, on the page."""

import math
from datetime import UTC, datetime
from time import time
from typing import Any

import anyio
import pytest

from tests.frontends.web.test_sessions import signed_in
from tests.gateways import ADMIN, AsgiConnection, InProcessGateway, Reply, open_gateway, scope
from tests.walks.test_routes import INITIALIZE, MCP
from toolcrib import create_tool
from toolcrib.identity import digest
from toolcrib.interfaces import KeyRecord

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("I1")]

CONFIG = "contexts: {few: {tools: ['tools:hello']}, other: {tools: ['tools:secret_one']}}"
REFUSED_WITHIN = 1.0


@create_tool(category="query")
async def hello() -> str:
    """Say hello."""
    return "hello"


@create_tool(category="query")
async def secret_one() -> str:
    """Be of another context."""
    return "secret"


def open_test_gateway() -> Any:
    return open_gateway(CONFIG, tools=[hello, secret_one])


async def made(gateway: InProcessGateway, maker: str = ADMIN, **fields: Any) -> Reply:
    return await gateway.request("POST", "/api/keys", key=maker, body=fields)


async def refused_at(gateway: InProcessGateway, key: str) -> float:
    """Ask until the key is refused; return when that was."""
    with anyio.fail_after(30):
        while (await gateway.request("GET", "/api/tools", key=key)).status != 401:  # noqa: ASYNC110 - nobody is told
            await anyio.sleep(0.02)
    return time()


async def test_a_key_is_refused_within_a_second_of_its_expiry() -> None:
    async with open_test_gateway() as gateway:
        expires = time() + 2
        key = await gateway.key("brief", expires=expires)
        assert (await gateway.request("GET", "/api/tools", key=key)).status == 200
        refused = await refused_at(gateway, key)
        assert expires <= refused < expires + REFUSED_WITHIN
        reply = await gateway.request("GET", "/api/tools", key=key)
        stranger = await gateway.request("GET", "/api/tools", key="tc_unknown")
        assert (reply.code, stranger.code) == ("UNAUTHENTICATED", "UNAUTHENTICATED")
        assert "expired" in reply.json["error"]["message"]
        assert "expired" not in stranger.json["error"]["message"]
        listed = (await gateway.request("GET", "/api/keys")).json["keys"][0]
        assert (listed["expires"], listed["revoked"]) == (expires, None)
        assert (await gateway.request("POST", "/api/keys/brief/rotate")).code == "NOT_FOUND"


async def test_an_expired_key_ends_its_streams_and_page_sessions() -> None:
    async with open_test_gateway() as gateway:
        await gateway.begin("ann")
        key = await gateway.key("brief", permissions=["crib:admin"], expires=time() + 4)
        session = await signed_in(gateway, key)
        begun = await gateway.request("POST", "/mcp", key=key, body=INITIALIZE, headers=MCP)
        mcp_session = begun.headers["mcp-session-id"].encode()
        headers = [(b"host", b"127.0.0.1:6740"), (b"authorization", f"Bearer {key}".encode())]
        listening = [*headers, (b"accept", b"text/event-stream"), (b"mcp-session-id", mcp_session)]
        streams = {"/api/users/ann/events": headers, "/mcp": listening}
        clients = [AsgiConnection() for _ in streams]
        with anyio.fail_after(30):  # both streams end by themselves
            async with anyio.create_task_group() as tasks:
                for client, (path, shown) in zip(clients, streams.items(), strict=True):
                    asked = scope("GET", path, shown)
                    tasks.start_soon(gateway.server, asked, client.receive, client.send)
        assert [client.reply().status for client in clients] == [200, 200]
        after = await gateway.request("GET", "/api/status", key=None, headers=session.both)
        assert after.code == "UNAUTHENTICATED"


@pytest.mark.parametrize("expires", [1.0, "2001-01-01", "soon", True, [], -1, math.inf, 1e300])
async def test_an_expiry_that_cannot_be(expires: Any) -> None:
    async with open_test_gateway() as gateway:
        given = str(expires) if expires == math.inf else expires
        assert (await made(gateway, name="k", expires=given)).code == "INVALID_REQUEST"


async def test_an_expiry_as_iso_time() -> None:
    async with open_test_gateway() as gateway:
        reply = await made(gateway, name="k", expires="2999-01-31T12:00:00Z")
        assert (reply.status, reply.json["expires"]) == (
            201,
            datetime(2999, 1, 31, 12, tzinfo=UTC).timestamp(),
        )


async def test_second_rotation_ends_the_oldest_secret() -> None:
    async with open_test_gateway() as gateway:
        first = await gateway.key("worker")

        async def rotated(seconds: float) -> str:
            body = {"overlapSeconds": seconds}
            return (await gateway.request("POST", "/api/keys/worker/rotate", body=body)).json["key"]

        async def opened(*keys: str) -> list[bool]:
            return [(await gateway.request("GET", "/api/tools", key=each)).status == 200 for each in keys]

        second = await rotated(600)
        assert await opened(first, second) == [True, True]
        callers = [gateway.runtime.identity.bearer(f"Bearer {each}".encode()) for each in (first, second)]
        assert callers[0].principal == callers[1].principal
        assert (await gateway.request("GET", "/api/keys")).json["keys"][0]["previousUntil"] > time()
        third = await rotated(0.5)
        assert await opened(first, second, third) == [False, True, True]
        await refused_at(gateway, second)
        assert await opened(third) == [True]
        fourth = await rotated(0)
        assert await opened(third, fourth) == [False, True]
        fifth = await rotated(600)
        await gateway.request("DELETE", "/api/keys/worker")
        assert await opened(fourth, fifth) == [False, False]


@pytest.mark.parametrize("seconds", [-1, 1e9, "1h", True])
async def test_an_overlap_that_cannot_be(seconds: Any) -> None:
    async with open_test_gateway() as gateway:
        await gateway.key("worker")
        reply = await gateway.request("POST", "/api/keys/worker/rotate", body={"overlapSeconds": seconds})
        assert (reply.code, reply.json["error"]["path"]) == ("INVALID_REQUEST", "overlapSeconds")


async def test_a_link_ends_with_the_secret_that_made_it() -> None:
    async with open_test_gateway() as gateway:
        first = await gateway.key("ops", permissions=["crib:admin"])
        second = (await gateway.request("POST", "/api/keys/ops/rotate", body={"overlapSeconds": 600})).json[
            "key"
        ]
        old, new = await signed_in(gateway, first), await signed_in(gateway, second)
        await gateway.request("POST", "/api/keys/ops/rotate", body={"overlapSeconds": 600})
        statuses = [
            (await gateway.request("GET", "/api/status", key=None, headers=each.both)).status
            for each in (old, new)
        ]
        assert statuses == [401, 200]


async def test_a_key_makes_none_that_outlives_it() -> None:
    async with open_test_gateway() as gateway:
        expires = time() + 600
        for name, permission in (("keeper", "crib:keys"), ("ops", "crib:admin")):
            maker = await gateway.key(name, permissions=[permission], expires=expires)
            late = await made(gateway, maker, name=f"{name}-late", expires=expires + 1)
            assert (late.code, late.json["error"]["path"]) == ("SCOPE_DENIED", "expires")
            assert (await made(gateway, maker, name=f"{name}-same")).json["expires"] == expires
            early = await made(gateway, maker, name=f"{name}-early", expires=expires - 60)
            assert (early.status, early.json["createdBy"]) == (201, f"key:{name}")
        ops = await gateway.key("ops2", permissions=["crib:admin"], expires=expires)
        await gateway.key("lasting")
        assert (await gateway.request("POST", "/api/keys/lasting/rotate", key=ops)).code == "SCOPE_DENIED"


async def test_a_users_key_makes_keys_of_that_user_alone() -> None:
    async with open_test_gateway() as gateway:
        anns = await gateway.key("anns", user="ann", permissions=["crib:keys"])
        assert (await made(gateway, anns, name="second", user="ann")).status == 201
        for fields in ({"user": "bob"}, {}):
            reply = await made(gateway, anns, name="third", **fields)
            assert (reply.code, reply.json["error"]["path"]) == ("SCOPE_DENIED", "user")


async def test_key_creator_changes_only_own_keys() -> None:
    async with open_test_gateway() as gateway:
        keeper = await gateway.key("keeper", permissions=["crib:keys"])
        ops = await gateway.key("ops", permissions=["crib:admin"])
        await gateway.key("others")
        assert (await made(gateway, keeper, name="mine")).status == 201
        for method, path in (("POST", "/rotate"), ("DELETE", "")):
            for name in ("others", "ops"):
                reply = await gateway.request(method, f"/api/keys/{name}{path}", key=keeper)
                assert (reply.code, "crib:admin" in reply.json["error"]["message"]) == ("SCOPE_DENIED", True)
            assert (await gateway.request(method, f"/api/keys/mine{path}", key=keeper)).status == 200
            assert (await gateway.request(method, f"/api/keys/others{path}", key=ops)).status == 200
        assert (await made(gateway, keeper, name="others")).code == "ALREADY_EXISTS"
        assert (await gateway.request("DELETE", "/api/keys/keeper")).status == 200
        listed = (await gateway.request("GET", "/api/keys")).json["keys"]
        assert {each["name"]: each["createdBy"] for each in listed}["mine"] == "key:keeper"


@pytest.mark.parametrize("on_page", [False, True])
async def test_a_replaced_secret_makes_nothing_that_outlives_it(on_page: bool) -> None:
    async with open_test_gateway() as gateway:
        old = await gateway.key("ops", permissions=["crib:admin"])
        await gateway.key("lasting")
        rotated = await gateway.request("POST", "/api/keys/ops/rotate", body={"overlapSeconds": 600})
        until, new = rotated.json["previousUntil"], rotated.json["key"]
        shown: Any = {"key": old}
        if on_page:
            shown = {"key": None, "headers": (await signed_in(gateway, old)).both}

        async def ask(target: str, **body: Any) -> Reply:
            return await gateway.request("POST", target, body=body, **shown)

        late = await ask("/api/keys", name="late", expires=until + 1)
        assert (late.code, late.json["error"]["path"]) == ("SCOPE_DENIED", "expires")
        assert (await ask("/api/keys", name="mine")).json["expires"] == until
        assert (await ask("/api/keys/lasting/rotate")).code == "SCOPE_DENIED"
        itself = await ask("/api/keys/ops/rotate", overlapSeconds=600)
        assert (itself.code, itself.json["error"]["path"]) == ("SCOPE_DENIED", "name")
        assert (await made(gateway, new, name="for-good")).json["expires"] is None
        assert (await gateway.request("POST", "/api/keys/ops/rotate", key=new)).status == 200


async def test_no_key_gets_every_permission_by_its_spelling() -> None:
    async with open_test_gateway() as gateway:
        for spelled in ("*:*", "*:read"):
            reply = await made(gateway, name="k", permissions=[spelled])
            assert (reply.code, reply.json["error"]["path"]) == ("INVALID_REQUEST", "permissions")
        older = KeyRecord(
            name="older", digest=digest("tc_older"), permissions=frozenset({"crib:keys", "*:*"})
        )
        await gateway.runtime.console.store.keys.add(older)
        await gateway.key("reads-the-keys-again")
        assert (await made(gateway, "tc_older", name="all", permissions=["*"])).code == "SCOPE_DENIED"


WHOLE = [
    ("GET", "/api/audit"),
    ("GET", "/mcp/status"),
    ("POST", "/mcp/test/x"),
    ("DELETE", "/mcp/servers/x"),
    ("POST", "/reload"),
    ("GET", "/api/pins"),
    ("POST", "/api/pins"),
    ("GET", "/api/calls?caller=admin"),
    ("GET", "/api/users"),
    ("GET", "/api/users/ann"),
    ("PUT", "/api/users/ann"),
    ("DELETE", "/api/users/ann"),
    ("PUT", "/api/users/ann/apps/com.example.notes"),
    ("POST", "/api/users/ann/apps/com.example.notes/start"),
    ("PUT", "/api/users/ann/tools/hello/disabled"),
    ("PUT", "/api/users/ann/session"),
    ("POST", "/api/users/ann/transcription"),
    ("GET", "/api/users/ann/events"),
]


@pytest.mark.parametrize("on_page", [False, True])
async def test_an_admin_confined_to_a_context_stays_there(on_page: bool) -> None:
    async with open_test_gateway() as gateway:
        narrow = await gateway.key("narrow", permissions=["crib:admin", "crib:calls"], contexts=["few"])
        await gateway.key("wide")
        await gateway.call("secret_one")
        shown: Any = {"key": narrow}
        if on_page:
            shown = {"key": None, "headers": (await signed_in(gateway, narrow)).both}
        tools = await gateway.request("GET", "/api/tools", **shown)
        assert [each["name"] for each in tools.json["tools"]] == ["tools:hello"]
        assert (await gateway.request("GET", "/api/tools?context=other", **shown)).code == "NOT_FOUND"
        assert (await gateway.call("secret_one", **shown)).status == 404
        for method, target in WHOLE:
            if on_page and target.endswith("/events"):
                continue  # the page does not listen there
            reply = await gateway.request(method, target, body={} if method == "POST" else None, **shown)
            assert (reply.status, reply.code) == (403, "SCOPE_DENIED"), target
        for target in (
            "/api/status",
            "/api/keys",
            "/api/calls",
            "/api/usage",
            "/api/explain?name=secret_one",
        ):
            reply = await gateway.request("GET", target, **shown)
            assert reply.status == 200
            assert b"tools:secret_one" not in reply.body, target
            assert b'"other"' not in reply.body, target
            assert b'"wide"' not in reply.body, target
        for beyond in ({}, {"contexts": ["other"]}, {"contexts": ["*"]}, {"contexts": ["few", "other"]}):
            assert (
                await gateway.request("POST", "/api/keys", body={"name": "k", **beyond}, **shown)
            ).status == 403
        more = {"name": "k", "contexts": ["few"], "permissions": ["*"]}
        assert (await gateway.request("POST", "/api/keys", body=more, **shown)).status == 403
        for method, target in (("POST", "/api/keys/wide/rotate"), ("DELETE", "/api/keys/wide")):
            assert (await gateway.request(method, target, **shown)).status == 403
        assert (
            await gateway.request("POST", "/api/keys", body={"name": "k", "contexts": ["few"]}, **shown)
        ).status == 201


async def test_an_admin_of_a_context_takes_over_no_apps() -> None:
    async with open_test_gateway() as gateway:
        narrow = await gateway.key("narrow", permissions=["crib:admin"], contexts=["few"])
        developer = await gateway.key("developer", permissions=["crib:apps"], contexts=["few"])
        assert (
            await gateway.request("PUT", "/api/apps/com.example.notes", key=developer, body={"name": "N"})
        ).status == 201
        taken = await gateway.request("POST", "/api/keys/developer/rotate", key=narrow)
        assert (taken.code, taken.json["error"]["path"]) == ("SCOPE_DENIED", "name")
        changed = await gateway.request("PUT", "/api/apps/com.example.notes", key=narrow, body={"name": "M"})
        assert changed.code == "SCOPE_DENIED"
        own = await gateway.request("PUT", "/api/apps/com.example.own", key=narrow, body={"name": "O"})
        assert own.status == 201, "an app of its own, as any developer has"


async def test_a_user_confined_to_a_context_manages_itself() -> None:
    async with open_test_gateway() as gateway:
        anns = await gateway.key("anns", user="ann", contexts=["few"])
        acting = await gateway.key("acting", actAs=True, permissions=["crib:users"], contexts=["few"])
        assert (
            await gateway.request("PUT", "/api/users/ann", key=anns, body={"language": "de"})
        ).status == 200
        statuses = [
            (await gateway.request("GET", "/api/users/ann", key=acting, headers=headers)).status
            for headers in ({"x-user-id": "ann"}, None)
        ]
        assert statuses == [200, 403]


async def test_the_list_of_keys_has_pages() -> None:
    async with open_test_gateway() as gateway:
        for name in ("a", "b", "c"):
            await gateway.key(name)
        first = (await gateway.request("GET", "/api/keys?limit=2")).json
        assert ([each["name"] for each in first["keys"]], first["next"]) == (["a", "b"], "b")
        rest = (await gateway.request("GET", "/api/keys?limit=2&after=b")).json
        assert ([each["name"] for each in rest["keys"]], "next" in rest) == (["c"], False)
