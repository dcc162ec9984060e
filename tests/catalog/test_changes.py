"""Catalog changes: one snapshot swap per change, none without, no leftovers."""

from collections.abc import Collection, Mapping
from typing import Any

import pytest

from tests.texts import matches
from toolcrib.catalog import Catalog, Overrides, Snapshot, ToolOverride, catalog, entries, examine
from toolcrib.catalog.name_claims import FLAT_KEY_PREFIX as FLAT
from toolcrib.interfaces import Offer, Withheld
from toolcrib.model import Tool, fingerprint
from toolcrib.schemas import GuardedSchema, check
from toolcrib.testing import a_tool


class WatchedCatalog:
    """A catalog, its snapshots and its claims on safe names."""

    def __init__(self, *sources: str, overrides: Overrides | None = None) -> None:
        self.heard: list[Snapshot] = []
        self.claims: dict[str, str] = {}
        self.catalog = Catalog(sources, overrides=overrides, claimed=self._claimed)
        self.catalog.listen(self.heard.append)

    def _claimed(self, fresh: Mapping[str, str], stale: Collection[str]) -> None:
        for name in _safe_names(stale):
            del self.claims[name]
        self.claims.update({name: fresh[name] for name in _safe_names(fresh)})

    def offer(self, source: str, *tools: Tool, **more: Any) -> None:
        self.catalog.replace(source, Offer(tools=tools, **more))

    @property
    def names(self) -> list[str]:
        return list(self.catalog.snapshot.tools)

    def news(self) -> int:
        """The number of snapshots since the previous call."""
        count = len(self.heard)
        self.heard.clear()
        return count


def _safe_names(keys: Collection[str]) -> list[str]:
    return [key for key in keys if not key.startswith(FLAT)]


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The checked schemas."""
    seen: list[object] = []

    def counting(schema: object, **more: Any) -> GuardedSchema:
        seen.append(schema)
        return check(schema, **more)

    monkeypatch.setattr(entries, "check", counting)
    return seen


def test_repeated_offer_is_no_change() -> None:
    watched = WatchedCatalog("x")
    watched.offer("x", a_tool("x:a"), a_tool("x:b", input_schema={}))
    first = watched.catalog.snapshot
    assert watched.news() == 1
    watched.offer("x", a_tool("x:a"), a_tool("x:b", input_schema={}))
    assert watched.news() == 0
    assert watched.catalog.snapshot is first
    watched.offer("x", a_tool("x:b", input_schema={}), a_tool("x:a"))
    assert watched.news() == 1
    assert watched.names == ["x:b", "x:a"]


def test_values_equal_in_python_are_changes() -> None:
    watched = WatchedCatalog("x")
    for default in (1, True, 1.0):
        watched.offer("x", a_tool("x:a", input_schema={"type": "object", "default": default}))
        served = watched.catalog.snapshot.tools["x:a"].input_schema["default"]
        assert type(served) is type(default)
    assert watched.news() == 3


def test_unchanged_tools_are_not_checked_again(checks: list[object]) -> None:
    watched = WatchedCatalog("x")
    watched.offer("x", a_tool("x:a"), a_tool("x:b", input_schema={"$ref": "http://127.0.0.1/"}))
    assert len(checks) == 2
    watched.offer("x", a_tool("x:a"), a_tool("x:b", input_schema={"$ref": "http://127.0.0.1/"}))
    watched.catalog.override(Overrides({"x:*": ToolOverride(tags=("new",))}))
    watched.catalog.degrade("x", True)
    assert len(checks) == 2
    assert watched.catalog.snapshot.tools["x:a"].tags == ("new",)
    assert [lost.name for lost in watched.catalog.snapshot.withheld] == ["x:b"]
    watched.offer("x", a_tool("x:a", input_schema={"type": "object", "title": "T"}), a_tool("x:b"))
    assert len(checks) == 4
    assert watched.names == ["x:a", "x:b"]


@pytest.mark.requirement("B6")
def test_tools_of_a_source_that_is_down_are_degraded() -> None:
    watched = WatchedCatalog("x", "y")
    watched.offer("x", a_tool("x:a"))
    watched.offer("y", a_tool("y:b"))
    before = watched.catalog.snapshot.tools["x:a"]
    watched.news()
    watched.catalog.degrade("x", True)
    watched.catalog.degrade("x", True)
    assert watched.news() == 1
    tools = watched.catalog.snapshot.tools
    assert [tool.degraded for tool in tools.values()] == [True, False]
    assert tools["x:a"].fingerprint == before.fingerprint
    assert watched.catalog.snapshot.find("a") == (tools["x:a"],)
    watched.catalog.degrade("x", False)
    assert watched.catalog.snapshot.tools["x:a"] == before


@pytest.mark.requirement("B6")
def test_remembered_tools_are_replaced_in_one_swap() -> None:
    watched = WatchedCatalog("x")
    watched.catalog.replace("x", Offer(tools=[a_tool("x:a")]), degraded=True)
    assert watched.catalog.snapshot.tools["x:a"].degraded
    watched.offer("x", a_tool("x:a"))
    assert not watched.catalog.snapshot.tools["x:a"].degraded
    assert watched.news() == 2


def test_unknown_source_cannot_be_degraded_or_removed() -> None:
    watched = WatchedCatalog("x")
    watched.catalog.degrade("x", True)
    watched.catalog.remove("x")
    assert watched.news() == 0


@pytest.mark.requirement("A4")
def test_removed_source_keeps_its_names() -> None:
    watched = WatchedCatalog("one", "two")
    watched.offer("one", a_tool("one:echo"))
    watched.offer("two", a_tool("two:echo"), a_tool("two:other"))
    watched.news()
    watched.catalog.remove("one")
    assert watched.news() == 1
    assert watched.names == ["two:other"]
    assert watched.claims == {"echo": "one:echo", "other": "two:other"}


@pytest.mark.requirement("A4", "C5")
def test_unconfigured_source_frees_its_names() -> None:
    watched = WatchedCatalog("one", "two")
    watched.offer("one", a_tool("one:echo"))
    watched.offer("two", a_tool("two:echo"))
    watched.catalog.remove("one")
    assert watched.names == []
    watched.news()
    watched.catalog.arrange(["two"])
    assert watched.names == ["two:echo"]
    assert watched.claims == {"echo": "two:echo"}
    assert watched.news() == 1
    watched.catalog.arrange(["two"])
    assert watched.news() == 0


@pytest.mark.requirement("A4")
def test_config_reorder_keeps_names() -> None:
    watched = WatchedCatalog("one", "two")
    watched.offer("one", a_tool("one:echo"), a_tool("one:a"))
    watched.offer("two", a_tool("two:echo"), a_tool("two:b"))
    assert watched.names == ["one:echo", "one:a", "two:b"]
    watched.news()
    watched.catalog.arrange(["two", "one"])
    assert watched.news() == 1
    assert watched.names == ["two:b", "one:echo", "one:a"]


@pytest.mark.requirement("I7")
def test_changed_overrides_check_every_tool_again() -> None:
    watched = WatchedCatalog("x", "y", overrides=Overrides({"x:a": ToolOverride(description="Old.")}))
    watched.offer("x", a_tool("x:a", description="Own."))
    watched.offer("y", a_tool("y:b", description="Own."))
    watched.news()
    watched.catalog.override(Overrides({"y:*": ToolOverride(description="New.", expose_as="bee")}))
    assert watched.news() == 1
    told = {name: tool.description for name, tool in watched.catalog.snapshot.tools.items()}
    assert told == {"x:a": "Own.", "y:b": "New."}
    assert watched.claims == {"a": "x:a", "bee": "y:b"}
    watched.catalog.override(Overrides({"y:b": ToolOverride(description="New.", expose_as="bee")}))
    assert watched.news() == 0
    watched.catalog.override(Overrides({"y:b": ToolOverride(expose_as="Not a name")}))
    assert watched.names == ["x:a"]
    assert "cannot be exposed" in watched.catalog.snapshot.withheld[0].reason


def test_withheld_and_repaired_are_merged_with_the_source() -> None:
    watched = WatchedCatalog("x")
    title_repair = "title omitted"
    watched.offer(
        "x",
        a_tool("x:odd", input_schema={}),
        a_tool("x:bad", input_schema={"type": "array"}),
        withheld=[Withheld("x:worse", "x", "it has no name")],
        repaired={"x:odd": (title_repair,), "x:fine": ("cut",)},
    )
    snapshot = watched.catalog.snapshot
    assert [lost.name for lost in snapshot.withheld] == ["x:worse", "x:bad"]
    assert snapshot.repaired["x:fine"] == ("cut",)
    title, root = snapshot.repaired["x:odd"]
    assert title == title_repair
    assert root.startswith("#/type ")


@pytest.mark.parametrize("leave", ["replace", "remove"])
def test_removed_source_leaves_nothing(leave: str) -> None:
    watched = WatchedCatalog("x")
    watched.offer("x", a_tool("x:odd", input_schema={}), a_tool("x:bad", input_schema={"type": "array"}))
    if leave == "replace":
        watched.offer("x")
    else:
        watched.catalog.remove("x")
    snapshot = watched.catalog.snapshot
    assert (snapshot.repaired, snapshot.withheld, snapshot.spellings) == ({}, (), {})


def test_duplicate_name_serves_the_first_tool() -> None:
    watched = WatchedCatalog("x")
    watched.offer("x", a_tool("x:a", description="First."), a_tool("x:a", description="Second."))
    assert watched.catalog.snapshot.tools["x:a"].description == "First."
    assert [(lost.name, "twice" in lost.reason) for lost in watched.catalog.snapshot.withheld] == [
        ("x:a", True)
    ]


@pytest.mark.requirement("A4")
@pytest.mark.parametrize("rival", ["Echo", "e_cho", "ｅ-cho"])
def test_equal_folded_names_in_an_offer_collide(rival: str) -> None:
    watched = WatchedCatalog("x")
    watched.offer("x", a_tool("x:e-cho" if rival != "Echo" else "x:echo"), a_tool(f"x:{rival}"))
    assert len(watched.names) == 1
    assert [lost.name for lost in watched.catalog.snapshot.withheld] == [f"x:{rival}"]


def _endless() -> dict[str, Any]:
    """A schema of a few objects that would be a billion on paper."""
    schema: dict[str, Any] = {"type": "object"}
    for _ in range(40):
        schema = {"allOf": [schema, schema]}
    return schema


@pytest.mark.parametrize(
    "fields",
    [
        {"input_schema": _endless()},
        {"input_schema": {"type": "object", "default": object()}},
        {"annotations": {"set": {1, 2}}},
        {"output_schema": {"type": "object", 1: 2}},
    ],
    ids=["endless", "no JSON", "a set", "a number for a key"],
)
def test_unserializable_definition_is_withheld(fields: dict[str, Any]) -> None:
    watched = WatchedCatalog("x")
    for _ in range(2):
        watched.offer("x", a_tool("x:bad", **fields), a_tool("x:good"))
        watched.catalog.override(Overrides({}))
    assert watched.names == ["x:good"]
    assert [lost.name for lost in watched.catalog.snapshot.withheld] == ["x:bad"]


def test_tools_over_the_cap_are_withheld(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog, "MAX_CATALOG_TOOLS", 2)
    watched = WatchedCatalog("x")
    watched.offer("x", *(a_tool(f"x:t{number}") for number in range(4)))
    assert watched.names == ["x:t0", "x:t1"]
    assert [lost.name for lost in watched.catalog.snapshot.withheld] == ["x:t2", "x:t3"]


def test_logged_faults_per_source_are_bounded(caplog: pytest.LogCaptureFixture) -> None:
    watched = WatchedCatalog("x")
    watched.offer("x", *(a_tool(f"x:t{number}", input_schema={"type": "array"}) for number in range(100)))
    assert len(caplog.messages) == catalog.MAX_LOG_LINES + 1
    assert matches("log", "further withheld tools", caplog.messages[-1])
    watched.offer("x", a_tool("x:t0", input_schema={"type": "array"}))
    assert len(caplog.messages) == catalog.MAX_LOG_LINES + 1


def test_prechecked_tools_are_not_checked_again(checks: list[object]) -> None:
    plain, other = a_tool("crm:find"), a_tool("crm:give", input_schema={"description": "no type"})
    tools = (plain, other)
    looked = {tool.name: examine(tool) for tool in tools}
    ahead, afresh = WatchedCatalog("crm"), WatchedCatalog("crm")
    ahead.offer("crm", *tools, examined=looked)
    assert len(checks) == len(tools)
    afresh.offer("crm", *tools)
    assert ahead.catalog.snapshot == afresh.catalog.snapshot
    for tool in ahead.catalog.snapshot.tools.values():
        assert tool.fingerprint == fingerprint(tool)


def test_precheck_counts_for_one_tool_object() -> None:
    shown = WatchedCatalog("crm")
    shown.offer(
        "crm", a_tool("crm:find", description="b"), examined={"crm:find": examine(a_tool("crm:find"))}
    )
    assert shown.catalog.snapshot.tools["crm:find"].description == "b"
