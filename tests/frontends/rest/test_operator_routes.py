"""What happened, how much, why, and keys: one's own for everyone, the rest for operators."""

from typing import Any

import pytest

from tests.gateways import InProcessGateway
from tests.texts import matches

pytestmark = pytest.mark.anyio


async def test_calls_of_ones_own_and_of_others(gateway: InProcessGateway) -> None:
    plain, watcher = await gateway.key("plain"), await gateway.key("watcher", permissions=["crib:calls"])
    await gateway.call("add", {"a": 1}, key=plain)
    await gateway.call("fail")
    mine = (await gateway.request("GET", "/api/calls", key=plain)).json["calls"]
    assert [(each["tool"], each["caller"], each["outcome"]) for each in mine] == [
        ("tools:add", "key:plain", "success")
    ]
    every = (await gateway.request("GET", "/api/calls", key=watcher)).json["calls"]
    assert [each["code"] for each in every] == ["TOOL_FAILED", None]
    theirs = (
        await gateway.request("GET", "/api/calls?caller=key:plain&tool=tools:add&limit=1", key=watcher)
    ).json["calls"]
    assert [each["id"] for each in theirs] == [mine[0]["id"]]
    assert (await gateway.request("GET", f"/api/calls?before={mine[0]['at']}", key=plain)).json == {
        "calls": []
    }
    assert (await gateway.request("GET", "/api/calls?caller=key:plain", key=plain)).json["calls"] == mine


async def test_calls_of_others_need_a_permission(gateway: InProcessGateway) -> None:
    plain = await gateway.key("plain")
    for path in ("/api/calls", "/api/usage"):
        reply = await gateway.request("GET", f"{path}?caller=admin", key=plain)
        assert (reply.status, reply.code) == (403, "SCOPE_DENIED")


async def test_usage(gateway: InProcessGateway) -> None:
    plain = await gateway.key("plain")
    for _ in range(3):
        await gateway.call("add", {"a": 1}, key=plain)
    await gateway.call("add", {"a": 1})
    assert (await gateway.request("GET", "/api/usage", key=plain)).json["tools"]["tools:add"]["calls"] == 3
    assert (await gateway.request("GET", "/api/usage")).json["tools"]["tools:add"]["calls"] == 4
    assert (await gateway.request("GET", "/api/usage?since=2999-01-01")).json["tools"] == {}
    assert (await gateway.request("GET", "/api/usage?tool=tools:who")).json["tools"] == {}


@pytest.mark.parametrize(
    "target",
    [
        "/api/calls?limit=0",
        "/api/calls?limit=1001",
        "/api/calls?before=soon",
        "/api/calls?before=nan",
        "/api/calls?before=inf",
        "/api/calls?tool=",
        "/api/calls?user=x",
        "/api/usage?since=yesterday",
        "/api/usage?since=2026-13-01",
        "/api/explain",
        "/api/explain?name=",
        "/api/status?verbose=1",
        "/api/keys?all=1",
    ],
)
async def test_wrong_parameters(gateway: InProcessGateway, target: str) -> None:
    reply = await gateway.request("GET", target)
    assert (reply.status, reply.code) == (400, "INVALID_REQUEST")


async def test_why_a_tool_is_there(gateway: InProcessGateway) -> None:
    plain, curious = await gateway.key("plain"), await gateway.key("curious", permissions=["crib:explain"])
    told = (await gateway.request("GET", "/api/explain?name=add", key=plain)).json
    assert (told["name"], told["visible"], told["reason"]) == ("tools:add", True, None)
    assert (await gateway.request("GET", "/api/explain?name=add&context=none")).json["visible"] is False
    assert (await gateway.request("GET", "/api/explain?name=add&context=nowhere")).code == "NOT_FOUND"
    unknown = (await gateway.request("GET", "/api/explain?name=hidden", key=plain)).json
    known = (await gateway.request("GET", "/api/explain?name=hidden", key=curious)).json
    assert matches("rest", "why a tool is there", unknown["reason"])
    assert "hidden" in known["reason"].removeprefix("tools:hidden")


async def test_why_as_another_user(gateway: InProcessGateway) -> None:
    plain, acting = await gateway.key("plain"), await gateway.key("acting", actAs=True)
    assert (await gateway.request("GET", "/api/explain?name=add&user=ann", key=plain)).code == "SCOPE_DENIED"
    told = (await gateway.request("GET", "/api/explain?name=add&user=ann", key=acting)).json
    assert told["caller"]["id"] == "user:ann"


async def test_status(gateway: InProcessGateway) -> None:
    told = (await gateway.request("GET", "/api/status")).json
    assert {"version", "tools", "sources", "uptime", "contexts", "warnings"} <= set(told)


async def test_key_lifecycle(gateway: InProcessGateway) -> None:
    made = await gateway.request(
        "POST", "/api/keys", body={"name": "mine", "permissions": ["a:b"], "home": "few"}
    )
    assert made.status == 201
    assert made.json["home"] == "few"
    first = made.json["key"]
    assert (await gateway.call("add", {"a": 1}, key=first)).status == 200
    second = (await gateway.request("POST", "/api/keys/mine/rotate")).json["key"]
    assert (await gateway.call("add", {"a": 1}, key=first)).status == 401
    assert (await gateway.call("add", {"a": 1}, key=second)).status == 200
    assert (await gateway.request("DELETE", "/api/keys/mine")).json == {"name": "mine", "revoked": True}
    assert (await gateway.call("add", {"a": 1}, key=second)).status == 401
    listed = await gateway.request("GET", "/api/keys")
    assert listed.json["keys"][0]["revoked"] is not None
    for key in (first, second):
        assert key.encode() not in listed.body


async def test_a_key_of_one_context_is_at_home_there(gateway: InProcessGateway) -> None:
    made = await gateway.request("POST", "/api/keys", body={"name": "narrow", "contexts": ["few"]})
    assert (made.json["home"], made.json["contexts"]) == ("few", ["few"])


@pytest.mark.parametrize(
    "body, code",
    [
        ({}, "INVALID_REQUEST"),
        ({"name": ""}, "INVALID_REQUEST"),
        ({"name": "a b"}, "INVALID_REQUEST"),
        ({"name": "a", "permission": ["x:y"]}, "INVALID_REQUEST"),
        ({"name": "a", "permissions": "x:y"}, "INVALID_REQUEST"),
        ({"name": "a", "permissions": [1]}, "INVALID_REQUEST"),
        ({"name": "a", "permissions": [""]}, "INVALID_REQUEST"),
        ({"name": "a", "permissions": ["nonsense"]}, "INVALID_REQUEST"),
        ({"name": "a", "contexts": ["nowhere"]}, "NOT_FOUND"),
        ({"name": "a", "contexts": ["few"], "home": "none"}, "INVALID_REQUEST"),
        ({"name": "a", "actAs": "yes"}, "INVALID_REQUEST"),
        ([], "INVALID_REQUEST"),
    ],
)
async def test_keys_that_cannot_be(gateway: InProcessGateway, body: Any, code: str) -> None:
    assert (await gateway.request("POST", "/api/keys", body=body)).code == code


@pytest.mark.parametrize("method, path", [("DELETE", "/api/keys/x"), ("POST", "/api/keys/x/rotate")])
async def test_a_key_that_is_not_there(gateway: InProcessGateway, method: str, path: str) -> None:
    assert (await gateway.request(method, path)).code == "NOT_FOUND"


@pytest.mark.requirement("I1")
@pytest.mark.parametrize(
    "more",
    [
        {"permissions": ["crib:admin"]},
        {"permissions": ["*"]},
        {"permissions": ["secrets:read"]},
        {"permissions": ["cards:*"]},
        {"contexts": None},
        {"contexts": ["default"], "home": "default"},
        {"actAs": True},
        {"user": "ann"},
    ],
)
async def test_a_keeper_of_keys_hands_out_no_more_than_it_has(
    gateway: InProcessGateway, more: dict[str, Any]
) -> None:
    keeper = await gateway.key("keeper", permissions=["crib:keys", "cards:read"], contexts=["few"])
    within = {"name": "small", "permissions": ["cards:read"], "contexts": ["few"]}
    assert (await gateway.request("POST", "/api/keys", key=keeper, body=within)).status == 201
    beyond = {**within, "name": "large", **more}
    reply = await gateway.request("POST", "/api/keys", key=keeper, body=beyond)
    assert (reply.status, reply.code) == (403, "SCOPE_DENIED")
    assert (await gateway.request("POST", "/api/keys", body=beyond)).status == 201
    for method, path in (("POST", "/api/keys/large/rotate"), ("DELETE", "/api/keys/large")):
        assert (await gateway.request(method, path, key=keeper)).code == "SCOPE_DENIED"
    assert (await gateway.request("DELETE", "/api/keys/small", key=keeper)).status == 200
    assert (await gateway.request("DELETE", "/api/keys/nobody", key=keeper)).code == "NOT_FOUND"


@pytest.mark.requirement("I1")
async def test_developer_key_is_rotated_by_admin_and_by_owner(
    gateway: InProcessGateway,
) -> None:
    """Apps belong to the name of a key: whoever has the key has the apps."""
    developer = await gateway.key("developer", permissions=["crib:apps", "crib:keys"])
    for name, permissions in (("keeper", ["crib:apps", "crib:keys"]), ("all", ["crib:*"])):
        await gateway.key(name, permissions=permissions)
    for name in ("keeper", "all"):
        reply = await gateway.request("POST", f"/api/keys/{name}/rotate", key=developer)
        assert (reply.status, reply.code) == (403, "SCOPE_DENIED")
    again = await gateway.request("POST", "/api/keys/developer/rotate", key=developer)
    assert again.status == 200
    assert (await gateway.request("POST", "/api/keys/keeper/rotate")).status == 200
    assert (await gateway.request("DELETE", "/api/keys/keeper", key=again.json["key"])).code == "SCOPE_DENIED"
