"""Every resource is listed under a URI that resolves to it alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.gateway.resource_host import holding
from toolcrib.catalog import SourceExtras
from toolcrib.gateway.resource_index import ResourceIndex
from toolcrib.model import JsonObject

SOURCES = ("a", "b", "c")
URIS = st.one_of(
    st.sampled_from(
        ["x://1", "x://2", "toolcrib://a/x://1", "toolcrib://b/x://1", "toolcrib://z/q", "toolcrib://a/"]
    ),
    st.text("ab:/?#% ", min_size=1, max_size=8),
)
LISTS = st.lists(URIS, unique=True, max_size=5)
TEMPLATES = st.lists(
    st.sampled_from(["x://{n}", "x://{+n}", "{+n}", "toolcrib://a/{+n}", "b{", "y://1"]),
    unique=True,
    max_size=3,
)
SHELVES = st.tuples(*[st.tuples(LISTS, TEMPLATES)] * 3)


def view(*shelves: tuple[list[str], list[str]]) -> ResourceIndex:
    return ResourceIndex(
        [holding(source, *shelf, has_resources=True) for source, shelf in zip(SOURCES, shelves, strict=False)]
    )


def owned(resources: ResourceIndex, key: str) -> list[tuple[SourceExtras, JsonObject]]:
    every = resources.holdings.values()
    if key == "uri":
        return [(each, one) for each in every for one in each.materials.resources]
    return [(each, one) for each in every for one in each.materials.templates]


@given(SHELVES)
def test_listed_name_resolves_to_its_source(shelves: tuple[tuple[list[str], list[str]], ...]) -> None:
    resources = view(*shelves)
    listed = resources.listed()
    assert len({each["uri"] for each in listed}) == len(listed)
    for shown, (owner, own) in zip(listed, owned(resources, "uri"), strict=True):
        found = resources.find(shown["uri"])
        assert found is not None
        assert (found.holding.source, found.name) == (owner.source, own["uri"])
        assert resources.spelling(owner)(own["uri"]) == shown["uri"]


@given(SHELVES)
def test_listed_template_resolves_to_its_source(shelves: tuple[tuple[list[str], list[str]], ...]) -> None:
    resources = view(*shelves)
    for shown, (owner, own) in zip(
        resources.listed_templates(), owned(resources, "uriTemplate"), strict=True
    ):
        found = resources.find_template(shown["uriTemplate"])
        assert found is not None
        assert (found.holding.source, found.name) == (owner.source, own["uriTemplate"])


@given(SHELVES, URIS)
def test_uri_with_source_prefix_resolves_to_it(
    shelves: tuple[tuple[list[str], list[str]], ...], uri: str
) -> None:
    found = view(*shelves).find(f"toolcrib://b/{uri}")
    assert found is not None
    assert (found.holding.source, found.name) == ("b", uri)


def test_the_first_to_list_a_uri_owns_it() -> None:
    resources = view((["x://1"], []), (["x://1", "x://2"], []))
    assert [each["uri"] for each in resources.listed()] == ["x://1", "toolcrib://b/x://1", "x://2"]


@pytest.mark.requirement("I5")
def test_source_cannot_list_uris_of_another() -> None:
    resources = view((["x://1"], []), (["toolcrib://a/x://1"], []))
    assert [each["uri"] for each in resources.listed()] == ["x://1", "toolcrib://b/toolcrib://a/x://1"]


def test_expanded_template_resolves_to_its_source() -> None:
    resources = view(([], ["x://{n}"]), ([], ["x://{n}", "{+any}"]), ([], ["x://one/{n}"]))
    shown = [each["uriTemplate"] for each in resources.listed_templates()]
    assert shown == ["x://{n}", "toolcrib://b/x://{n}", "{+any}", "x://one/{n}"]
    cases = [
        ("x://7", "a", "x://7"),
        ("toolcrib://b/x://a%20b", "b", "x://a%20b"),
        ("x://one/7", "c", "x://one/7"),
    ]
    for uri, source, own in [*cases, ("else", "b", "else")]:
        found = resources.find(uri)
        assert found is not None
        assert (found.holding.source, found.name) == (source, own)


def test_unlisted_uri_goes_to_the_only_source() -> None:
    alone, two = view((["x://1"], [])), view((["x://1"], []), (["x://2"], []))
    found = alone.find("y://9")
    assert found is not None
    assert found.name == "y://9"
    assert alone.find("y://9", guess=False) is None
    assert two.find("y://9") is None
    assert view().find("y://9") is None


def test_fingerprint_differs_between_lists() -> None:
    one, other = view((["x://1"], [])), view((["x://1"], ["x://{n}"]))
    assert one.digest == view((["x://1"], [])).digest != other.digest


def test_template_matching_per_answer_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    templates = [f"x://{n}/{{i}}" for n in range(9)]
    resources = view(([], templates), (["y://1"], []))
    monkeypatch.setattr("toolcrib.gateway.resource_index.MATCH_BUDGET_CHARACTERS", 1_200)
    spell = resources.spelling(resources.holdings["a"])
    said = [spell(f"x://1/{n}") for n in range(50)]
    assert said[:3] == ["x://1/0", "x://1/1", "x://1/2"]
    assert said[3:] == [f"toolcrib://a/x://1/{n}" for n in range(3, 50)]
    links = resources.spelling(resources.holdings["a"], links=True)
    assert {links("https://example.com/") for _ in range(9)} == {"https://example.com/"}
