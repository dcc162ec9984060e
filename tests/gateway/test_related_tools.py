"""Which tools are suggested next: what followed, what is alike, and only what this caller may see."""

import pytest

from toolcrib.gateway.related_tools import RelatedTools, TagIndex, example_of, kebab, next_actions, related
from toolcrib.model import Deprecation, Example, Tool
from toolcrib.testing import a_tool


def _tool(name: str, *tags: str, **fields: object) -> Tool:
    example = Example(description=f"How {name} is used", params={"id": 1})
    return a_tool(name, **{"tags": tags, "category": "query", "examples": (example,), **fields})


def seeing(*tools: Tool) -> RelatedTools:
    """What a caller sees who may use these, and not the one that is secret."""
    everything = {tool.name: tool for tool in (*tools, _tool("secret:tool", "cards", "content"))}
    return RelatedTools(TagIndex(everything), lambda tool: tool.source != "secret")


CARD = _tool("cards:get-card", "cards", "content")
DECK = _tool("cards:get-deck", "cards")
TWIN = _tool("cards:show-card", "cards", "content")
DELETE = _tool("cards:delete-card", "cards", "content", category="mutation", destructive=True)
MAIL = _tool("mail:send", "mail", category="mutation")


@pytest.mark.requirement("E9")
def test_what_shares_most_tags_comes_first_and_shows_an_example() -> None:
    near = seeing(CARD, DECK, TWIN, MAIL).of(CARD, ())
    assert [each.tool for each in near] == [TWIN, DECK]
    action = next_actions(near)[0]
    assert (action.action, action.data) == ("show-card", {"tool": "cards:show-card", "arguments": {"id": 1}})
    assert action.description == "How cards:show-card is used"
    assert [(each.type, each.id) for each in related(near)] == [("tool", TWIN.name), ("tool", DECK.name)]


@pytest.mark.requirement("E9")
def test_what_followed_in_the_past_comes_first_and_only_if_it_can_be_seen() -> None:
    followers = (("mail:send", 0.8), ("secret:tool", 0.2))
    near = seeing(CARD, DECK, MAIL).of(CARD, followers)
    assert [each.tool for each in near] == [MAIL, DECK]
    first = next_actions(near)[0]
    assert (first.action, first.priority, first.confidence) == ("send", "medium", 0.8)
    assert seeing(CARD).of(CARD, followers) == ()


@pytest.mark.requirement("E9")
def test_what_changes_something_is_never_suggested_for_its_tags_alone() -> None:
    near = seeing(CARD, DELETE).of(CARD, ())
    assert [each.id for each in related(near)] == [DELETE.name]
    assert next_actions(near) == ()
    followed = seeing(CARD, DELETE).of(CARD, ((DELETE.name, 1.0),))
    assert [each.action for each in next_actions(followed)] == ["delete-card"]


def test_tools_on_their_way_out_down_or_changed_are_not_suggested() -> None:
    gone = _tool("cards:old", "cards", deprecated=Deprecation(since="1.0.0"))
    down = _tool("cards:down", "cards", degraded=True)
    changed = _tool("cards:changed", "cards", changed="notify")
    near = seeing(CARD, gone, down, changed).of(CARD, (("cards:old", 1.0),))
    assert near == ()


def test_an_example_that_is_too_long_to_travel_is_left_out() -> None:
    long = a_tool(examples=(Example(description="…", params={"text": "x" * 600}),))
    assert example_of(long) is None
    assert example_of(a_tool()) is None
    assert example_of(CARD) == {"id": 1}


def test_actions_are_spelled_in_kebab_case() -> None:
    assert kebab("get_Current.time/now") == "get-current-time-now"
    assert kebab("  Say \u201chello\u201d! ") == "say-hello"
    assert kebab("\u4f60\u597d") == "call-tool"
