"""Definitions of tools: taken whole or not at all, with every fault named by its path."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.apps.definition import stored_tool, tool_faults, tool_of
from toolcrib.apps.errors import MAX_REPORTED_FAULTS
from toolcrib.apps.migration import ORIGINAL_FIELD
from toolcrib.errors import Refused
from toolcrib.interfaces import AppRecord
from toolcrib.model import Requirement
from toolcrib.names import canonical

WHEN = {"type": "string", "description": "When, as ISO 8601."}


def a_definition(**more: Any) -> dict[str, Any]:
    whole: dict[str, Any] = {
        "name": "add_reminder",
        "description": "Adds a reminder.",
        "inputSchema": {"type": "object", "properties": {"when": WHEN}, "required": ["when"]},
        "mentraExtensions": {"activationPhrases": ["remind me"], "category": "productivity"},
    }
    return {name: value for name, value in (whole | more).items() if value is not ...}


def takes(**properties: Any) -> dict[str, Any]:
    return a_definition(inputSchema={"type": "object", "properties": properties})


def paths(*tools: Any) -> list[str]:
    return [fault.path for fault in tool_faults(list(tools))]


@pytest.mark.requirement("D2")
def test_a_whole_definition_is_taken() -> None:
    assert paths(a_definition(), a_definition(name="list_reminders", mentraExtensions=...)) == []
    assert paths() == []


@pytest.mark.requirement("D2")
def test_all_types_are_accepted_at_any_depth() -> None:
    address = {
        "type": "object",
        "description": "Where.",
        "properties": {"street": {"type": "string", "description": "The street."}},
        "required": ["street"],
    }
    kinds = {
        kind: {"type": kind, "description": "Some."} for kind in ("string", "number", "integer", "boolean")
    }
    assert (
        paths(
            takes(
                **kinds,
                home=address,
                homes={"type": "array", "description": "Where else.", "items": address},
                tags={"type": "array", "description": "Words.", "items": {"type": "string"}},
                size={"type": "string", "description": "How big.", "enum": ["S", "L"], "default": "S"},
                age={"type": "integer", "description": "In years.", "minimum": 0, "enum": [1, 2]},
            )
        )
        == []
    )


@pytest.mark.requirement("D2")
@pytest.mark.parametrize(
    "tool, path",
    [
        ("add", ""),
        (a_definition(name=...), ".name"),
        (a_definition(name=""), ".name"),
        (a_definition(name="add:reminder"), ".name"),
        (a_definition(name="add\u200breminder"), ".name"),
        (a_definition(name=" add"), ".name"),
        (a_definition(name="x" * 257), ".name"),
        (a_definition(description=...), ".description"),
        (a_definition(description="  "), ".description"),
        (a_definition(description="ä" * 2049), ".description"),
        (a_definition(inputSchema=...), ".inputSchema"),
        (a_definition(inputSchema=[]), ".inputSchema"),
        (a_definition(inputSchema={}), ".inputSchema.type"),
        (a_definition(inputSchema={"type": "string"}), ".inputSchema.type"),
        (a_definition(inputSchema={"type": "object", "properties": []}), ".inputSchema.properties"),
        (a_definition(inputSchema={"type": "object", "required": ["x"]}), ".inputSchema.required[0]"),
        (a_definition(inputSchema={"type": "object", "required": "x"}), ".inputSchema.required"),
        (a_definition(inputSchema={"type": "object", "anyOf": []}), ".inputSchema.anyOf"),
        (a_definition(title="Add"), ".title"),
        (a_definition(mentraExtensions=[]), ".mentraExtensions"),
        (a_definition(mentraExtensions={"category": "games"}), ".mentraExtensions.category"),
        (a_definition(mentraExtensions={"icon": "x"}), ".mentraExtensions.icon"),
        (
            a_definition(mentraExtensions={"activationPhrases": "x"}),
            ".mentraExtensions.activationPhrases",
        ),
        (
            a_definition(mentraExtensions={"activationPhrases": ["x", 3]}),
            ".mentraExtensions.activationPhrases[1]",
        ),
        (a_definition(**{ORIGINAL_FIELD: "{"}), f'["{ORIGINAL_FIELD}"]'),
        (a_definition(**{ORIGINAL_FIELD: {"name": "x"}}), f'["{ORIGINAL_FIELD}"]'),
    ],
)
def test_each_fault_is_named_by_its_path(tool: Any, path: str) -> None:
    assert paths(a_definition(name="another"), tool) == [f"tools[1]{path}"]


@pytest.mark.requirement("D2")
@pytest.mark.parametrize(
    "given, path",
    [
        ("string", ""),
        ({"description": "x"}, ".type"),
        ({"type": "null", "description": "x"}, ".type"),
        ({"type": ["string"], "description": "x"}, ".type"),
        ({"type": "string"}, ".description"),
        ({**WHEN, "enum": []}, ".enum"),
        ({**WHEN, "enum": ["a", 3]}, ".enum[1]"),
        ({**WHEN, "type": "number", "enum": [True]}, ".enum[0]"),
        ({**WHEN, "type": "integer", "default": 1.5}, ".default"),
        ({**WHEN, "items": {"type": "string"}}, ".items"),
        ({**WHEN, "type": "array", "items": {"type": "any"}}, ".items.type"),
        ({**WHEN, "properties": {}}, ".properties"),
        (
            {**WHEN, "type": "object", "properties": {"in": {"type": "string"}}},
            ".properties.in.description",
        ),
        ({**WHEN, "type": "object", "properties": {"a b": 3}}, '.properties["a b"]'),
        ({**WHEN, "type": "object", "required": ["gone"]}, ".required[0]"),
        ({**WHEN, "oneOf": []}, ".oneOf"),
        ({**WHEN, "minLength": -1}, ".minLength"),
        ({**WHEN, "$ref": "#"}, '["$ref"]'),
    ],
)
def test_each_fault_of_a_property_is_named_by_its_path(given: Any, path: str) -> None:
    assert paths(takes(when=given)) == [f"tools[0].inputSchema.properties.when{path}"]


@pytest.mark.requirement("D2")
def test_all_faults_are_reported_up_to_a_limit() -> None:
    assert paths(a_definition(name=3, description=3, colour=3)) == [
        "tools[0].colour",
        "tools[0].name",
        "tools[0].description",
    ]
    assert len(tool_faults([{}] * 200)) == MAX_REPORTED_FAULTS


@pytest.mark.requirement("D2")
@pytest.mark.parametrize("twin", ["add_reminder", "add-reminder", "Add_Reminder"])
def test_two_tools_of_one_name_are_refused(twin: str) -> None:
    assert paths(a_definition(), a_definition(name=twin)) == ["tools[1].name"]
    assert paths(a_definition(), {"id": twin, "description": "x"}) == ["tools[1].id"]


@pytest.mark.requirement("D2")
def test_bounds() -> None:
    assert paths(*[a_definition(name=f"t{n}") for n in range(500)]) == []
    assert paths(*[a_definition(name=f"t{n}") for n in range(501)]) == ["tools"]
    assert paths(takes(when={**WHEN, "enum": ["x" * 70_000]})) == ["tools[0]"]
    deep: dict[str, Any] = dict(WHEN)
    for _ in range(40):
        deep = {"type": "array", "description": "x", "items": deep}
    assert paths(takes(when=deep)) == ["tools[0]"]
    assert paths(takes(when={**WHEN, "default": "\ud800"})) == ["tools[0]"]
    assert paths(takes(when={**WHEN, "default": 1 << 70})) == ["tools[0]"]


@pytest.mark.requirement("D2")
@pytest.mark.parametrize("tools", [None, {}, "x"])
def test_list_is_required(tools: Any) -> None:
    assert [fault.path for fault in tool_faults(tools)] == ["tools"]


@pytest.mark.requirement("D2")
@given(st.text(max_size=20) | st.sampled_from(["x" * 256, "x" * 257, "a b", "é", "a\tb"]))
def test_a_name_is_taken_where_it_makes_a_canonical_one(name: str) -> None:
    try:
        canonical("com.example", name)
        fits = True
    except Refused:
        fits = False
    assert (paths(a_definition(name=name)) == []) is fits


OLD = {"id": "add", "description": "Adds.", "activationPhrases": ["add"], "parameters": {"when": WHEN}}
APP = AppRecord(
    package="com.example.reminder",
    name="Reminder",
    owner="dev",
    hardware=(Requirement(type="DISPLAY"),),
    version=3,
)


@pytest.mark.requirement("D2", "D4")
def test_tool_is_listed_under_package_with_hardware_and_version() -> None:
    tool = tool_of(APP, stored_tool(a_definition()))
    assert (tool.name, tool.source, tool.local, tool.family, tool.keeper) == (
        "com.example.reminder:add_reminder",
        "com.example.reminder",
        "add_reminder",
        "app",
        "apps",
    )
    assert (tool.category, tool.read_only, tool.version) == ("mutation", False, "1.2.0")
    assert tool.extensions == {"activationPhrases": ["remind me"], "category": "productivity"}
    assert tool.hardware == APP.hardware
    assert tool_of(APP, stored_tool(a_definition(mentraExtensions=...))).extensions == {}


@pytest.mark.requirement("D12")
def test_old_tool_shape_is_accepted_and_converted() -> None:
    assert paths(OLD) == []
    tool = tool_of(APP, stored_tool(OLD))
    assert (tool.name, tool.input_schema["properties"]) == ("com.example.reminder:add", {"when": WHEN})
    assert stored_tool(OLD).definition == OLD


@pytest.mark.requirement("D12")
@pytest.mark.parametrize("original", [OLD, '{"id": "add", "description": "Adds."}'])
def test_a_migrated_definition_brings_its_original_along(original: Any) -> None:
    whole = a_definition(**{ORIGINAL_FIELD: original})
    assert paths(whole) == []
    kept = stored_tool(whole)
    assert kept.definition == a_definition()
    assert kept.original is not None
    assert kept.original["id"] == "add"
