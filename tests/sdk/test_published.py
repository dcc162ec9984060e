"""What was published stays good: new versions may widen it, a major one may narrow it, names stay known."""

from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from tests.texts import matches
from toolcrib.model import Deprecation, JsonObject, Tool
from toolcrib.sdk.published import (
    CompatibilityBreach,
    InvalidPublishedFile,
    compare,
    parse_published,
    publish,
    serialize_published,
)
from toolcrib.testing import a_tool

TODAY = date(2030, 1, 31)


def params(*needed: str, **fields: JsonObject) -> JsonObject:
    return {"type": "object", "properties": fields, "required": list(needed)}


TEXT: JsonObject = {"type": "string"}
CARD = a_tool(
    "cards:get-card",
    description="Look up a card, by its id.",
    input_schema=params("id", id=TEXT),
    category="query",
    permissions=frozenset({"cards:read"}),
    aliases=("fetch-card",),
    version="1.2.0",
)
KEPT = publish({}, [CARD])


def found(*tools: Tool, kept: JsonObject = KEPT) -> list[CompatibilityBreach]:
    return compare(kept, tools, TODAY)


def test_published_file_round_trips_in_canonical_form() -> None:
    other = replace(CARD, name="cards:add-card")
    assert parse_published(serialize_published(KEPT)) == KEPT
    assert serialize_published(publish({}, [CARD, other])) == serialize_published(
        publish(publish({}, [other]), [CARD])
    )
    assert set(KEPT["get-card"]["1.2.0"]) == {
        "inputSchema",
        "outputSchema",
        "category",
        "permissions",
        "aliases",
    }


def test_every_version_is_kept() -> None:
    kept = publish(KEPT, [replace(CARD, version="2.0.0")])
    assert set(kept["get-card"]) == {"1.2.0", "2.0.0"}
    assert set(KEPT["get-card"]) == {"1.2.0"}


SOUND = serialize_published(KEPT)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"tools": 1}',
        '{"tools": {"x": 1}}',
        SOUND.replace("1.2.0", "first"),
        SOUND.replace('"category"', '"kind"'),
        SOUND.replace('"category"', '"deprecated": {"removalDate": "soon"}, "category"'),
    ],
)
def test_unreadable_published_file_gives_advice(text: str) -> None:
    with pytest.raises(InvalidPublishedFile) as raised:
        parse_published(text)
    assert matches("library", "unreadable published file gives advice", str(raised.value))


@pytest.mark.requirement("E16")
def test_nothing_has_changed() -> None:
    assert found(CARD) == []
    assert found(replace(CARD, description="Other words for the same."), a_tool("cards:new-tool")) == []


@pytest.mark.requirement("E16")
@pytest.mark.parametrize(
    "now,said",
    [
        ({"input_schema": params("id", "due", id=TEXT, due=TEXT)}, "params.due: required is True, was False"),
        ({"input_schema": params()}, "params.id: field is absent, was present"),
        (
            {"input_schema": params("id", id={**TEXT, "maxLength": 3})},
            "params.id: maxLength is 3, was absent",
        ),
        ({"permissions": frozenset({"cards:read", "cards:all"})}, "permissions: list is"),
    ],
)
def test_a_narrowing_needs_a_major_version(now: dict[str, Any], said: str) -> None:
    for version in ("1.2.0", "1.2.1", "1.3.0"):
        (breach,) = found(replace(CARD, version=version, **now))
        assert (breach.level, breach.tool) == ("short", "get-card")
        assert said in breach.message
        assert "2.0.0" in breach.message
    assert found(replace(CARD, version="2.0.0", **now)) == []


@pytest.mark.requirement("E16")
@pytest.mark.parametrize(
    "now",
    [
        {"input_schema": params("id", id={"type": "integer"})},
        {"category": "mutation"},
    ],
)
def test_an_incompatible_change_needs_another_name(now: dict[str, Any]) -> None:
    (breach,) = found(replace(CARD, version="2.0.0", **now))
    assert breach.level == "short"
    assert "get-card-v2" in breach.message
    second = replace(CARD, name="cards:get-card-v2")
    kept = publish({}, [second])
    (breach,) = found(replace(second, version="2.0.0", **now), kept=kept)
    assert "get-card-v3" in breach.message


@pytest.mark.requirement("E16")
@pytest.mark.parametrize(
    "now",
    [
        {"input_schema": params("id", id=TEXT, due=TEXT)},
        {"input_schema": params(id=TEXT)},
        {"permissions": frozenset[str]()},
        {"category": "analysis"},
        {"output_schema": params(title=TEXT)},
    ],
)
def test_compatible_change_without_minor_bump_warns(now: dict[str, Any]) -> None:
    for version in ("1.2.0", "1.2.9"):
        (breach,) = found(replace(CARD, version=version, **now))
        assert breach.level == "warning"
        assert "1.3.0" in breach.message
    assert found(replace(CARD, version="1.3.0", **now)) == []


@pytest.mark.requirement("E16")
def test_smaller_output_needs_major_version() -> None:
    before = replace(CARD, output_schema=params("title", title=TEXT))
    kept = publish({}, [before])
    for schema in (params(title=TEXT), None):
        (breach,) = found(replace(before, version="1.9.0", output_schema=schema), kept=kept)
        assert breach.level == "short"
        assert "data" in breach.message
        assert found(replace(before, version="2.0.0", output_schema=schema), kept=kept) == []


@pytest.mark.parametrize("version", ["1.1.0", "0.9.0", "1.2.0-rc.1"])
def test_a_version_does_not_go_back(version: str) -> None:
    (breach,) = found(replace(CARD, version=version))
    assert breach.level == "short"
    assert version in breach.message


def test_the_latest_version_counts() -> None:
    kept = publish(KEPT, [replace(CARD, version="1.10.0", input_schema=params(id=TEXT))])
    (breach,) = found(replace(CARD, version="1.11.0"), kept=kept)
    assert matches("library", "the latest version counts", breach.message)


@pytest.mark.requirement("E16", "A6")
def test_a_tool_that_vanished_must_be_an_alias_or_past_its_end() -> None:
    (breach,) = found()
    assert breach.level == "short"
    assert 'aliases=["get-card"]' in breach.message
    renamed = replace(CARD, name="cards:read-card", aliases=("get-card", "fetch-card"))
    assert found(renamed) == []
    for day, count in (("2030-01-30", 0), ("2030-01-31", 0), ("2030-02-01", 1)):
        gone = Deprecation(since="1.2.0", replacement="read-card", removal_date=day)
        assert len(found(kept=publish({}, [replace(CARD, deprecated=gone)]))) == count


@pytest.mark.requirement("E16", "A6")
def test_an_alias_that_vanished_is_missed() -> None:
    (breach,) = found(replace(CARD, aliases=()))
    assert "fetch-card" in breach.message
    assert found(replace(CARD, aliases=()), a_tool("cards:fetch-card")) == []


@pytest.mark.requirement("E16")
def test_successor_coexists_and_explains_migration() -> None:
    second = replace(CARD, name="cards:get-card-v2", aliases=())
    (deprecate, move) = found(CARD, second)
    assert (deprecate.level, deprecate.tool) == ("short", "get-card")
    assert 'replacement="get-card-v2"' in deprecate.message
    assert (move.level, move.tool) == ("person", "get-card-v2")
    for name in ("get-card-v2", "cards:get-card-v2"):
        old = replace(CARD, deprecated=Deprecation(since="1.2.0", replacement=name))
        assert found(old, second) == [move]
        assert found(old, replace(second, description="As get-card, with a due date.")) == []
    third = replace(second, name="cards:get-card-v3")
    assert {each.tool for each in found(CARD, second, third)} == {"get-card", "get-card-v2", "get-card-v3"}
    assert found(CARD, replace(CARD, name="cards:add-card-v2", aliases=())) == []
