"""Flat names belong to their first claimant, in any start order."""

import logging
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.catalog import Catalog, name_claims
from toolcrib.catalog.name_claims import FIRST_OFFER_SECONDS, FlatNameClaims, owner_first
from toolcrib.interfaces import Offer
from toolcrib.model import Family, Tool
from toolcrib.testing import a_tool

pytestmark = pytest.mark.requirement("A4")


class Kept:
    """Stored claims that outlive a catalog."""

    def __init__(self, *sources: str) -> None:
        self.claims: dict[str, str] = {}
        self.catalog = Catalog(())
        self.start(*sources)

    def start(self, *sources: str, added: Collection[str] = ()) -> None:
        """Restart with the stored claims."""
        self.catalog = Catalog(sources, added=added, claims=dict(self.claims), claimed=self._claimed)

    def _claimed(self, fresh: Mapping[str, str], stale: Collection[str]) -> None:
        for name in stale:
            self.claims.pop(name)
        self.claims.update(fresh)

    def offer(self, source: str, *names: str, family: Family = "mcp") -> None:
        tools = [a_tool(f"{source}:{name}", family=family, exposed="") for name in names]
        self.catalog.replace(source, Offer(tools=tools))

    def owner(self, name: str) -> str | None:
        """Return the owner of a name, present or not."""
        found = self.catalog.snapshot.claimants(name)
        return found[0].name if found else None

    def found(self, name: str) -> list[str]:
        return [tool.name for tool in self.catalog.snapshot.find(name)]


@given(st.permutations(["files", "repo", "evil"]))
def test_config_order_decides_at_first_start(order: list[str]) -> None:
    kept = Kept("files", "repo", "evil")
    for source in order:
        kept.offer(source, "read", "write")
    assert [kept.owner(name) for name in ("read", "write")] == ["files:read", "files:write"]
    kept.start("evil", "repo", "files")
    for source in reversed(order):
        kept.offer(source, "read", "write")
    assert kept.owner("read") == "files:read", "another order of the config later changes nothing"


def test_later_claims_do_not_take_a_name() -> None:
    kept = Kept("evil", "files")
    kept.offer("evil", "harmless")
    kept.offer("files", "read-file")
    kept.offer("evil", "harmless", "read_file", "Read-File")
    for spelling in ("read-file", "read_file", "Read-File", "READ_FILE"):
        assert kept.owner(spelling) == "files:read-file"
    assert kept.owner("mcp_evil_read_file") == "evil:read_file"
    assert kept.owner("evil:read_file") == "evil:read_file"


def test_a_source_added_above_others_takes_no_names() -> None:
    kept = Kept("files")
    kept.offer("files", "read")
    kept.catalog.arrange(["evil", "files"])
    kept.offer("evil", "read")
    assert kept.owner("read") == "files:read"
    kept.start("evil", "files")
    kept.offer("evil", "read")
    assert kept.owner("read") == "files:read"


def test_offline_owner_keeps_its_name() -> None:
    kept = Kept("files", "evil")
    kept.offer("files", "read")
    kept.offer("evil", "read")
    kept.catalog.remove("files")
    assert (kept.owner("read"), kept.found("read")) == ("files:read", ["evil:read"])
    kept.start("files", "evil")
    kept.offer("evil", "read")
    assert (kept.owner("read"), kept.found("read")) == ("files:read", ["evil:read"])
    assert kept.catalog.snapshot.claimants("read")[0].exposed == "mcp_files_read"
    kept.offer("files", "read")
    assert kept.found("read") == ["files:read", "evil:read"]


@pytest.mark.parametrize("restarted", [False, True])
def test_a_source_that_leaves_the_config_frees_its_names(restarted: bool) -> None:
    kept = Kept("files", "evil")
    kept.offer("files", "read")
    kept.offer("evil", "read")
    if restarted:
        kept.start("evil")
        kept.offer("evil", "read")
    else:
        kept.catalog.remove("files")
        kept.catalog.arrange(["evil"])
    assert kept.owner("read") == "evil:read"
    assert "flat:files:read" not in kept.claims
    kept.catalog.arrange(["files", "evil"])
    kept.offer("files", "read")
    assert kept.owner("read") == "evil:read", "who comes back comes last"


def _not_kept(_: Mapping[str, str], __: Collection[str]) -> None:
    """No store."""


def test_late_first_offer_claims_from_then() -> None:
    now = 0.0
    claims = FlatNameClaims({}, ["slow", "quick"], _not_kept, clock=lambda: now)
    slow, quick = a_tool("slow:read", family="mcp"), a_tool("quick:read", family="mcp")
    claims.settle({quick.name: quick})
    now = FIRST_OFFER_SECONDS + 1
    contested = claims.settle({slow.name: slow, quick.name: quick})
    assert [tool.name for tool in contested["read"]] == ["quick:read", "slow:read"]


def test_operator_sources_precede_apps() -> None:
    kept = Kept("apps", "files")
    kept.offer("com.example", "read", family="app")
    kept.offer("com.another", "read", family="app")
    assert kept.found("read") == ["com.example:read", "com.another:read"]
    kept.offer("files", "read")
    assert kept.owner("read") == "files:read"
    kept.start("apps", "files")
    kept.offer("com.another", "read", family="app")
    kept.offer("com.example", "read", family="app")
    assert kept.owner("read") == "files:read"
    kept.catalog.arrange(["apps"])
    assert kept.found("read") == ["com.example:read", "com.another:read"]
    kept.catalog.remove("com.example")
    assert kept.owner("read") == "com.another:read", "an app that is gone keeps nothing"


@pytest.mark.parametrize("restarted", [False, True])
def test_an_added_server_takes_no_name_from_an_app(restarted: bool) -> None:
    kept = Kept("apps")
    kept.offer("com.x.cards", "review", family="app")
    if restarted:
        kept.start("evil", "apps", added=["evil"])
        kept.offer("evil", "review")
        kept.offer("com.x.cards", "review", family="app")
    else:
        kept.catalog.arrange(["evil", "apps"], ["evil"])
        kept.offer("evil", "review")
    assert kept.owner("review") == "com.x.cards:review"
    kept.start("evil", "apps", added=["evil"])
    kept.offer("com.x.cards", "review", family="app")
    kept.offer("evil", "review")
    assert kept.owner("review") == "com.x.cards:review"
    kept.catalog.remove("com.x.cards")
    assert kept.owner("review") == "evil:review", "an app that is gone keeps nothing"


def test_first_offer_of_added_server_follows_apps() -> None:
    kept = Kept("evil", "apps")
    kept.start("evil", "apps", added=["evil"])
    kept.offer("com.x.cards", "review", family="app")
    kept.offer("evil", "review")
    assert kept.owner("review") == "com.x.cards:review"


def test_an_app_takes_no_name_from_an_added_server() -> None:
    kept = Kept()
    kept.start("later", "apps", added=["later"])
    kept.offer("later", "review")
    kept.offer("com.x.cards", "review", family="app")
    assert kept.owner("review") == "later:review"
    kept.catalog.arrange(["later", "files", "apps"], ["later"])
    kept.offer("files", "review")
    assert kept.found("review") == ["later:review", "files:review", "com.x.cards:review"]


def test_config_file_precedes_apps_and_later_sources() -> None:
    kept = Kept()
    kept.start("later", "files", "apps", added=["later"])
    kept.offer("com.x.cards", "review", family="app")
    kept.offer("later", "review")
    kept.offer("files", "review")
    assert kept.found("review") == ["files:review", "com.x.cards:review", "later:review"]
    kept.catalog.remove("com.x.cards")
    kept.catalog.arrange(["later", "files", "apps"], ["later"])
    assert kept.found("review") == ["files:review", "later:review"], "the end of an app moves no name"
    kept.start("later", "files", "apps")
    kept.offer("later", "review")
    kept.offer("com.x.cards", "review", family="app")
    kept.catalog.remove("files")
    assert kept.found("review") == ["later:review", "com.x.cards:review"], "now it stands in the file"


@pytest.fixture
def most(monkeypatch: pytest.MonkeyPatch) -> int:
    """A small limit of absent names per source."""
    monkeypatch.setattr(name_claims, "MAX_ABSENT_NAMES", 4)
    return name_claims.MAX_ABSENT_NAMES


def test_names_of_renamed_tools_are_bounded(most: int) -> None:
    kept = Kept("evil", "files")
    kept.offer("files", "read", "write")
    for turn in range(30):
        kept.offer("evil", "stays", *(f"tool{turn}-{number}" for number in range(2)))
    remembered = {key for key in kept.claims if key.startswith("flat:evil:")}
    assert len(remembered) == 3 + most
    assert {"flat:evil:stays", "flat:evil:tool29-0", "flat:evil:tool27-1"} <= remembered
    assert "flat:evil:tool26-1" not in remembered, "the oldest go first"
    owners = [owner for owner in kept.claims.values() if owner.startswith("evil:")]
    assert len(owners) == len(remembered), "names exposed by no tool are given up with them"
    assert {"flat:files:read", "flat:files:write"} <= kept.claims.keys()
    assert _sizes(kept.catalog) == (len(remembered) + 2, len(remembered) + 2, len(remembered) + 2)


def _sizes(catalog: Catalog) -> tuple[int, int, int]:
    """Return how many ranks, flat names and owners of exposed names are in memory."""
    claims: Any = catalog
    return len(claims._flat._ranks), len(claims._flat._names), len(claims._claims._owners)


def test_forgotten_name_is_claimed_anew_last(most: int) -> None:
    kept = Kept("files", "other")
    kept.offer("files", "read")
    kept.offer("other", "read")
    kept.offer("files", *(f"new{number}" for number in range(most)))
    assert kept.owner("read") == "files:read"
    kept.offer("files", "newest")
    assert kept.owner("read") == "other:read"
    kept.offer("files", "newest", "read")
    assert kept.found("read") == ["other:read", "files:read"]


def test_names_of_offline_sources_are_kept(most: int) -> None:
    kept = Kept("files", "other")
    names = [f"tool{number}" for number in range(2 * most)]
    kept.offer("files", *names)
    kept.catalog.remove("files")
    kept.offer("other", *names)
    kept.start("files", "other")
    kept.offer("other", *names)
    assert {kept.owner(name) for name in names} == {f"files:{name}" for name in names}
    kept.offer("files", *names)
    assert {kept.owner(name) for name in names} == {f"files:{name}" for name in names}


def test_names_of_removed_apps_are_bounded_together(most: int) -> None:
    kept = Kept("apps")
    for number in range(30):
        tools = [a_tool(f"com.x{number}:tool", family="app", exposed="")]
        kept.catalog.replace("apps", Offer(tools=tools))
    assert len(kept.claims) == 2 * (1 + most)
    assert "flat:com.x29:tool" in kept.claims


def test_removed_source_frees_its_exposed_names() -> None:
    kept = Kept("files", "other")
    kept.offer("files", "read")
    kept.catalog.remove("files")
    kept.catalog.arrange(["other"])
    assert kept.claims == {}


def test_safe_name_precedes_flat_names() -> None:
    kept = Kept("evil", "cards")
    kept.offer("evil", "get-card", "get_card2")
    kept.offer("cards", "get-card", family="function")
    assert {kept.owner(name) for name in ("get-card", "get_card", "Get-Card")} == {"cards:get-card"}


def test_exact_name_wins_within_a_source() -> None:
    kept = Kept("files", "evil")
    kept.offer("evil", "readfile")
    kept.offer("files", "readFile", "readfile")
    assert (kept.owner("readFile"), kept.owner("readfile")) == ("files:readFile", "files:readfile")
    tools: Sequence[Tool] = [a_tool("a:X", family="mcp"), a_tool("b:x", family="mcp"), a_tool("a:x")]
    assert [tool.name for tool in owner_first("x", tools)] == ["a:x", "a:X", "b:x"]


def test_collisions_are_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    kept = Kept("files", "evil")
    names = [f"tool{number}" for number in range(50)]
    kept.offer("files", *names)
    kept.offer("evil", *names)
    snapshot = kept.catalog.snapshot
    assert len(snapshot.tools) == 100
    assert (len(snapshot.shadowed), snapshot.withheld) == (50, ())
    assert {each.source for each in snapshot.shadowed} == {"evil"}
    lines = len(caplog.records)
    assert lines <= 21
    kept.catalog.degrade("evil", True)
    assert len(caplog.records) == lines


def test_unexposable_name_stays_with_its_owner() -> None:
    kept = Kept("files", "evil")
    kept.offer("files", "東京")
    kept.offer("evil", "東京")
    kept.catalog.remove("files")
    assert kept.owner("東京") == "files:東京"
