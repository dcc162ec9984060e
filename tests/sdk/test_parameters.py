"""Every parameter of a schema is found, at any depth and in any style."""

from typing import Any

import pytest
from hypothesis import given
from pydantic import BaseModel

from tests.sdk.test_signature import JSON
from toolcrib.sdk import create_tool
from toolcrib.sdk.checks import items_of, parameters

NESTED: dict[str, Any] = {
    "type": "object",
    "properties": {
        "page": {"$ref": "#/$defs/Page", "description": "Which page."},
        "names": {"type": "array", "items": {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/Page"}]}},
        "any": True,
        "either": {"type": ["integer", "null"], "minimum": 1},
        "joined": {"allOf": [{"$ref": "#/$defs/Page"}, {"properties": {"of": {"type": "string"}}}]},
        "lost": {"$ref": "#/$defs/Lost"},
        "away": {"$ref": "https://example.org/schema"},
    },
    "$defs": {
        "Page": {
            "type": "object",
            "description": "A page.",
            "properties": {
                "limit": {"oneOf": [{"type": "integer", "maximum": 5}, {"type": "null"}], "description": " "},
                "next": {"$ref": "#/$defs/Page"},
            },
        }
    },
}


def test_nested_parameters_are_found_under_their_paths() -> None:
    found = {each.path: each for each in parameters(NESTED)}
    assert list(found) == [
        *("page", "page.limit", "page.next"),
        *("names", "names[].limit", "names[].next"),
        *("any", "either", "joined", "joined.of", "lost", "away"),
    ]
    assert [found[path].description for path in ("page", "page.next", "page.limit")] == [
        "Which page.",
        "A page.",
        "",
    ]
    assert found["names[].limit"].name == "limit"
    assert found["either"].forms == ({"type": "integer", "minimum": 1},)
    assert next(found["page.limit"].of_type("integer", "number"))["maximum"] == 5
    assert [each.get("type") for each in items_of(NESTED, NESTED["properties"]["names"])] == [
        "string",
        "object",
    ]
    assert found["lost"].forms == ({},)


class Folder(BaseModel):
    """A folder in a folder."""

    name: str
    inside: list["Folder"] = []


@pytest.mark.parametrize(
    "loop",
    [{"$ref": "#"}, {"$ref": "#/properties/loop"}, {"anyOf": [{"$ref": "#"}]}, {"allOf": [{"$ref": "#"}]}],
)
def test_schemas_that_lead_back_to_themselves_come_to_an_end(loop: Any) -> None:
    schema = {"type": "object", "properties": {"loop": loop}}
    assert {each.path for each in parameters(schema)} <= {"loop", "loop.loop"}

    def act(folder: Folder) -> None: ...

    found = [each.path for each in parameters(create_tool(act).definition.input_schema)]
    assert found == ["folder", "folder.name", "folder.inside"]


@given(schema=JSON)
def test_any_parameter_schema_is_handled(schema: Any) -> None:
    for place in ({"properties": {"x": schema}}, {"properties": schema}, {"items": schema, "allOf": schema}):
        assert all(isinstance(each.path, str) for each in parameters(place))
