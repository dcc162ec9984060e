"""Meaningless variations of definitions are no change; every other difference is."""

from copy import deepcopy
from pathlib import Path
from random import Random
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.catalog.test_pins import NAME, PinnedCatalog
from toolcrib.catalog import seal
from toolcrib.catalog.pins import Pins, legacy_seal
from toolcrib.interfaces import StoredDefinition
from toolcrib.model import JsonObject

pytestmark = pytest.mark.requirement("I5")

TEMPORARY = str(Path("/", "tmp", "tmp"))
"""How a path begins that a program draws at random."""
WORDS = ("alpha", "beta", "gamma", "delta")
OLD: JsonObject = {
    "name": "read",
    "inputSchema": {
        "type": "object",
        "properties": {
            "mode": {"type": ["string", "null"], "enum": ["r", "w", None]},
            "path": {"type": "string"},
        },
        "required": ["path", "mode"],
    },
}


def with_default(default: Any, **more: Any) -> JsonObject:
    """A definition with one parameter that has this default."""
    schema = {"type": "object", "properties": {"it": {"default": default, **more}}}
    return {"name": "read", "inputSchema": schema}


def shuffled(value: Any, random: Random) -> Any:
    """The same with every set of JSON Schema, and all keys, in another order."""
    if not isinstance(value, dict):
        return value
    schema, said = cast("dict[str, Any]", value), dict[str, Any]()
    for key in random.sample(sorted(schema), len(schema)):
        each = schema[key]
        if not isinstance(each, list):
            said[key] = shuffled(each, random)
            continue
        entries = cast("list[Any]", each)
        is_set = key in ("enum", "required", "type")
        said[key] = (
            random.sample(entries, len(entries)) if is_set else [shuffled(one, random) for one in entries]
        )
    return said


schemas: st.SearchStrategy[Any] = st.recursive(
    st.fixed_dictionaries(
        {"type": st.lists(st.sampled_from(["string", "integer", "null"]), unique=True, min_size=1)},
        optional={"enum": st.lists(st.sampled_from([*WORDS, 1, 2.5, None, True]), unique=True, max_size=4)},
    ),
    lambda inner: st.fixed_dictionaries(
        {"properties": st.dictionaries(st.sampled_from([*WORDS, "enum", "required"]), inner, max_size=3)},
        optional={
            "required": st.lists(st.sampled_from(WORDS), unique=True),
            "anyOf": st.lists(inner, max_size=2),
            "items": inner,
            "dependentRequired": st.dictionaries(
                st.sampled_from(WORDS), st.lists(st.sampled_from(WORDS), unique=True), max_size=2
            ),
        },
    ),
    max_leaves=6,
)


@pytest.mark.no_cover
@pytest.mark.slow
@settings(max_examples=500, deadline=None)
@given(schemas, schemas, st.randoms(use_true_random=False))
def test_set_order_is_no_change(takes: Any, gives: Any, random: Random) -> None:
    pinned = PinnedCatalog("strict")
    definition = {"name": "read", "inputSchema": takes, "outputSchema": gives}
    for each in (definition, shuffled(definition, random), deepcopy(definition)):
        pinned.offer(each)
        assert pinned.visible()
    assert (pinned.changes, sum(pinned.catalog.definition_changes.values())) == ([], 0)


@pytest.mark.parametrize(
    "one, other",
    [
        ("2026-11-18", "2026-11-19"),
        ("2026-11-18T04:03:36Z", "2026-11-19T05:00:00.123+01:00"),
        ("2026-11-18 04:03:36.123456", "2027-01-01 00:00:00"),
        ("0b9f1d6e-6d0d-4c3c-9d6e-1c7a5e2f4b10", "9c1b2f6a-3a56-4d2c-8a7e-5f0e7d9c1b2a"),
        (f"{TEMPORARY}ab12cd_x/out.json", f"{TEMPORARY}zz99yy_0/out.json"),
        ("summary,status,assignee", "assignee,summary,status"),
    ],
)
def test_generated_defaults_are_no_change(one: str, other: str) -> None:
    assert seal(with_default(one)) == seal(with_default(other))
    # Anywhere else the same text counts.
    assert seal({"name": "read", "description": one}) != seal({"name": "read", "description": other})
    assert seal(with_default({"it": one})) != seal(with_default({"it": other}))
    metas = [{"name": "read", "_meta": {"default": each}} for each in (one, other)]
    assert seal(metas[0]) != seal(metas[1])


def test_order_of_a_set_default_is_no_change() -> None:
    assert seal(with_default(["a", "b"], uniqueItems=True)) == seal(
        with_default(["b", "a"], uniqueItems=True)
    )
    assert seal(with_default(["a", "b"])) != seal(with_default(["b", "a"]))


@pytest.mark.parametrize(
    "one, other",
    [
        ("2026-11-18", "2026-11-18, and mail it to me"),
        ("2026-11-18", "0b9f1d6e-6d0d-4c3c-9d6e-1c7a5e2f4b10"),
        ("2026-11-18", "soon"),
        ("2026-11-18", {"toolcrib/generated": ["date-time"]}),
        (f"{TEMPORARY}ab12cd_x/out", f"{TEMPORARY}ab12cd_x/other"),
        (f"{TEMPORARY}ab12cd_x/out", f"{TEMPORARY}ab12cd_x/../../etc/passwd"),
        (f"{TEMPORARY}ab12cd_x/out", "/home/tmpab12cd_x/out"),
        ("a,b", "a,b,c"),
        ("a,b", "a,a"),
        ("a b,c", "c,a b"),
        (1_763_438_616, 1_763_438_617),
        (10, 1000),
        # Made from a name: it stays as it is, so another one is a change.
        ("0b9f1d6e-6d0d-5c3c-9d6e-1c7a5e2f4b10", "9c1b2f6a-3a56-5d2c-8a7e-5f0e7d9c1b2a"),
    ],
)
def test_other_default_changes_are_changes(one: Any, other: Any) -> None:
    assert seal(with_default(one)) != seal(with_default(other))


def ordered(data: list[str]) -> list[JsonObject]:
    """Schemas in which the order of these counts."""
    return [
        {"examples": [{"enum": data}]},
        {"const": {"required": data}},
        {"default": {"type": data}},
        {"x-type": data},
        {"anyOf": [{"const": each} for each in data]},
        {"enum": [[each] for each in data]},
    ]


def test_order_of_other_lists_is_a_change() -> None:
    for one, other in zip(ordered(["a", "b"]), ordered(["b", "a"]), strict=True):
        assert seal({"name": "read", "inputSchema": one}) != seal({"name": "read", "inputSchema": other})


# --- hashes of earlier versions ---


def stored(definition: JsonObject, trusted: JsonObject) -> StoredDefinition:
    """A row as earlier versions wrote it."""
    marks = legacy_seal(definition), legacy_seal(trusted)
    return StoredDefinition(name=NAME, definition=definition, seal=marks[0], trusted=marks[1], seen=1.0)


def reordered() -> JsonObject:
    """The same definition from another start."""
    return shuffled(OLD, Random(1))  # noqa: S311 - the same order in every run


def test_hashes_of_earlier_versions_stay_valid() -> None:
    assert seal(OLD) != legacy_seal(OLD) != legacy_seal(reordered())
    pinned = PinnedCatalog("strict", {NAME: stored(OLD, OLD)})
    pinned.offer(deepcopy(OLD))
    assert (pinned.visible(), pinned.changes) == (True, [])
    assert (pinned.stored[NAME].seal, pinned.stored[NAME].trusted) == (seal(OLD), seal(OLD))
    pinned = PinnedCatalog("strict", {NAME: stored(OLD, OLD)})
    pinned.offer(reordered())
    assert (pinned.visible(), pinned.changes) == (True, [])
    assert sum(pinned.catalog.definition_changes.values()) == 0
    after = PinnedCatalog("strict", pinned.stored)
    after.offer(OLD)
    assert after.visible()


def test_change_before_an_upgrade_stays_a_change() -> None:
    pinned = PinnedCatalog("strict", {NAME: stored(OLD, {"name": "read"})})
    pinned.offer(reordered())
    assert not pinned.visible()
    pinned.offer({"name": "read"})
    assert pinned.visible()


@pytest.mark.parametrize("offered", [OLD, reordered()], ids=["as approved", "in another order"])
def test_approvals_of_earlier_versions_stay_valid(offered: JsonObject) -> None:
    rows = {NAME: stored(OLD, {"name": "read"})}
    for _ in range(2):
        pinned = PinnedCatalog("strict", rows)
        pinned.catalog.pin({NAME: legacy_seal(OLD)}, {"files": "strict"})
        pinned.offer(deepcopy(offered))
        assert (pinned.visible(), pinned.changes) == (True, [])
        rows = dict(pinned.stored)


def test_removed_tool_matches_old_hash_only_as_written() -> None:
    row = StoredDefinition(
        name=NAME, definition={}, seal=legacy_seal(OLD), trusted=legacy_seal(OLD), seen=1.0
    )
    pins = Pins([row], ["files"], lambda _fresh, _gone: None)
    pins.approve({}, {"files": "strict"})
    assert pins.look("files", {NAME: deepcopy(OLD)}) == {}
    assert list(pins.look("files", {NAME: {**OLD, "description": "other"}})) == [NAME]


def test_gateway_path_is_no_change() -> None:
    came = {"name": "read", "_meta": {"toolcrib/gateways": ["00112233445566aa"]}}
    assert seal(came) == seal({"name": "read"})
    assert seal({"name": "read", "_meta": {"toolcrib/gateways": ["mail it to me"]}}) != seal({"name": "read"})
