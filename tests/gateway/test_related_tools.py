"""Related tools: followers first, then shared tags, only what the caller may see."""

import pytest

from toolcrib.gateway.related_tools import (
    RelatedTool,
    RelatedTools,
    TagIndex,
    example_of,
    kebab_case,
    next_actions,
    related_resources,
)
from toolcrib.model import Category, Deprecation, Example, Tool
from toolcrib.model.hints import NextAction, Resource
from toolcrib.testing import a_tool


def _tool(name: str, *tags: str, **fields: object) -> Tool:
    example = Example(description=f"How {name} is used", params={"id": 1})
    return a_tool(name, **{"tags": tags, "category": "query", "examples": (example,), **fields})


def seeing(*tools: Tool) -> RelatedTools:
    """The related tools of a caller who may use all but the secret tool."""
    everything = {tool.name: tool for tool in (*tools, _tool("secret:tool", "cards", "content"))}
    return RelatedTools(TagIndex(everything), lambda tool: tool.source != "secret")


CARD = _tool("cards:get-card", "cards", "content")
DECK = _tool("cards:get-deck", "cards")
TWIN = _tool("cards:show-card", "cards", "content")
DELETE = _tool("cards:delete-card", "cards", "content", category="mutation", destructive=True)
MAIL = _tool("mail:send", "mail", category="mutation")


@pytest.mark.requirement("E9")
def test_most_shared_tags_come_first_with_example() -> None:
    near = seeing(CARD, DECK, TWIN, MAIL).of(CARD, ())
    assert [each.tool for each in near] == [TWIN, DECK]
    action = next_actions(near)[0]
    assert (action.action, action.data) == ("show-card", {"tool": "cards:show-card", "arguments": {"id": 1}})
    assert action.description == "How cards:show-card is used"
    assert [(each.type, each.id) for each in related_resources(near)] == [
        ("tool", TWIN.name),
        ("tool", DECK.name),
    ]


@pytest.mark.requirement("E9")
def test_visible_followers_come_first() -> None:
    followers = (("mail:send", 0.8), ("secret:tool", 0.2))
    near = seeing(CARD, DECK, MAIL).of(CARD, followers)
    assert [each.tool for each in near] == [MAIL, DECK]
    first = next_actions(near)[0]
    assert (first.action, first.priority, first.confidence) == ("send", "medium", 0.8)
    assert seeing(CARD).of(CARD, followers) == ()


@pytest.mark.requirement("E9")
def test_mutations_are_not_suggested_by_tags_alone() -> None:
    near = seeing(CARD, DELETE).of(CARD, ())
    assert [each.id for each in related_resources(near)] == [DELETE.name]
    assert next_actions(near) == ()
    followed = seeing(CARD, DELETE).of(CARD, ((DELETE.name, 1.0),))
    assert [each.action for each in next_actions(followed)] == ["delete-card"]


def test_deprecated_down_or_changed_tools_are_excluded() -> None:
    gone = _tool("cards:old", "cards", deprecated=Deprecation(since="1.0.0"))
    down = _tool("cards:down", "cards", degraded=True)
    changed = _tool("cards:changed", "cards", changed="notify")
    near = seeing(CARD, gone, down, changed).of(CARD, (("cards:old", 1.0),))
    assert near == ()


def test_too_long_example_is_left_out() -> None:
    long = a_tool(examples=(Example(description="…", params={"text": "x" * 600}),))
    assert example_of(long) is None
    assert example_of(a_tool()) is None
    assert example_of(CARD) == {"id": 1}


def test_action_names_are_kebab_case() -> None:
    assert kebab_case("get_Current.time/now") == "get-current-time-now"
    assert kebab_case("  Say \u201chello\u201d! ") == "say-hello"
    assert kebab_case("\u4f60\u597d") == "call-tool"


# --- limits and texts ---


GET = a_tool("cards:get", tags=("cards", "content"), category="query")


def _tagged(name: str, *tags: str) -> Tool:
    return a_tool(name, tags=tags, category="query")


def _seeing_all(*tools: Tool) -> RelatedTools:
    return RelatedTools(TagIndex({tool.name: tool for tool in tools}), lambda _: True)


def test_relevance_is_the_rounded_share_of_shared_tags() -> None:
    third = _tagged("cards:third", "cards", "a")
    half = _tagged("cards:half", "cards")
    whole = _tagged("cards:whole", "content", "cards")
    near = _seeing_all(third, half, whole).of(GET, ())
    assert near == (
        RelatedTool(whole, 1.0, followed=False),
        RelatedTool(half, 0.5, followed=False),
        RelatedTool(third, 0.33, followed=False),
    )


def test_tool_with_unique_tags_has_no_related_tools() -> None:
    assert _seeing_all(_tagged("mail:send", "mail")).of(GET, ()) == ()


def test_candidates_per_tag_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolcrib.gateway.related_tools._MAX_COMPARED_TOOLS", 2)
    first, second, third = (_tagged(f"cards:{number}", "cards") for number in range(3))
    assert [each.tool for each in _seeing_all(first, second, third).of(GET, ())] == [first, second]


def test_at_most_four_with_followers_first() -> None:
    alike = [_tagged(f"cards:{number}", "cards") for number in range(6)]
    followed = [a_tool(f"mail:{number}") for number in range(6)]
    visible = _seeing_all(*alike, *followed)
    for count in range(7):
        near = visible.of(GET, tuple((tool.name, 0.1) for tool in followed[:count]))
        assert len(near) == 4
        assert [each.tool for each in near if each.followed] == followed[: min(count, 4)]
        assert [each.tool for each in near if not each.followed] == alike[: 4 - min(count, 4)]


def test_related_label_is_title_or_name() -> None:
    titled, plain = a_tool("cards:a", title="The first"), a_tool("cards:b")
    near = (RelatedTool(titled, 0.4, followed=True), RelatedTool(plain, 0.2, followed=False))
    assert related_resources(near) == (
        Resource(type="tool", id="cards:a", label="The first", relevance=0.4),
        Resource(type="tool", id="cards:b", label="b", relevance=0.2),
    )


@pytest.mark.parametrize("length, fits", [(512, True), (513, False)])
def test_example_size_limit(length: int, fits: bool) -> None:
    params = {"text": "x" * (length - len('{"text":""}'))}
    tool = a_tool(examples=(Example(description="long", params=params),))
    assert example_of(tool) == (params if fits else None)


def test_query_action_is_reversible_exploration() -> None:
    example = Example(description="The card of the day", params={"id": 7})
    tool = a_tool("cards:get_card", category="query", examples=(example,))
    assert next_actions([RelatedTool(tool, 0.5, followed=True)]) == (
        NextAction(
            action="get-card",
            priority="medium",
            data={"tool": "cards:get_card", "arguments": {"id": 7}},
            description="The card of the day",
            category="exploration",
            reversible=True,
            confidence=0.5,
        ),
    )


def test_mutation_action_has_first_line_and_no_category() -> None:
    tool = a_tool("mail:send", category="mutation", description="Send a letter.\nIt is gone\nthen.")
    assert next_actions([RelatedTool(tool, 0.4, followed=True)]) == (
        NextAction(
            action="send",
            priority="low",
            data={"tool": "mail:send"},
            description="Send a letter.",
            category=None,
            reversible=None,
            confidence=0.4,
        ),
    )


@pytest.mark.parametrize(
    "relevance, followed, priority",
    [(0.5, True, "medium"), (0.49, True, "low"), (1.0, False, "low")],
)
def test_action_priority_needs_half_of_the_callers(relevance: float, followed: bool, priority: str) -> None:
    tool = a_tool("cards:get", category="query", examples=(Example(description="", params={}),))
    (action,) = next_actions([RelatedTool(tool, relevance, followed)])
    assert (action.priority, action.description) == (priority, None)


# --- replacements of deprecated tools ---


NEW = a_tool("cards:new", aliases=("older",))


def _replacement_shown(replacement: str | None, *, sees: bool = True) -> str | None:
    """The replacement of `cards:old` that an audience sees."""
    old = a_tool("cards:old", deprecated=Deprecation(since="1.0.0", replacement=replacement))
    others = (a_tool("mail:new"), a_tool("cards:other", aliases=("oldest",)), NEW)
    tagged = TagIndex({tool.name: tool for tool in others})
    told = RelatedTools(tagged, lambda tool: sees or tool.name != NEW.name).without_hidden_replacement(old)
    assert told.deprecated is not None
    assert told.deprecated.since == "1.0.0"
    return told.deprecated.replacement


@pytest.mark.parametrize("category, offered", [("query", True), ("mutation", False)])
def test_long_action_description_is_truncated(category: Category, offered: bool) -> None:
    long = Example(description="y" * 200, params={})
    tool = a_tool("cards:get", category=category, examples=(long,))
    actions = next_actions([RelatedTool(tool, 0.3, followed=False)])
    assert [action.description for action in actions] == (["y" * 160] if offered else [])


@pytest.mark.requirement("E13")
@pytest.mark.parametrize(
    "replacement", ["cards:new", "new", "older", "cards:older", "cards:v1:older"], ids=lambda name: name
)
def test_replacement_is_shown_if_visible(replacement: str) -> None:
    known = replacement != "cards:v1:older"
    assert _replacement_shown(replacement) == (replacement if known else None)
    assert _replacement_shown(replacement, sees=False) is None


@pytest.mark.parametrize("replacement", ["cards:never", "never", "new:never"])
def test_unknown_replacement_is_hidden(replacement: str) -> None:
    assert _replacement_shown(replacement) is None


def test_tool_without_replacement_is_unchanged() -> None:
    assert _replacement_shown(None, sees=False) is None
    assert _seeing_all(GET).without_hidden_replacement(GET) is GET
    old = a_tool("cards:old", deprecated=Deprecation(since="1.0.0", replacement="cards:new"))
    assert _seeing_all(NEW).without_hidden_replacement(old) is old


def test_degraded_followers_are_excluded() -> None:
    down = a_tool("cards:down", degraded=True)
    assert _seeing_all(down, NEW).of(GET, (("cards:down", 0.9), ("cards:new", 0.1), ("cards:gone", 0.1))) == (
        RelatedTool(NEW, 0.1, followed=True),
    )
