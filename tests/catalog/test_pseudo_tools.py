"""Resources and prompts enter the catalog as pseudo-tools; their changes are catalog changes."""

from tests.gateway.resource_host import materials
from toolcrib.catalog import PSEUDO_TOOL_NAMES, Catalog, Overrides, Snapshot, ToolOverride
from toolcrib.interfaces import Offer, SourceResources
from toolcrib.model import RateLimit
from toolcrib.testing import a_tool

FULL = materials(["x://1"], ["x://{n}"], ["greet"])


def offered(besides: SourceResources | None) -> Offer:
    return Offer(tools=[a_tool("a:t", family="mcp")], materials=besides)


def test_each_kind_has_pseudo_tools() -> None:
    catalog = Catalog(["a"])
    catalog.replace("a", offered(FULL))
    assert catalog.snapshot.pseudo_tools.keys() == {f"a:{local}" for local in PSEUDO_TOOL_NAMES}
    assert list(catalog.snapshot.tools) == ["a:t"]
    assert not catalog.snapshot.find("a:resources/read")
    catalog.replace("a", offered(materials(["x://1"])))
    assert {
        pseudo_tool.local.partition("/")[0] for pseudo_tool in catalog.snapshot.pseudo_tools.values()
    } == {"resources"}
    catalog.replace("a", offered(SourceResources()))
    assert (catalog.snapshot.pseudo_tools, list(catalog.snapshot.holdings)) == ({}, ["a"])
    catalog.replace("a", offered(None))
    assert catalog.snapshot.holdings == {}


def test_pseudo_tool_changes_are_catalog_changes() -> None:
    heard: list[Snapshot] = []
    catalog = Catalog(["a", "b"])
    catalog.listen(heard.append)
    catalog.replace("a", offered(FULL))
    catalog.replace("a", offered(materials(["x://1"], ["x://{n}"], ["greet"])))
    assert [each.version for each in heard] == [1]
    catalog.replace("a", offered(materials(["x://1", "x://2"], ["x://{n}"], ["greet"])))
    catalog.replace("b", Offer(tools=(), materials=FULL))
    catalog.arrange(["b", "a"])
    catalog.remove("a")
    assert [list(each.holdings) for each in heard[1:]] == [["a"], ["a", "b"], ["b", "a"], ["b"]]


def test_pseudo_tools_of_a_source_that_is_down() -> None:
    catalog = Catalog(["a"])
    catalog.replace("a", offered(FULL), degraded=True)
    assert all(pseudo_tool.degraded for pseudo_tool in catalog.snapshot.pseudo_tools.values())
    catalog.degrade("a", False)
    assert not any(pseudo_tool.degraded for pseudo_tool in catalog.snapshot.pseudo_tools.values())


def test_overrides_apply_to_pseudo_tools() -> None:
    said = {
        "a:*": ToolOverride(category="query", cache_ttl=60, expose_as="same", aliases=("t",)),
        "a:resources/read": ToolOverride(permissions=frozenset({"docs:read"}), rate_limit=RateLimit(1, 1000)),
    }
    catalog = Catalog(["a"], overrides=Overrides(said))
    catalog.replace("a", offered(FULL))
    pseudo_tools = catalog.snapshot.pseudo_tools
    for local in ("resources/read", "resources/complete", "resources/subscribe"):
        pseudo_tool = pseudo_tools[f"a:{local}"]
        assert (pseudo_tool.permissions, pseudo_tool.rate_limit) == (
            frozenset({"docs:read"}),
            RateLimit(1, 1000),
        )
        assert (pseudo_tool.name, pseudo_tool.exposed, pseudo_tool.category) == (
            f"a:{local}",
            f"a:{local}",
            "query",
        )
        assert (pseudo_tool.cache_ttl, pseudo_tool.aliases, pseudo_tool.idempotent) == (None, (), True)
    assert pseudo_tools["a:prompts/get"].permissions == frozenset()
    before = pseudo_tools["a:resources/read"].fingerprint
    catalog.override(Overrides({}))
    assert catalog.snapshot.pseudo_tools["a:resources/read"].fingerprint != before
