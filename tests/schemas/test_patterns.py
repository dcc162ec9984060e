"""Patterns run in linear time and bounded memory; others are reported and left to the tool."""

from time import perf_counter
from typing import Any

import pytest

from tests.schemas.refused import refused
from tests.texts import matches
from toolcrib.schemas import check, compile_schema


def strings(*patterns: str) -> dict[str, Any]:
    return {"type": "object", "properties": {f"p{n}": {"pattern": each} for n, each in enumerate(patterns)}}


def test_patterns_are_checked() -> None:
    validator = compile_schema(check(strings("^[A-Z]{4}$", r"^\d{4}-\d{2}$")).schema)
    assert validator.ok({"p0": "ENGM", "p1": "2026-07"})
    assert not validator.ok({"p0": "engm"})
    assert not validator.ok({"p1": "2026-7"})
    assert validator.unchecked == ()


@pytest.mark.parametrize("pattern", ["^(a+)+$", "(a|a)*b", "(.*)*x", "^(([a-z])+.)+[A-Z]([a-z])+$"])
def test_patterns_run_in_linear_time(pattern: str) -> None:
    validator = compile_schema(check(strings(pattern)).schema)
    started = perf_counter()
    assert not validator.ok({"p0": "a" * 50_000 + "!\n"})
    assert perf_counter() - started < 2  # a few milliseconds; backtracking would not come back


@pytest.mark.parametrize("pattern", ["(?=a)b", r"(a+)\1", "(?<!x)y", "(", r"\p{L}{5000}"])
def test_unsafe_pattern_is_not_checked(pattern: str) -> None:
    guarded = check(strings("^a", pattern))
    assert guarded.schema == strings("^a", pattern)
    (repair,) = guarded.repairs
    assert repair.startswith("#/properties/p1/pattern ")
    assert matches("schemas", "unsafe pattern", repair)
    validator = compile_schema(guarded.schema)
    assert validator.unchecked == ("#/properties/p1/pattern",)
    assert validator.ok({"p0": "a", "p1": "anything"})
    assert not validator.ok({"p0": "b", "p1": "anything"})


def test_other_faults_are_still_found() -> None:
    schema = strings("(?=a)b")
    schema["properties"]["q"] = {"minimum": "x"}
    assert refused(schema).path == "#/properties/q/minimum"


def test_property_name_patterns_are_checked() -> None:
    names = {
        "type": "object",
        "patternProperties": {"^x-": {"type": "string"}},
        "additionalProperties": False,
    }
    validator = compile_schema(check(names).schema)
    assert validator.ok({"x-a": "text"})
    assert not validator.ok({"x-a": 1})
    assert not validator.ok({"y": "text"})
    assert refused({"patternProperties": {"(?=x)": {}}}).path == "#/patternProperties"


def test_the_number_of_different_patterns_is_bounded() -> None:
    assert check(strings(*[f"^{n}$" for n in range(256)]))
    assert check(strings(*["^same$"] * 500))
    assert "256 different patterns" in refused(strings(*[f"^{n}$" for n in range(257)])).reason


def test_patterns_share_a_memory_bound() -> None:
    large = r"\p{L}{30}"
    assert check(strings(large)).repairs == ()
    started = perf_counter()
    assert len(check(strings(*[f"{large}{n}" for n in range(200)])).repairs) == 200
    assert perf_counter() - started < 10  # some tenths; unbounded it takes seconds and gigabytes
