"""Schemas that would take for ever, or the process with them, are refused before they run."""

from collections.abc import Callable
from time import perf_counter
from typing import Any

import pytest

from tests.schemas.refused import DRAFT_2019, refused
from toolcrib.schemas import check, compile_schema

# --- recursion and bombs


def test_recursion_into_a_deeper_level_is_accepted() -> None:
    tree = {
        "type": "object",
        "properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}, "value": {"type": "integer"}},
    }
    assert compile_schema(check(tree).schema).faults({"left": {"right": {"value": "x"}}})
    json = {
        "anyOf": [
            {"type": ["string", "number", "boolean", "null"]},
            {"type": "array", "items": {"$ref": "#/$defs/json"}},
            {"type": "object", "additionalProperties": {"$ref": "#/$defs/json"}},
        ]
    }
    assert check({"properties": {"any": {"$ref": "#/$defs/json"}}, "$defs": {"json": json}})


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"allOf": [{"$ref": "#"}]},
        {"anyOf": [{"type": "object"}, {"not": {"$ref": "#"}}]},
        {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
        {"properties": {"a": {"$ref": "#/properties/a"}}},
        {"dependentSchemas": {"a": {"$ref": "#"}}},
        {"$schema": DRAFT_2019, "$recursiveAnchor": True, "if": {"$recursiveRef": "#"}},
        {"$dynamicAnchor": "x", "oneOf": [{"$dynamicRef": "#x"}]},
    ],
)
def test_recursion_on_one_level_is_refused(schema: dict[str, Any]) -> None:
    assert "refers to itself" in refused(schema).reason


def staircase(levels: int, step: Callable[[str], dict[str, Any]]) -> dict[str, Any]:
    """Definitions that each refer to the next through `step`."""
    steps = {f"a{level}": step(f"#/$defs/a{level + 1}") for level in range(levels)}
    return {"$ref": "#/$defs/a0", "$defs": {**steps, f"a{levels}": {"type": "object"}}}


def bomb(levels: int, keyword: str = "allOf") -> dict[str, Any]:
    """Each level refers to the next one twice."""
    return staircase(levels, lambda below: {keyword: [{"$ref": below}, {"$ref": below}]})


@pytest.mark.parametrize("keyword", ["allOf", "anyOf", "oneOf"])
def test_exponential_schema_is_refused_quickly(keyword: str) -> None:
    started = perf_counter()
    assert "10,000 paths" in refused(bomb(25, keyword)).reason
    assert perf_counter() - started < 1  # about 0.001; to run it would take minutes


def test_cost_count_is_exact() -> None:
    # A level counts itself and its two references: 4 * 2**n - 3 ways, and the root one more.
    assert check(bomb(11))
    assert "10,000 paths" in refused(bomb(12)).reason


def test_doubling_schema_is_refused() -> None:
    def plain(below: str) -> dict[str, Any]:
        return {"anyOf": [{"properties": {"c": {"$ref": below}}}]}

    def looks_twice(below: str) -> dict[str, Any]:
        return {**plain(below), "unevaluatedProperties": False}

    assert check(staircase(25, plain))
    assert "10,000 paths" in refused(staircase(25, looks_twice)).reason


def test_long_reference_chain_is_refused() -> None:
    """The library would overflow the stack."""

    def chain(length: int) -> dict[str, Any]:
        schema = staircase(length, lambda below: {"$ref": below})
        schema["$defs"][f"a{length}"]["properties"] = {"c": {"$ref": "#"}}
        return schema

    guarded = check(chain(61))
    deep: Any = {}
    for _ in range(63):
        deep = {"c": deep}
    assert compile_schema(guarded.schema).ok(deep)
    assert "more than 64 chained" in refused(chain(62)).reason
    assert "more than 64 chained" in refused(chain(1_000)).reason


def test_deep_enum_options_count() -> None:
    def options(options: list[Any]) -> dict[str, Any]:
        return {"properties": {"a": {"enum": options}}}

    assert "10,000 paths" in refused(options([[n % 10] for n in range(10_000)])).reason
    assert check(options(list(range(10_000))))
