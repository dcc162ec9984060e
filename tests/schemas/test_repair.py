"""Repairs of values: only corrections that are determined, without any loss."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.schemas import compile_schema, holds_secret, nearest_name, repaired

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "deck_id": {"type": "string"},
        "limit": {"type": "integer", "minimum": 1},
        "ratio": {"type": "number"},
        "exact": {"type": "boolean"},
        "order": {"enum": ["Newest", "oldest"]},
        "tags": {"type": "array", "items": {"type": "string"}},
        "level": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "unit": {"oneOf": [{"const": "km", "title": "Kilometres"}, {"const": "mile"}]},
        "place": {"$ref": "#/$defs/Place"},
        "places": {"type": "array", "items": {"$ref": "#/$defs/Place"}},
    },
    "required": ["deck_id"],
    "additionalProperties": False,
    "$defs": {
        "Place": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "kind": {"const": "place"}},
            "required": ["city", "kind"],
            "additionalProperties": False,
        }
    },
}
VALIDATOR = compile_schema(SCHEMA)
DECK = {"deck_id": "d"}
PLACE = {"city": "Bonn", "kind": "place"}

REPAIRED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "camel case": ({"deckId": "d"}, {}),
    "upper case": ({"DECK_ID": "d"}, {}),
    "transposed letters": ({"dcek_id": "d"}, {}),
    "missing letter": ({**DECK, "limt": 3}, {"limit": 3}),
    "case of an option": ({**DECK, "order": "newest"}, {"order": "Newest"}),
    "misspelled option": ({**DECK, "order": "odlest"}, {"order": "oldest"}),
    "option among constants": ({**DECK, "unit": "KM"}, {"unit": "km"}),
    "integer as text": ({**DECK, "limit": "3"}, {"limit": 3}),
    "nullable integer as text": ({**DECK, "level": "-3"}, {"level": -3}),
    "number as text": ({**DECK, "ratio": "1.5e3"}, {"ratio": 1500.0}),
    "boolean as text": ({**DECK, "exact": "True"}, {"exact": True}),
    "text as integer": ({"deck_id": 7}, {"deck_id": "7"}),
    "one value for a list": ({**DECK, "tags": "new"}, {"tags": ["new"]}),
    "list as JSON text": ({**DECK, "tags": '["a", "b"]'}, {"tags": ["a", "b"]}),
    "list of one for a value": ({**DECK, "limit": [3]}, {"limit": 3}),
    "types of items": ({**DECK, "tags": [1, "b"]}, {"tags": ["1", "b"]}),
    "unknown and far from all": ({**DECK, "zzz": 1}, {}),
    "null for an optional one": ({**DECK, "limit": None}, {}),
    "one possible value is missing": ({**DECK, "place": {"city": "Bonn"}}, {"place": PLACE}),
    "names inside": ({**DECK, "place": {"ctiy": "Bonn"}}, {"place": PLACE}),
    "names inside of items": ({**DECK, "places": [{"City": "Bonn"}]}, {"places": [PLACE]}),
    "one object for a list": ({**DECK, "places": {"city": "Bonn"}}, {"places": [PLACE]}),
    "same value under both names": ({**DECK, "deckId": "d"}, {}),
    "several faults": (
        {"deckId": "d", "limit": "3", "order": "NEWEST", "zzz": 1},
        {"limit": 3, "order": "Newest"},
    ),
}
NOT_DETERMINED: dict[str, dict[str, Any]] = {
    "no value for a required one": {},
    "text that is no integer": {**DECK, "limit": "three"},
    "fraction for an integer": {**DECK, "limit": 3.5},
    "text with commas for a list": {**DECK, "tags": "a,b"},
    "below the minimum": {**DECK, "limit": 0},
    "option far from all": {**DECK, "order": "random"},
    "number for a boolean": {**DECK, "exact": 1},
    "other value under a second name": {**DECK, "deckId": "e"},
    "two names for one": {"deckId": "d", "DeckID": "e"},
    "list of two for one value": {**DECK, "limit": [1, 2]},
}


@pytest.mark.requirement("E19")
@pytest.mark.parametrize("case", REPAIRED)
def test_determined_fault_is_repaired(case: str) -> None:
    value, expected = REPAIRED[case]
    assert not VALIDATOR.ok(value)
    found = repaired(value, SCHEMA)
    assert found == DECK | expected
    assert VALIDATOR.ok(found)


@pytest.mark.requirement("E19")
@pytest.mark.parametrize("case", NOT_DETERMINED)
def test_undetermined_fault_is_not_repaired(case: str) -> None:
    assert not VALIDATOR.ok(repaired(NOT_DETERMINED[case], SCHEMA))


def test_integer_and_boolean_stay_apart() -> None:
    found = repaired({"deck_id": "d", "limit": "3", "exact": "false"}, SCHEMA)
    assert (type(found["limit"]), found["exact"]) == (int, False)


def test_unknown_names_stay_where_they_are_allowed() -> None:
    schema = {"properties": {"path": {"type": "string"}}, "required": ["path"]}
    assert repaired({"pth": "/a", "more": 1}, schema) == {"path": "/a", "more": 1}


def test_missing_default_is_filled_in_only_if_required() -> None:
    schema: dict[str, Any] = {"properties": {"a": {"default": 1}, "b": {"default": 2}}, "required": ["a"]}
    assert repaired({}, schema) == {"a": 1}


def test_only_unknown_name_takes_the_only_missing_place() -> None:
    schema: dict[str, Any] = {
        "properties": {"query": {}, "size": {}},
        "required": ["query"],
        "additionalProperties": False,
    }
    assert repaired({"q": "x"}, schema) == {"query": "x"}
    assert repaired({"text": "x"}, schema) == {}


@pytest.mark.parametrize(
    "name, candidates, nearest",
    [
        ("timezone", ["time_zone"], "time_zone"),
        ("timeZone", ["time_zone", "time"], "time_zone"),
        ("id", ["card_id"], "card_id"),
        ("id", ["card_id", "deck_id"], None),
        ("zzz", ["card_id"], None),
        ("", ["card_id"], None),
        ("limit", [], None),
        ("X" * 1000, ["x" * 1000, "y"], "x" * 1000),
    ],
)
def test_nearest_name_is_clear_or_none(name: str, candidates: list[str], nearest: str | None) -> None:
    assert nearest_name(name, candidates) == nearest


def test_secret_is_found_at_any_depth() -> None:
    secret = {"type": "string", "writeOnly": True}
    schema = {
        "properties": {
            "plain": {"type": "string"},
            "headers": {"additionalProperties": secret},
            "either": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/Key"}]},
        },
        "$defs": {"Key": {"properties": {"key": secret, "next": {"$ref": "#/$defs/Key"}}}},
    }
    assert holds_secret({"headers": {}}, schema)
    assert holds_secret({"either": {}}, schema)
    assert not holds_secret({"plain": "a", "unknown": 1}, schema)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
NAMES = st.sampled_from([*SCHEMA["properties"], "deckId", "Limit", "odrer"]) | st.text(max_size=8)


@given(st.dictionaries(NAMES, JSON, max_size=5), st.dictionaries(st.text(max_size=6), JSON, max_size=4))
def test_repair_never_fails_and_keeps_the_original(value: dict[str, Any], schema: dict[str, Any]) -> None:
    before = repr(value)
    repaired(value, SCHEMA)
    repaired(value, {"properties": dict.fromkeys(value, schema), **schema})
    assert repr(value) == before


@given(st.dictionaries(NAMES, JSON, max_size=4))
def test_valid_value_stays_as_it_is(value: dict[str, Any]) -> None:
    if VALIDATOR.ok(value):
        assert repaired(value, SCHEMA) == value
