"""The description of the API: complete, well formed, and true of what the routes answer."""

import json
import re
from typing import Any

import jsonschema_rs
import pytest

from tests.doors import Doors
from toolcrib.errors import CODES

pytestmark = pytest.mark.anyio


async def described(crib: Doors) -> dict[str, Any]:
    reply = await crib.ask("GET", "/openapi.json", key=None)
    assert reply.status == 200
    return reply.json


def references(value: Any) -> set[str]:
    """Every `$ref` below a value; the text of the document shows them all."""
    return set(re.findall(r'"\$ref":"([^"]+)"', json.dumps(value, separators=(",", ":"))))


async def test_every_route_is_described(crib: Doors) -> None:
    document = await described(crib)
    assert document["openapi"] == "3.1.0"
    told = {(method.upper(), path) for path, methods in document["paths"].items() for method in methods}
    assert told == {(route.method, route.path) for route in crib.server.router.routes}


async def test_operations_are_well_formed(crib: Doors) -> None:
    document = await described(crib)
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


async def test_every_reference_leads_somewhere_and_every_shape_is_a_schema(crib: Doors) -> None:
    document = await described(crib)
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
    crib: Doors, method: str, path: str, body: Any, shape: str
) -> None:
    document = await described(crib)
    await crib.call("add", {"a": 1})
    reply = await crib.ask(method, path, body=body)
    schema = {"$ref": f"#/components/schemas/{shape}", "components": document["components"]}
    jsonschema_rs.validate(schema, reply.json)


async def test_what_needs_what_is_said(crib: Doors) -> None:
    paths = (await described(crib))["paths"]
    assert paths["/health"]["get"]["security"] == []
    assert {} in paths["/metrics"]["get"]["security"]
    assert paths["/mcp"]["post"]["security"] == [{"key": []}]
    assert paths["/api/keys"]["post"]["security"] == [{"key": []}, {"page": []}]
    assert paths["/api/signin"]["post"]["security"] == [{"key": []}]
    assert paths["/api/signin/exchange"]["post"]["security"] == []
    assert "crib:keys" in paths["/api/keys"]["post"]["description"]
