"""Validators: correct, `ok` and `faults` agree, and bounded in cost."""

from time import perf_counter
from typing import Any

import pytest

from tests.schemas.refused import DRAFT_7, DRAFT_2019
from tests.texts import matches
from toolcrib.schemas import InvalidSchema, Validator, check, compile_schema
from toolcrib.schemas.subschemas import MAX_JSON_DEPTH


def validator(schema: dict[str, Any]) -> Validator:
    return compile_schema(check(schema, root=None).schema)


def messages(schema: dict[str, Any], value: Any) -> list[str]:
    return [fault.message for fault in validator(schema).faults(value)]


TYPES: tuple[tuple[str, list[Any], list[Any]], ...] = (
    ("integer", [1, -1, 0, 1.0, 10**30], [True, 1.5, "1", None]),
    ("number", [1, 1.5, -0.0], [True, False, "1"]),
    ("boolean", [True, False], [0, 1, "true"]),
    ("null", [None], [0, "", False]),
    ("string", ["", "ü"], [1, None]),
    ("array", [[], (1, 2)], [{}, "ab"]),
    ("object", [{}], [[], None]),
)


@pytest.mark.parametrize("kind, good, bad", TYPES)
def test_types_are_json_types(kind: str, good: list[Any], bad: list[Any]) -> None:
    typed = validator({"type": kind})
    assert all(typed.ok(value) and typed.faults(value) == () for value in good)
    assert not any(typed.ok(value) or typed.faults(value) == () for value in bad)


def test_validation_follows_the_dialect() -> None:
    by_place = {"items": [{"type": "string"}]}
    assert not validator({"$schema": DRAFT_7, **by_place}).ok([1])
    assert not validator({"$schema": DRAFT_2019, **by_place}).ok([1])
    assert not validator({"prefixItems": [{"type": "string"}]}).ok([1])


@pytest.mark.parametrize("dialect", [{}, {"$schema": DRAFT_7}, {"$schema": DRAFT_2019}])
def test_formats_are_not_asserted(dialect: dict[str, Any]) -> None:
    assert validator({**dialect, "type": "string", "format": "date-time"}).ok("tomorrow")


@pytest.mark.parametrize("value", [{"a": b"bytes"}, {"a": object()}, {"a": {1: 2}}, {"a": [{1, 2}]}])
def test_non_json_value_is_a_fault(value: Any) -> None:
    checked = validator({"properties": {"a": {"type": "object", "required": ["b"]}}})
    assert not checked.ok(value)
    (fault,) = checked.faults(value)
    assert fault.path == "arguments"
    assert fault.expected == "JSON"


def test_at_most_ten_faults_are_reported() -> None:
    assert len(messages({"items": {"type": "string"}}, [1] * 50)) == 10


def test_unchecked_schema_is_refused() -> None:
    for schema in ({"$ref": "http://127.0.0.1/"}, {"$ref": "#"}, {"type": "nonsense"}):
        with pytest.raises(InvalidSchema):
            compile_schema(schema)
    assert compile_schema({"$id": ": no address :", "type": "object"}).ok({})
    with pytest.raises(InvalidSchema, match="JSON"):
        compile_schema({"default": object()})


def test_schema_the_library_rejects_does_not_crash() -> None:
    """Version 0.60 of the library panics here."""
    schema: dict[str, Any] = {
        "$ref": "#/$defs/a",
        "$defs": {
            "a": {"dependentSchemas": {"c": {"$ref": "#/$defs/b"}}, "if": {}, "then": {"$ref": "#/$defs/c"}},
            "b": {"contains": {"allOf": [{"$ref": "#/$defs/a"}], "unevaluatedProperties": False}},
            "c": {"patternProperties": {"c$": {"$ref": "#/$defs/d"}}},
            "d": {"items": {"$ref": "#/$defs/c"}},
        },
    }
    checked = validator(schema)
    assert checked.ok({"c": {}}) is not bool(checked.faults({"c": {}}))


# --- bounded cost


def quickly(checked: Validator, value: Any) -> list[str]:
    started = perf_counter()
    found = [fault.message for fault in checked.faults(value)]
    assert perf_counter() - started < 5  # milliseconds; what is refused here would take minutes or for ever
    return found


def places(found: list[str]) -> list[str]:
    """The paths of faults."""
    return [message.partition(": ")[0] for message in found]


def test_large_value_reports_only_the_first_fault() -> None:
    rows = {"properties": {"rows": {"type": "array", "items": {"type": "string"}}}}
    assert places(quickly(validator(rows), {"rows": [1] * 90_000})) == ["arguments.rows[0]"]


def test_large_value_against_unions_reports_no_details() -> None:
    rows = {
        "properties": {"rows": {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]}}
    }
    small = {"rows": ["a"] * 100 + [1]}
    assert places(quickly(validator(rows), small)) == ["arguments.rows[100]"]
    large = {"rows": ["a"] * 90_000 + [1]}
    (message,) = quickly(validator(rows), large)
    assert matches("schemas", "large value without details", message)


def recursive_union() -> dict[str, Any]:
    """Three mutually recursive branches: every level triples the errors of a branch."""
    forms = [
        {"properties": {"kind": {"const": kind}, "inner": {"$ref": "#/$defs/form"}}, "required": ["kind"]}
        for kind in ("and", "or", "not")
    ]
    return {"$ref": "#/$defs/form", "$defs": {"form": {"anyOf": forms}}}


def nested(levels: int, innermost: Any) -> Any:
    value = innermost
    for _ in range(levels):
        value = {"kind": "or", "inner": value}
    return value


def test_small_recursive_union_is_explained() -> None:
    checked = validator(recursive_union())
    assert quickly(checked, nested(MAX_JSON_DEPTH - 1, {"kind": "or"})) == []
    assert places(quickly(checked, nested(2, {"kind": "xor"}))) == ["arguments.inner.inner.kind"]
    assert places(quickly(checked, nested(MAX_JSON_DEPTH - 1, {"kind": "xor"}))) == ["arguments"]


def test_recursion_without_branches_is_explained_at_any_depth() -> None:
    tree = {"properties": {"inner": {"$ref": "#"}, "kind": {"type": "string"}}}
    found = quickly(validator(tree), nested(MAX_JSON_DEPTH - 1, {"kind": 1}))
    assert places(found)[0].endswith(".kind")


def test_costly_schema_is_refused_for_large_values() -> None:
    steps: dict[str, Any] = {
        f"a{n}": {"allOf": [{"$ref": f"#/$defs/a{n + 1}"}, {"$ref": f"#/$defs/a{n + 1}"}]} for n in range(10)
    }
    checked = validator({"items": {"$ref": "#/$defs/a0"}, "$defs": {**steps, "a10": {"type": "string"}}})
    assert quickly(checked, ["a"] * 1_000) == []
    (message,) = quickly(checked, ["a"] * 20_000)
    assert matches("schemas", "value too large for its schema", message)
    assert not checked.ok(["a"] * 20_000)
