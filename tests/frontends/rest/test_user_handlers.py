"""The routes of users: any printable id, their own tools, and valid bodies."""

from typing import Any
from urllib.parse import quote

import pytest

from tests.frontends.rest.app_setup import NOTES, install_for_user, register
from tests.gateways import InProcessGateway

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("D3")]


async def names(gateway: InProcessGateway, **more: Any) -> list[str]:
    """The tools of apps that a caller sees."""
    listed = (await gateway.request("GET", "/api/tools", **more)).json["tools"]
    return [tool["name"] for tool in listed if tool["source"] == NOTES]


@pytest.mark.parametrize("user", ["u@example.org", "a/b", "a b%2Fc", "käthe", "id?x=1#y", "..."])
async def test_a_user_may_be_called_anything(gateway: InProcessGateway, user: str) -> None:
    spelled = quote(user, safe="")
    assert (await gateway.request("PUT", f"/api/users/{spelled}/session")).json["userId"] == user
    assert (await gateway.request("GET", f"/api/users/{spelled}")).json["id"] == user
    assert [each["id"] for each in (await gateway.request("GET", "/api/users")).json["users"]] == [user]


async def test_the_next_list_is_right_after_every_change(gateway: InProcessGateway) -> None:
    await register(gateway, hardwareRequirements=[{"type": "CAMERA", "level": "REQUIRED"}])
    ann: Any = {"headers": {"x-user-id": "ann"}}
    assert (await gateway.request("GET", "/api/tools", **ann)).code == "NO_SESSION"
    await install_for_user(gateway)
    assert await names(gateway, **ann) == [f"{NOTES}:add"]
    for method, path, body, there in (
        ("PUT", "session", {"device": "Even Realities G1"}, False),
        ("PUT", "session", {"device": "Mentra Live"}, True),
        ("PUT", f"tools/{NOTES}:add/disabled", None, False),
        ("DELETE", f"tools/{NOTES}:add/disabled", None, True),
        ("PUT", f"tools/{NOTES}/disabled", None, False),
        ("DELETE", f"tools/{NOTES}/disabled", None, True),
        ("DELETE", f"apps/{NOTES}", None, False),
        ("PUT", f"apps/{NOTES}", None, True),
    ):
        assert (await gateway.request(method, f"/api/users/ann/{path}", body=body)).status in {200, 201}
        assert bool(await names(gateway, **ann)) is there, (method, path, body)
    assert await names(gateway) == [], "whoever acts for no user sees no app"
    assert (await gateway.request("DELETE", "/api/users/ann/session")).status == 200
    assert (await gateway.request("GET", "/api/tools", **ann)).code == "NO_SESSION"


@pytest.mark.requirement("I1")
async def test_a_users_own_key_is_theirs_alone(gateway: InProcessGateway) -> None:
    await register(gateway)
    key = await gateway.key("anns", user="ann")
    assert (await gateway.request("GET", "/api/tools", key=key)).code == "NO_SESSION"
    assert (await gateway.request("PUT", "/api/users/ann/session", key=key)).status == 200
    assert (await gateway.request("PUT", f"/api/users/ann/apps/{NOTES}", key=key)).status == 201
    assert await names(gateway, key=key) == [f"{NOTES}:add"]
    refused = await gateway.request("GET", "/api/users/bob", key=key)
    assert (refused.status, refused.code) == (403, "SCOPE_DENIED")
    assert "crib:users" in refused.json["error"]["message"]
    for headers in ({"x-user-id": "bob"}, {"x-user-id": "bob", "x-agent-id": "x"}):
        assert (await gateway.request("GET", "/api/users/bob", key=key, headers=headers)).status == 403


async def test_settings_come_with_the_install(gateway: InProcessGateway) -> None:
    await register(gateway)
    put = await gateway.request("PUT", f"/api/users/ann/apps/{NOTES}", body={"settings": {"size": 2}})
    assert (put.status, put.json["settings"]) == (201, {"size": 2})
    again = await gateway.request("PUT", f"/api/users/ann/apps/{NOTES}", body={})
    assert (again.status, again.json["settings"]) == (200, {"size": 2})
    huge = {"settings": {"text": "x" * (64 << 10)}}
    assert (
        await gateway.request("PUT", f"/api/users/ann/apps/{NOTES}", body=huge)
    ).code == "PAYLOAD_TOO_LARGE"


@pytest.mark.requirement("D13")
async def test_usage_is_counted_per_user_and_app(gateway: InProcessGateway) -> None:
    await register(gateway)
    await install_for_user(gateway)
    ann: Any = {"headers": {"x-user-id": "ann"}}
    await gateway.call(f"{NOTES}:add", {"text": "x"}, **ann)
    await gateway.call("tools:add", {"a": 1}, **ann)
    await gateway.call("tools:who")
    link = (await gateway.request("GET", "/api/users/ann")).json["usage"]
    both = {f"{NOTES}:add", "tools:add"}
    assert set((await gateway.request("GET", link)).json["tools"]) == both
    assert set((await gateway.request("GET", f"/api/usage?app={NOTES}")).json["tools"]) == {f"{NOTES}:add"}
    assert (await gateway.request("GET", f"{link}&app=com.example")).json["tools"] == {}
    assert (await gateway.request("GET", f"{link}&caller=admin")).code == "INVALID_REQUEST"
    key, plain = await gateway.key("anns", user="ann"), await gateway.key("plain")
    assert set((await gateway.request("GET", link, key=key)).json["tools"]) == both
    assert (await gateway.request("GET", link, key=plain)).code == "SCOPE_DENIED"


@pytest.mark.parametrize(
    "method, path, body",
    [
        ("PUT", "ann", {"name": "Ann"}),
        ("PUT", "ann", {"language": 3}),
        ("PUT", "ann", []),
        ("PUT", "ann/session", {"device": []}),
        ("PUT", "ann/session", {"timeZone": "Mars"}),
        ("PUT", "a%0Ab/session", None),
        ("PUT", f"{'x' * 201}/session", None),
        ("PUT", f"ann/apps/{NOTES}", {"settings": []}),
        ("POST", "ann/transcription", {"isFinal": True}),
        ("POST", "ann/transcription", {"text": "x", "isFinal": "yes"}),
        ("POST", "ann/transcription", {"text": "x" * 10_001, "isFinal": True}),
    ],
)
async def test_bodies_that_cannot_be(gateway: InProcessGateway, method: str, path: str, body: Any) -> None:
    reply = await gateway.request(method, f"/api/users/{path}", body=body)
    assert (reply.status, reply.code) == (400, "INVALID_REQUEST")


@pytest.mark.requirement("I1")
async def test_user_key_needs_act_as_permission(gateway: InProcessGateway) -> None:
    maker = await gateway.key("maker", permissions=["crib:keys"])
    acting = await gateway.key("acting", permissions=["crib:keys"], actAs=True)
    anns = await gateway.key("anns", permissions=["crib:keys"], user="ann")
    for key, user, status in (
        (maker, "ann", 403),
        (acting, "ann", 201),
        (anns, "ann", 201),
        (anns, "bob", 403),
    ):
        body = {"name": f"k{status}{user}{len(key)}{key[-4:]}", "user": user}
        assert (await gateway.request("POST", "/api/keys", key=key, body=body)).status == status
    assert (await gateway.request("DELETE", "/api/keys/anns", key=maker)).code == "SCOPE_DENIED"
    listed = (await gateway.request("GET", "/api/keys")).json["keys"]
    assert {each["name"]: each["user"] for each in listed}["anns"] == "ann"
