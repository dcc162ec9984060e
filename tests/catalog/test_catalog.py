"""The catalog: names claimed for good, overrides on the way in, bad tools withheld, the rest served."""

from collections.abc import Collection, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.texts import matches
from toolcrib.catalog import Catalog, Overrides, Snapshot, ToolOverride
from toolcrib.interfaces import Offer
from toolcrib.model import RateLimit, Slow, Tool
from toolcrib.testing import a_tool


def an_offer(*tools: Tool) -> Offer:
    return Offer(tools=tools)


def served(catalog: Catalog) -> dict[str, str]:
    return {name: tool.exposed for name, tool in catalog.snapshot.tools.items()}


@pytest.mark.requirement("A1", "A5")
def test_tool_is_found_by_every_name() -> None:
    catalog = Catalog(["crm"])
    catalog.replace("crm", an_offer(a_tool("crm:find-card", aliases=("look-up-card",))))
    for name in (
        "crm:find-card",
        "crm:find_card",
        "find_card",
        "find-card",
        "FIND_CARD",
        "look-up-card",
        "look_up_card",
    ):
        assert [tool.name for tool in catalog.snapshot.find(name)] == ["crm:find-card"], name
    assert catalog.snapshot.find("crm:") == ()


@pytest.mark.requirement("A2", "A3")
def test_safe_names_have_server_prefix_only_for_mcp() -> None:
    catalog = Catalog(["files", "local"])
    catalog.replace("files", an_offer(a_tool("files:readFile", family="mcp")))
    catalog.replace("local", an_offer(a_tool("local:get-datetime")))
    assert served(catalog) == {"files:readFile": "mcp_files_read_file", "local:get-datetime": "get_datetime"}


@pytest.mark.requirement("A4")
@pytest.mark.parametrize("order", [("one", "two"), ("two", "one")])
def test_name_belongs_to_first_source_in_config_order(order: tuple[str, str]) -> None:
    claims: dict[str, str] = {}
    for source in ("one", "two"):
        _claimed_catalog(claims).replace(source, an_offer(a_tool(f"{source}:echo")))
    catalog = _claimed_catalog(claims)
    for source in order:
        catalog.replace(source, an_offer(a_tool(f"{source}:echo")))
    assert served(catalog) == {"one:echo": "echo"}
    (lost,) = catalog.snapshot.withheld
    assert lost.name == "two:echo"
    assert "expose_as" in lost.reason


def _claimed_catalog(claims: dict[str, str]) -> Catalog:
    def claimed(fresh: Mapping[str, str], stale: Collection[str]) -> None:
        for name in stale:
            del claims[name]
        claims.update(fresh)

    return Catalog(["one", "two"], claims=dict(claims), claimed=claimed)


@pytest.mark.requirement("A3", "A4")
def test_offline_source_keeps_its_claim() -> None:
    claims: dict[str, str] = {}
    _claimed_catalog(claims).replace("one", an_offer(a_tool("one:echo")))
    later = _claimed_catalog(claims)
    later.replace("two", an_offer(a_tool("two:echo")))
    assert served(later) == {}
    later.replace("one", an_offer(a_tool("one:echo")))
    assert served(later) == {"one:echo": "echo"}


@pytest.mark.requirement("A4")
def test_unconfigured_source_gives_up_its_names() -> None:
    catalog = Catalog(["two"], claims={"echo": "gone:echo"})
    catalog.replace("two", an_offer(a_tool("two:echo")))
    assert served(catalog) == {"two:echo": "echo"}


@pytest.mark.requirement("A4")
@pytest.mark.parametrize("rival", ["Echo", "ECHO", "e-cho", "ｅｃｈｏ"])
@pytest.mark.check(12)
def test_names_that_fold_to_one_collide(rival: str) -> None:
    catalog = Catalog(["one", "two"])
    catalog.replace("one", an_offer(a_tool("one:e-cho" if "-" in rival else "one:echo")))
    catalog.replace("two", an_offer(a_tool(f"two:{rival}")))
    assert len(catalog.snapshot.tools) == 1
    assert len(catalog.snapshot.withheld) == 1


@pytest.mark.requirement("A4", "I7")
def test_expose_as_settles_a_collision() -> None:
    overrides = Overrides({"two:echo": ToolOverride(expose_as="second_echo")})
    catalog = Catalog(["one", "two"], overrides=overrides)
    catalog.replace("one", an_offer(a_tool("one:echo")))
    catalog.replace("two", an_offer(a_tool("two:echo")))
    assert served(catalog) == {"one:echo": "echo", "two:echo": "second_echo"}
    assert [tool.name for tool in catalog.snapshot.find("second-echo")] == ["two:echo"]


@pytest.mark.requirement("A4")
def test_expose_as_frees_the_old_name() -> None:
    overrides = Overrides({"one:echo": ToolOverride(expose_as="first_echo")})
    catalog = Catalog(["one", "two"], overrides=overrides, claims={"echo": "one:echo"})
    catalog.replace("one", an_offer(a_tool("one:echo")))
    catalog.replace("two", an_offer(a_tool("two:echo")))
    assert served(catalog) == {"one:echo": "first_echo", "two:echo": "echo"}


@pytest.mark.requirement("I7")
def test_later_override_wins_for_any_source() -> None:
    overrides = Overrides(
        {
            "crm:*": ToolOverride(permissions=frozenset({"crm:use"}), cache_ttl=5.0, category="query"),
            "crm:find": ToolOverride(
                cache_ttl=60.0,
                rate_limit=RateLimit(1, 1000),
                speech_field="name",
                slow_threshold=2.0,
                description="Finds.",
                tags=("a",),
            ),
        }
    )
    catalog = Catalog(["crm"], overrides=overrides)
    catalog.replace("crm", an_offer(a_tool("crm:find"), a_tool("crm:drop")))
    find, drop = catalog.snapshot.tools["crm:find"], catalog.snapshot.tools["crm:drop"]
    assert (find.cache_ttl, drop.cache_ttl) == (60.0, 5.0)
    assert find.permissions == drop.permissions == {"crm:use"}
    assert (find.speech.field, find.description, find.tags) == ("name", "Finds.", ("a",))
    assert find.slow == Slow(threshold=2.0, message="One moment, please.")
    assert overrides.matching(find) == ("crm:*", "crm:find")


@pytest.mark.requirement("G2", "I7")
def test_slow_message_overrides_merge() -> None:
    own = a_tool(slow=Slow(threshold=3.0, message="Wait."))
    assert ToolOverride(slow_message="Looking.").apply(own).slow == Slow(threshold=3.0, message="Looking.")
    assert ToolOverride(slow_threshold=1.0).apply(own).slow == Slow(threshold=1.0, message="Wait.")
    assert ToolOverride(slow_message="Looking.").apply(a_tool()).slow is None


@pytest.mark.requirement("A1")
@pytest.mark.parametrize("local", ["two:colons", "", "hid\u200bden", " edge"])
def test_invalid_name_withholds_the_tool(local: str) -> None:
    catalog = Catalog(["x"])
    catalog.replace("x", an_offer(a_tool(f"x:{local}"), a_tool("x:good")))
    assert list(catalog.snapshot.tools) == ["x:good"]
    assert [lost.name for lost in catalog.snapshot.withheld] == [f"x:{local}"]


def test_invalid_schema_withholds_only_its_tool() -> None:
    catalog = Catalog(["x"])
    bad = a_tool("x:bad", input_schema={"$ref": "http://127.0.0.1:1/schema"})
    worse = a_tool("x:worse", output_schema={"type": "object", "$ref": "file:///etc/passwd"})
    catalog.replace("x", an_offer(bad, worse, a_tool("x:good")))
    assert list(catalog.snapshot.tools) == ["x:good"]
    assert {lost.name for lost in catalog.snapshot.withheld} == {"x:bad", "x:worse"}


def test_missing_root_type_is_repaired() -> None:
    catalog = Catalog(["x"])
    catalog.replace("x", an_offer(a_tool("x:odd", input_schema={"properties": {}})))
    assert catalog.snapshot.tools["x:odd"].input_schema["type"] == "object"
    assert "x:odd" in catalog.snapshot.repaired


def test_snapshot_swap_notifies_listeners() -> None:
    catalog, heard = Catalog(["x", "y"]), list[Snapshot]()
    catalog.listen(heard.append)
    catalog.replace("x", an_offer(a_tool("x:a")))
    before = catalog.snapshot
    catalog.replace("y", an_offer(a_tool("y:b")))
    assert list(before.tools) == ["x:a"]
    assert list(catalog.snapshot.tools) == ["x:a", "y:b"]
    assert [each.version for each in heard] == [1, 2]
    catalog.replace("x", an_offer())
    assert list(catalog.snapshot.tools) == ["y:b"]


@pytest.mark.requirement("A4")
def test_flat_name_of_two_tools_finds_its_owner() -> None:
    catalog = Catalog(["a", "b"])
    catalog.replace("b", an_offer(a_tool("b:read", family="mcp")))
    catalog.replace("a", an_offer(a_tool("a:read", family="mcp")))
    assert [tool.name for tool in catalog.snapshot.find("read")] == ["a:read", "b:read"]


@pytest.mark.requirement("A3")
@given(st.permutations(["a", "b", "c"]), st.sets(st.sampled_from("abc")))
def test_names_are_stable_as_sources_come_and_go(order: list[str], away: set[str]) -> None:
    def tools(source: str) -> list[Tool]:
        return [a_tool(f"{source}:read", family="mcp"), a_tool(f"{source}:only-{source}", family="app")]

    catalog = Catalog(["a", "b", "c"])
    for source in order:
        catalog.replace(source, an_offer(*tools(source)))
    full = served(catalog)
    for source in away:
        catalog.replace(source, an_offer())
    kept = served(catalog)
    assert kept.items() <= full.items()
    assert {name.partition(":")[0] for name in kept} == set("abc") - away


@pytest.mark.requirement("F8")
def test_full_catalog_keeps_the_search_tool(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("toolcrib.catalog.catalog.MAX_CATALOG_TOOLS", 3)
    catalog = Catalog(["big", "crib"])
    catalog.replace("big", an_offer(*(a_tool(f"big:tool_{number}") for number in range(3))))
    assert catalog.snapshot.withheld == ()
    catalog.replace("crib", an_offer(a_tool("crib:search_tools", family="core")))
    assert list(served(catalog)) == ["big:tool_0", "big:tool_1", "crib:search_tools"]
    (lost,) = catalog.snapshot.withheld
    assert lost.name == "big:tool_2"
    assert matches("catalog", "too many tools", lost.reason)


@pytest.mark.requirement("A4", "I1")
@pytest.mark.parametrize(
    "later", ["com_example.notes:note", "com.example:notes_note", "com.example-notes:note"]
)
def test_app_cannot_take_a_name_of_another_app(later: str) -> None:
    catalog = Catalog(["apps"])
    first, second = a_tool("com.example_notes:note", family="app"), a_tool(later, family="app")
    catalog.replace("apps", an_offer(first))
    for offered in ((first, second), (second, first)):
        catalog.replace("apps", an_offer(*offered))
        assert served(catalog) == {"com.example_notes:note": "com_example_notes_note"}
        assert [lost.name for lost in catalog.snapshot.withheld] == [later]
    catalog.replace("apps", an_offer(second))
    assert served(catalog) == {later: "com_example_notes_note"}


@pytest.mark.requirement("A4", "I1")
def test_operator_source_takes_a_name_from_an_app() -> None:
    catalog = Catalog(["github", "apps"])
    sly, real = a_tool("mcp.github:create", family="app"), a_tool("github:create", family="mcp")
    catalog.replace("apps", an_offer(sly))
    assert served(catalog) == {"mcp.github:create": "mcp_github_create"}
    catalog.replace("github", an_offer(real))
    assert served(catalog) == {"github:create": "mcp_github_create"}
