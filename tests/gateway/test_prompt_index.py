"""Prompt names per style resolve to their prompt."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.gateway.resource_host import holding
from toolcrib.errors import Refused
from toolcrib.gateway.resource_index import PromptIndex

NAMES = st.lists(
    st.one_of(
        st.sampled_from(["greet", "Greet", "GREET", "b_greet", "mcp_a_greet", "ß", "日本"]),
        st.text("aB_- ", min_size=1),
    ),
    unique=True,
    max_size=5,
)


def prompts(**lists: list[str]) -> PromptIndex:
    return PromptIndex([holding(source, (), (), names, has_prompts=True) for source, names in lists.items()])


@given(NAMES, NAMES, NAMES, st.sampled_from(["flat", "safe", "qualified"]))
def test_listed_name_resolves_to_its_source(
    one: list[str], two: list[str], three: list[str], style: str
) -> None:
    there = prompts(a=one, a_b=two, b=three)
    owners = [(source, name) for source, names in (("a", one), ("a_b", two), ("b", three)) for name in names]
    listed = there.listed(style)
    assert len({each["name"] for each in listed}) == len(listed)
    for shown, owner in zip(listed, owners, strict=True):
        found = there.find(shown["name"])
        assert found is not None
        assert (found.holding.source, found.name) == owner


@pytest.mark.parametrize(
    "style, names",
    [
        ("safe", ["mcp_git_review_code", "mcp_git_greet", "mcp_hub_greet"]),
        ("flat", ["review-code", "mcp_git_greet", "mcp_hub_greet"]),
        ("qualified", ["git:review-code", "git:greet", "hub:greet"]),
    ],
)
def test_prompt_names_per_style(style: str, names: list[str]) -> None:
    there = prompts(git=["review-code", "greet"], hub=["greet"])
    assert [each["name"] for each in there.listed(style)] == names


@pytest.mark.requirement("A5")
@pytest.mark.parametrize(
    "name", ["git:review-code", "mcp_git_review_code", "review-code", "Review_Code", "MCP-git-review-code"]
)
def test_every_name_of_a_prompt_resolves(name: str) -> None:
    found = prompts(git=["review-code", "greet"], hub=["greet"]).find(name)
    assert found is not None
    assert (found.holding.source, found.name) == ("git", "review-code")


def test_ambiguous_name_is_refused() -> None:
    there = prompts(git=["greet"], hub=["greet"])
    with pytest.raises(Refused, match="git:greet, hub:greet"):
        there.find("greet")
    assert there.find("nothing") is None
    assert there.near("git:gret")[0] == "git:greet"


def test_fingerprint_differs_between_lists() -> None:
    assert prompts(a=["x"]).digest("safe") == prompts(a=["x"]).digest("safe")
    assert (
        len(
            {
                prompts(a=["x"]).digest("safe"),
                prompts(a=["x"]).digest("flat"),
                prompts(a=["y"]).digest("safe"),
            }
        )
        == 3
    )
