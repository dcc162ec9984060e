"""Related tools: what callers use next, only what the caller may see."""

import pytest

from toolcrib.gateway.related_tools import (
    RelatedTool,
    RelatedTools,
    kebab_case,
    related_resources,
)
from toolcrib.model import Deprecation, Tool
from toolcrib.model.hints import Resource
from toolcrib.testing import a_tool


def seeing(*tools: Tool) -> RelatedTools:
    """The related tools of a caller who may use all but the secret tool."""
    everything = {tool.name: tool for tool in (*tools, a_tool("secret:tool", tags=("cards",)))}
    return RelatedTools(everything, lambda tool: tool.source != "secret")


CARD = a_tool("cards:get-card", tags=("cards", "content"), category="query")
DECK = a_tool("cards:get-deck", tags=("cards",), category="query")
MAIL = a_tool("mail:send", category="mutation")


@pytest.mark.requirement("E9")
def test_visible_followers_are_related() -> None:
    followers = (("mail:send", 0.8), ("secret:tool", 0.2))
    assert seeing(CARD, DECK, MAIL).of(followers) == (RelatedTool(MAIL, 0.8),)
    assert seeing(CARD).of(followers) == ()


@pytest.mark.requirement("E18")
def test_shared_tags_relate_no_tools() -> None:
    assert seeing(CARD, DECK).of(()) == ()


def test_deprecated_down_or_changed_tools_are_excluded() -> None:
    gone = a_tool("cards:old", deprecated=Deprecation(since="1.0.0"))
    down = a_tool("cards:down", degraded=True)
    changed = a_tool("cards:changed", changed="notify")
    followers = tuple((tool.name, 0.3) for tool in (gone, down, changed))
    assert seeing(gone, down, changed).of(followers) == ()


def test_at_most_four_related_tools() -> None:
    followed = [a_tool(f"mail:{number}") for number in range(6)]
    followers = tuple((tool.name, 0.1) for tool in followed)
    assert [each.tool for each in seeing(*followed).of(followers)] == followed[:4]


def test_action_names_are_kebab_case() -> None:
    assert kebab_case("get_Current.time/now") == "get-current-time-now"
    assert kebab_case("  Say \u201chello\u201d! ") == "say-hello"
    assert kebab_case("\u4f60\u597d") == "call-tool"


def test_related_label_is_title_or_name() -> None:
    titled, plain = a_tool("cards:a", title="The first"), a_tool("cards:b")
    assert related_resources((RelatedTool(titled, 0.4), RelatedTool(plain, 0.2))) == (
        Resource(type="tool", id="cards:a", label="The first", relevance=0.4),
        Resource(type="tool", id="cards:b", label="b", relevance=0.2),
    )


# --- replacements of deprecated tools ---


NEW = a_tool("cards:new", aliases=("older",))


def _replacement_shown(replacement: str | None, *, sees: bool = True) -> str | None:
    """The replacement of `cards:old` that an audience sees."""
    old = a_tool("cards:old", deprecated=Deprecation(since="1.0.0", replacement=replacement))
    others = (a_tool("mail:new"), a_tool("cards:other", aliases=("oldest",)), NEW)
    tools = {tool.name: tool for tool in others}
    told = RelatedTools(tools, lambda tool: sees or tool.name != NEW.name).without_hidden_replacement(old)
    assert told.deprecated is not None
    assert told.deprecated.since == "1.0.0"
    return told.deprecated.replacement


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
    assert seeing(CARD).without_hidden_replacement(CARD) is CARD
    old = a_tool("cards:old", deprecated=Deprecation(since="1.0.0", replacement="cards:new"))
    assert seeing(NEW).without_hidden_replacement(old) is old
