"""The description of the API: complete, well formed, and true of what the routes answer."""

import json
import re
from typing import Any
from urllib.parse import quote

import jsonschema_rs
import pytest

from tests.gateways import InProcessGateway
from toolcrib.errors import CODES

pytestmark = pytest.mark.anyio


async def described(gateway: InProcessGateway) -> dict[str, Any]:
    reply = await gateway.request("GET", "/openapi.json", key=None)
    assert reply.status == 200
    return reply.json


def references(value: Any) -> set[str]:
    """Every `$ref` below a value; the text of the document shows them all."""
    return set(re.findall(r'"\$ref":"([^"]+)"', json.dumps(value, separators=(",", ":"))))


async def test_every_route_is_described(gateway: InProcessGateway) -> None:
    document = await described(gateway)
    assert document["openapi"] == "3.1.0"
    told = {(method.upper(), path) for path, methods in document["paths"].items() for method in methods}
    assert told == {(route.method, route.path) for route in gateway.server.router.routes}


async def test_operations_are_well_formed(gateway: InProcessGateway) -> None:
    document = await described(gateway)
    operations = [each for methods in document["paths"].values() for each in methods.values()]
    assert len({each["operationId"] for each in operations}) == len(operations)
    for path, methods in document["paths"].items():
        for each in methods.values():
            parameters = [(one["name"], one["in"]) for one in each["parameters"]]
            assert len(set(parameters)) == len(parameters)
            assert {name for name, place in parameters if place == "path"} == set(
                re.findall(r"{(\w+)}", path)
            )
            assert each["summary"].endswith(".")
            assert "default" in each["responses"]
            assert all(reply["description"] for reply in each["responses"].values())


async def test_openapi_references_resolve_and_shapes_are_schemas(gateway: InProcessGateway) -> None:
    document = await described(gateway)
    shapes = document["components"]["schemas"]
    assert references(document) <= {f"#/components/schemas/{name}" for name in shapes}
    for shape in shapes.values():
        jsonschema_rs.meta.validate({**shape, "components": document["components"]})
    assert shapes["Code"]["enum"] == list(CODES)


@pytest.mark.parametrize(
    "method, path, body, shape",
    [
        ("GET", "/api/tools", None, "Tools"),
        ("POST", "/api/tools/execute", {"name": "add", "arguments": {"a": 1}}, "Result"),
        ("POST", "/api/tools/execute", {"name": "fail"}, "Result"),
        ("POST", "/api/tools/execute", {"name": "nowhere"}, "Result"),
        ("POST", "/api/tools/execute", {"nothing": 1}, "Result"),
        ("GET", "/nowhere", None, "Result"),
        ("GET", "/api/calls", None, "Calls"),
        ("GET", "/api/usage", None, "Usage"),
        ("GET", "/api/explain?name=add", None, "Explanation"),
        ("GET", "/api/status", None, "Status"),
        ("POST", "/api/keys", {"name": "new"}, "MadeKey"),
        ("GET", "/api/keys", None, "Keys"),
        ("GET", "/mcp/status", None, "Servers"),
        ("POST", "/reload?dry_run=true", None, "Plan"),
        ("GET", "/api/pins", None, "Pins"),
        ("GET", "/health", None, "Health"),
        ("GET", "/ready", None, "Ready"),
        ("POST", "/api/signin", None, "Link"),
    ],
)
async def test_answers_have_the_shape_that_is_described(
    gateway: InProcessGateway, method: str, path: str, body: Any, shape: str
) -> None:
    document = await described(gateway)
    await gateway.call("add", {"a": 1})
    reply = await gateway.request(method, path, body=body)
    schema = {"$ref": f"#/components/schemas/{shape}", "components": document["components"]}
    jsonschema_rs.validate(schema, reply.json)


async def test_required_permissions_are_documented(gateway: InProcessGateway) -> None:
    paths = (await described(gateway))["paths"]
    assert paths["/health"]["get"]["security"] == []
    assert {} in paths["/metrics"]["get"]["security"]
    assert paths["/mcp"]["post"]["security"] == [{"key": []}]
    assert paths["/api/keys"]["post"]["security"] == [{"key": []}, {"page": []}]
    assert paths["/api/signin"]["post"]["security"] == [{"key": []}]
    assert paths["/api/signin/exchange"]["post"]["security"] == []
    assert "crib:keys" in paths["/api/keys"]["post"]["description"]


PUT_USER = ("PUT", "/api/users/{id}")
PUT_SESSION = ("PUT", "/api/users/{id}/session")
PUT_APP = ("PUT", "/api/apps/{package}")
POST_KEY = ("POST", "/api/keys")
REQUIREMENT = {"type": "CAMERA", "level": "REQUIRED"}

EXECUTE = ("POST", "/api/tools/execute")
BODIES: list[tuple[tuple[str, str], dict[str, Any], bool]] = [
    (EXECUTE, {"name": "add", "arguments": {"a": 1}, "detail": "brief"}, True),
    (EXECUTE, {"name": "add", "arguments": {"a": 1}, "detail": None}, True),
    (EXECUTE, {"name": "add", "arguments": {"a": 1}, "detail": "short"}, False),
    (PUT_USER, {"language": "de-CH"}, True),
    (PUT_USER, {"language": ""}, False),
    (PUT_USER, {"language": "german, please"}, False),
    (PUT_USER, {"timeZone": None}, True),
    (PUT_USER, {"timeZone": ""}, False),
    (PUT_SESSION, {"device": "Any Model"}, True),
    (PUT_SESSION, {"device": " "}, False),
    (PUT_SESSION, {"device": "x" * 201}, False),
    (PUT_SESSION, {"device": {"hasCamera": True, "camera": {}}}, True),
    (PUT_SESSION, {"device": {"hasCamera": "yes"}}, False),
    (PUT_SESSION, {"device": {"modelName": "a\u200bb"}}, False),
    (PUT_APP, {"name": "N", "hardwareRequirements": [REQUIREMENT]}, True),
    (PUT_APP, {"name": "N", "hardwareRequirements": [REQUIREMENT] * 51}, False),
    (PUT_APP, {"name": "N", "hardwareRequirements": [{**REQUIREMENT, "type": "camera"}]}, False),
    (PUT_APP, {"name": "N", "hardwareRequirements": [{**REQUIREMENT, "description": None}]}, True),
    (PUT_APP, {"name": "N", "hardwareRequirements": [{**REQUIREMENT, "description": False}]}, False),
    (PUT_APP, {"name": "N", "permissions": ["LOCATION"]}, True),
    (PUT_APP, {"name": "N", "permissions": ["location"]}, False),
    (PUT_APP, {"name": "N" * 201}, False),
    (PUT_APP, {"name": "N", "publicUrl": "ftp://x"}, False),
    (POST_KEY, {"name": "größe-1"}, True),
    (POST_KEY, {"name": "a b"}, False),
    (POST_KEY, {"name": "x" * 65}, False),
    (POST_KEY, {"name": "admin"}, False),
    (POST_KEY, {"name": "k1", "permissions": ["*", "notes:read", "notes:*"]}, True),
    (POST_KEY, {"name": "k2", "permissions": ["*:read"]}, False),
    (POST_KEY, {"name": "k3", "permissions": ["**:read"]}, True),
    (POST_KEY, {"name": "k4", "permissions": ["a:b:c"]}, False),
    (POST_KEY, {"name": "k5", "contexts": []}, False),
    (POST_KEY, {"name": "k6", "user": ""}, False),
    (POST_KEY, {"name": "k7", "expires": 253402300800}, False),
    (POST_KEY, {"name": "k8", "expires": "9000-01-31"}, True),
    (POST_KEY, {"name": "k9", "expires": "soon"}, False),
]


PATHS: list[tuple[str, dict[str, str], str, bool]] = [
    ("/api/users/{id}", {}, "Ann Lee", True),
    ("/api/users/{id}", {}, "a\nb", False),
    ("/api/users/{id}", {}, "a\u00a0b", False),
    ("/api/users/{id}", {}, "x" * 201, False),
    ("/api/apps/{package}", {"name": "N"}, "org.example.a_b-c", True),
    ("/api/apps/{package}", {"name": "N"}, "notes", False),
    ("/api/apps/{package}", {"name": "N"}, "org..notes", False),
    ("/api/apps/{package}", {"name": "N"}, "Org.example", False),
    ("/api/apps/{package}", {"name": "N"}, f"a.{'x' * 62}", False),
]


async def test_schema_and_gateway_accept_the_same_bodies(gateway: InProcessGateway) -> None:
    document = await described(gateway)
    accepted: list[bool] = []
    described_as: list[bool] = []
    for (method, path), body, _ in BODIES:
        content = document["paths"][path][method.lower()]["requestBody"]["content"]["application/json"]
        schema = {**content["schema"], "components": document["components"]}
        described_as.append(jsonschema_rs.is_valid(schema, body, validate_formats=True))
        target = path.replace("{id}", "ann").replace("{package}", "com.example.described")
        reply = await gateway.request(method, target, body=body)
        assert reply.status in {200, 201, 400}, (target, body, reply.body)
        accepted.append(reply.status < 400)
    expected = [valid for _, _, valid in BODIES]
    assert (accepted, described_as) == (expected, expected)


async def test_schema_and_gateway_accept_the_same_paths(gateway: InProcessGateway) -> None:
    paths = (await described(gateway))["paths"]
    for path, body, value, valid in PATHS:
        parameter = next(each for each in paths[path]["put"]["parameters"] if each["in"] == "path")
        reply = await gateway.request(
            "PUT", path.replace(f"{{{parameter['name']}}}", quote(value, safe="")), body=body
        )
        assert reply.status in ({200, 201} if valid else {400}), value
        assert jsonschema_rs.is_valid(parameter["schema"], value) == valid, value


async def test_links_name_operations_and_fill_their_paths(gateway: InProcessGateway) -> None:
    document = await described(gateway)
    operations = {
        operation["operationId"]: path
        for path, methods in document["paths"].items()
        for operation in methods.values()
    }
    links = {
        (each["operationId"], target): link
        for methods in document["paths"].values()
        for each in methods.values()
        for answer in each["responses"].values()
        for target, link in answer.get("links", {}).items()
    }
    assert ("putApiAppsPackage", "deleteApiAppsPackage") in links
    assert ("postApiKeys", "postApiKeysNameRotate") in links
    for link in links.values():
        assert set(link["parameters"]) == set(re.findall(r"{(\w+)}", operations[link["operationId"]]))


async def test_rotation_needs_no_body(gateway: InProcessGateway) -> None:
    operation = (await described(gateway))["paths"]["/api/keys/{name}/rotate"]["post"]
    assert operation["requestBody"]["required"] is False
    await gateway.key("rotated")
    assert (await gateway.request("POST", "/api/keys/rotated/rotate")).status == 200
