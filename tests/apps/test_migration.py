"""From the old shape of tools to the new one."""

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given

from tests.apps.old_tools import MIGRATED, OLD_TOOLS, REMINDER
from toolcrib.apps.definition import tool_faults
from toolcrib.apps.migration import is_old, migrated, old_faults


@pytest.mark.requirement("D12")
def test_the_designs_example() -> None:
    before = deepcopy(REMINDER)
    assert migrated(REMINDER) == MIGRATED
    assert before == REMINDER


@pytest.mark.requirement("D12")
def test_a_tool_without_parameters_and_phrases() -> None:
    assert migrated({"id": "stop", "description": "Stops.", "parameters": None}) == {
        "name": "stop",
        "description": "Stops.",
        "inputSchema": {"type": "object", "properties": {}, "required": []},
        "mentraExtensions": {},
    }


@pytest.mark.requirement("D12")
@given(OLD_TOOLS)
def test_migration_of_valid_tool_is_valid(tools: list[dict[str, Any]]) -> None:
    assert [fault for tool in tools for fault in old_faults(tool, "tool")] == []
    new = [migrated(tool) for tool in tools]
    assert tool_faults(new) == ()
    assert not any(map(is_old, new))


@pytest.mark.parametrize(
    "definition, old",
    [
        (REMINDER, True),
        ({"id": None}, True),
        (MIGRATED, False),
        ({"id": "x", "name": "x"}, False),
        ({"id": "x", "inputSchema": {}}, False),
        ({}, False),
        ([], False),
    ],
)
def test_old_shape_is_detected_by_id(definition: Any, old: bool) -> None:
    assert is_old(definition) is old


@pytest.mark.requirement("D12")
@pytest.mark.parametrize(
    "change, path",
    [
        ({"id": 3}, "t.id"),
        ({"id": "a:b"}, "t.id"),
        ({"description": ""}, "t.description"),
        ({"activationPhrases": "x"}, "t.activationPhrases"),
        ({"category": "media"}, "t.category"),
        ({"parameters": []}, "t.parameters"),
        ({"parameters": {"x": "string"}}, "t.parameters.x"),
        ({"parameters": {"x": {"type": "integer", "description": "x"}}}, "t.parameters.x.type"),
        ({"parameters": {"x": {"type": "string"}}}, "t.parameters.x.description"),
        (
            {"parameters": {"x": {"type": "string", "description": "x", "required": "yes"}}},
            "t.parameters.x.required",
        ),
        ({"parameters": {"x": {"type": "string", "description": "x", "enum": []}}}, "t.parameters.x.enum"),
        (
            {"parameters": {"x": {"type": "number", "description": "x", "enum": ["1"]}}},
            "t.parameters.x.enum[0]",
        ),
        ({"parameters": {"x": {"type": "string", "description": "x", "min": 1}}}, "t.parameters.x.min"),
    ],
)
def test_faults_of_the_old_shape_are_named_by_path(change: dict[str, Any], path: str) -> None:
    assert [fault.path for fault in old_faults(REMINDER | change, "t")] == [path]
