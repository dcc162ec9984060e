"""The routes of apps: developers have their own, users see what there is."""

import pytest

from tests.frontends.rest.app_setup import NOTES, TOOL, register
from tests.gateways import InProcessGateway

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("D2")]


@pytest.mark.requirement("D1")
async def test_app_lifecycle(gateway: InProcessGateway) -> None:
    made = await gateway.request(
        "PUT", f"/api/apps/{NOTES}", body={"name": "Notes", "permissions": ["MICROPHONE"]}
    )
    assert (made.status, made.json["owner"], made.json["version"]) == (201, "admin", 1)
    key = made.json["apiKey"]
    again = await gateway.request("PUT", f"/api/apps/{NOTES}", body={"name": "New", "appType": "standard"})
    assert (again.status, again.json["name"], again.json["version"]) == (200, "New", 2)
    assert "apiKey" not in again.json
    shown = await gateway.request("GET", f"/api/apps/{NOTES}")
    assert shown.json == again.json
    assert key.encode() not in shown.body
    rotated = (await gateway.request("POST", f"/api/apps/{NOTES}/key/rotate")).json
    assert rotated["packageName"] == NOTES
    assert rotated["apiKey"] != key
    assert (await gateway.request("GET", "/api/apps?limit=1")).json["apps"][0]["packageName"] == NOTES
    assert (await gateway.request("GET", f"/api/apps?after={NOTES}")).json == {"apps": []}
    assert (await gateway.request("DELETE", f"/api/apps/{NOTES}")).json == {
        "packageName": NOTES,
        "removed": True,
    }
    assert (await gateway.request("GET", f"/api/apps/{NOTES}")).code == "NOT_FOUND"


async def test_tools_are_stored_and_read_as_they_were_defined(gateway: InProcessGateway) -> None:
    await register(gateway)
    assert (await gateway.request("GET", f"/api/apps/{NOTES}/tools")).json == {
        "packageName": NOTES,
        "version": 2,
        "tools": [TOOL],
    }
    stored = await gateway.request(
        "POST", f"/api/apps/{NOTES}/tools", body={"tools": [{**TOOL, "name": "new"}]}
    )
    assert stored.json == {"packageName": NOTES, "version": 3, "tools": ["new"], "warnings": []}


async def test_every_fault_is_named_by_its_path_and_nothing_is_stored(gateway: InProcessGateway) -> None:
    await register(gateway)
    when = {"type": "date", "description": "When."}
    schema = {"type": "object", "properties": {"when": when}, "required": ["where"]}
    bad = {**TOOL, "name": "a:b", "inputSchema": schema}
    reply = await gateway.request("POST", f"/api/apps/{NOTES}/tools", body={"tools": [TOOL, bad]})
    assert (reply.status, reply.code) == (400, "INVALID_REQUEST")
    faults = reply.json["error"]["details"]["faults"]
    assert {"tools[1].name", "tools[1].inputSchema.properties.when.type"} <= {each["path"] for each in faults}
    assert all(each["message"] for each in faults)
    assert (await gateway.request("GET", f"/api/apps/{NOTES}/tools")).json["tools"] == [TOOL]


@pytest.mark.requirement("I1")
async def test_developers_manage_own_apps_others_see_public_fields(
    gateway: InProcessGateway,
) -> None:
    mine = await gateway.key("mine", permissions=["crib:apps"])
    yours = await gateway.key("yours", permissions=["crib:apps"])
    ann, plain = await gateway.key("ann", user="ann"), await gateway.key("plain")
    await register(gateway, key=mine, publicUrl="https://notes.example/app")
    for method, path, body in (
        ("PUT", f"/api/apps/{NOTES}", {"name": "Stolen"}),
        ("POST", f"/api/apps/{NOTES}/tools", {"tools": [TOOL]}),
        ("POST", f"/api/apps/{NOTES}/key/rotate", None),
        ("DELETE", f"/api/apps/{NOTES}", None),
    ):
        reply = await gateway.request(method, path, key=yours, body=body)
        assert (reply.status, reply.code) == (403, "SCOPE_DENIED")
        assert "crib:admin" in reply.json["error"]["message"]
    full = (await gateway.request("GET", f"/api/apps/{NOTES}", key=mine)).json
    assert (full["owner"], full["publicUrl"]) == ("mine", "https://notes.example/app")
    for key in (ann, yours):
        seen = (await gateway.request("GET", f"/api/apps/{NOTES}", key=key)).json
        assert not {"owner", "publicUrl"} & seen.keys()
        assert (seen["name"], seen["tools"]) == ("Notes", ["add"])
    refused = await gateway.request("GET", f"/api/apps/{NOTES}", key=plain)
    assert "crib:users" in refused.json["error"]["message"]


@pytest.mark.requirement("I1")
@pytest.mark.parametrize("name", ["admin", "anonymous", "trust_header"])
async def test_key_cannot_use_reserved_name(gateway: InProcessGateway, name: str) -> None:
    assert (await gateway.request("POST", "/api/keys", body={"name": name})).code == "INVALID_REQUEST"


@pytest.mark.requirement("I5")
async def test_private_app_address_is_refused_by_default(
    gateway: InProcessGateway,
) -> None:
    body = {"name": "Inside", "publicUrl": "http://169.254.169.254/latest"}
    reply = await gateway.request("PUT", "/api/apps/com.example.inside", body=body)
    assert (reply.status, reply.json["error"]["path"]) == (400, "publicUrl")


@pytest.mark.parametrize("target", ["/api/apps?limit=0", "/api/apps?all=1", f"/api/apps/{NOTES}?deep=1"])
async def test_wrong_parameters(gateway: InProcessGateway, target: str) -> None:
    assert (await gateway.request("GET", target)).code == "INVALID_REQUEST"
