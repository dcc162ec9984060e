"""Suggested calls of authors: resolved for the caller, complete and valid, or left out."""

from dataclasses import replace
from typing import Any

import pytest

from toolcrib import hints
from toolcrib.catalog import Snapshot
from toolcrib.catalog.catalog import index_names
from toolcrib.gateway.author_actions import ArgumentCheck, CallableTools, resolved_actions
from toolcrib.hints import Hints, NextAction
from toolcrib.model import Category, JsonObject, Tool
from toolcrib.model.hints import Impact
from toolcrib.sdk import CardId
from toolcrib.testing import a_tool

pytestmark = pytest.mark.requirement("E18")

ID = {"type": "string", "pattern": "^card_"}


def a_card_tool(name: str, category: Category = "query", *required: str, **properties: Any) -> Tool:
    schema: JsonObject = {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }
    return a_tool(name, category=category, input_schema=schema)


SEARCH = a_card_tool("cards:search", text={"type": "string"})
GET = a_card_tool("cards:get-card", "query", "cardId", cardId=ID)
DELETE = a_card_tool("cards:delete-card", "mutation", "card_id", card_id=ID)
RATE = a_card_tool("cards:rate", "mutation", "cardId", "rating", cardId=ID, rating={"type": "string"})
CLEAR = a_card_tool("cards:clear", "mutation")
SECRET = a_card_tool("cards:secret")
DOWN = replace(a_card_tool("cards:down"), degraded=True)
OTHER_GET = a_card_tool("other:get-card", "query", "cardId", cardId=ID)
MAIL = a_card_tool("mail:send", "mutation", to={"type": "string"})
ABSENT = a_card_tool("cards:absent")
TOOLS = (SEARCH, GET, DELETE, RATE, CLEAR, SECRET, DOWN, OTHER_GET, MAIL)
CARD = {"cardId": "card_7"}


def sees(tool: Tool) -> bool:
    """Whether the caller sees a tool: all but one."""
    return tool is not SECRET


def snapshot_of(*tools: Tool, absent: tuple[Tool, ...] = ()) -> Snapshot:
    names = index_names((*tools, *absent), {})
    return Snapshot(tools={tool.name: tool for tool in tools}, spellings=names)


SNAPSHOT = snapshot_of(*TOOLS, absent=(ABSENT,))


def resolved(made: Hints, author: Tool = SEARCH) -> Hints:
    return resolved_actions(made, author, CallableTools(SNAPSHOT, sees, ArgumentCheck()))


def one(action: NextAction | str, author: Tool = SEARCH) -> NextAction | None:
    """The only action after it is resolved; None if it was dropped."""
    actions = resolved(hints.found([1], next=action), author).suggested_next_actions
    return actions[0] if actions else None


def data(action: NextAction | str, author: Tool = SEARCH) -> Any:
    kept = one(action, author)
    assert kept is not None
    return kept.data


@pytest.mark.parametrize("name", ["get-card", "get_card", "cards:get-card"])
def test_a_call_gets_the_canonical_name(name: str) -> None:
    assert data(hints.call(name, CARD)) == {"tool": "cards:get-card", "arguments": CARD}


def test_a_name_means_the_tool_of_the_same_source_first() -> None:
    author = replace(SEARCH, name="other:search", source="other")
    assert data(hints.call("get-card", CARD), author)["tool"] == "other:get-card"
    assert data(hints.call("get-card", CARD))["tool"] == "cards:get-card"


def test_an_author_may_suggest_a_mutation() -> None:
    call = hints.call("rate", {**CARD, "rating": "good"})
    assert data(call)["arguments"] == {**CARD, "rating": "good"}
    assert data(hints.call("clear")) == {"tool": "cards:clear", "arguments": {}}


@pytest.mark.parametrize("arguments", [{}, {"cardId": 7}, {**CARD, "more": 1}, "card_7"])
def test_invalid_arguments_leave_the_text_without_a_call(arguments: Any) -> None:
    action = hints.action(
        "get-card", description="Read it", data={"tool": "get-card", "arguments": arguments, "why": "new"}
    )
    assert one(action) == hints.action("get-card", description="Read it", data={"why": "new"})
    assert data(hints.call("get-card", {"cardId": "deck_1"})) is None


@pytest.mark.parametrize("name", ["secret", "cards:secret", "down", "absent", "no-such-tool"])
def test_calls_of_tools_that_cannot_be_called_are_dropped(name: str) -> None:
    assert one(hints.call(name)) is None
    told = hints.action("look-further", description="There is more", data={"tool": name, "arguments": {}})
    assert one(told) == hints.action("look-further", description="There is more")


def test_names_without_data_are_dropped_only_if_hidden() -> None:
    assert (one("secret"), one("down")) == (None, None)
    assert one("ask-user") == hints.action("ask-user")


def test_a_query_that_needs_no_arguments_becomes_a_call() -> None:
    assert data("search") == {"tool": "cards:search", "arguments": {}}
    assert data("get-card") is None
    assert data("clear") is None, "what changes something is called only with arguments of its author"


@pytest.mark.parametrize(
    "name, arguments", [("get-card", CARD), ("delete-card", {"card_id": "card_7"})], ids=["camel", "snake"]
)
def test_read_and_undo_get_the_id_as_their_argument(name: str, arguments: JsonObject) -> None:
    made = resolved(hints.created("card", "card_7", read="get-card", undo="delete-card"))
    calls = {each.action: each.data for each in made.suggested_next_actions}
    assert calls[name] == {"tool": f"cards:{name}", "arguments": arguments}


@pytest.mark.parametrize("type, id", [("deck", "card_7"), ("card", "deck_1")])
def test_an_id_of_something_else_is_no_argument(type: str, id: str) -> None:
    made = resolved(hints.created(type, id, read="get-card")).suggested_next_actions
    assert made[0].data == {"type": type, "id": id}


def test_data_that_are_the_arguments_become_a_call() -> None:
    assert data(hints.action("get-card", data=CARD)) == {"tool": "cards:get-card", "arguments": CARD}
    assert data(hints.action("rate", data=CARD)) == CARD


def test_branded_ids_are_valid_arguments() -> None:
    assert data(hints.call("get-card", {"cardId": CardId("card_7")}))["arguments"] == CARD


def test_other_data_of_a_call_stay() -> None:
    call = {"tool": "get-card", "arguments": CARD, "after": 2}
    assert data(hints.action("get-card", data=call)) == {**call, "tool": "cards:get-card"}


@pytest.mark.parametrize("family", ["mcp", "app"])
def test_servers_may_suggest_only_their_own_tools(family: Any) -> None:
    author = replace(SEARCH, family=family)
    assert data(hints.call("get-card", CARD), author)["tool"] == "cards:get-card"
    assert one(hints.call("mail:send", {"to": "x"}), author) is None
    assert data("other:get-card", author) is None
    assert data(hints.call("mail:send", {"to": "x"}))["tool"] == "mail:send"


def test_what_depends_on_a_dropped_action_goes_too() -> None:
    made = hints.found(
        [1],
        next=hints.call("secret"),
        dependencies=(hints.depends("secret", "search"), hints.depends("get-card", "search")),
        preference_alignment=hints.alignment("secret", "short sessions", 0.5),
    )
    kept = resolved(made)
    assert [each.action for each in kept.dependencies] == ["get-card"]
    assert (kept.preference_alignment, kept.estimated_impact) == ((), Impact())
    assert hints.faults(kept) == ()


def test_hints_without_calls_stay_the_same_object() -> None:
    for made in (hints.found([1]), hints.found([1], next="ask-user"), hints.empty("rivers")):
        assert resolved(made) is made
    complete = hints.found([1], next=hints.call("cards:get-card", CARD))
    assert resolved(complete) is complete


def test_schemas_are_compiled_once_per_definition() -> None:
    accepts = ArgumentCheck()
    assert (accepts(GET, CARD), accepts(GET, {})) == (True, False)
    assert accepts(replace(GET, input_schema={"type": "object"}), {})


def test_names_are_looked_up_once_per_audience() -> None:
    asked: list[Tool] = []

    def counted(tool: Tool) -> bool:
        asked.append(tool)
        return sees(tool)

    tools = CallableTools(SNAPSHOT, counted, ArgumentCheck())
    for _ in range(3):
        resolved_actions(hints.found([1], next="search"), SEARCH, tools)
    assert asked == [SEARCH]
    for number in range(400):
        assert tools.find(f"step-{number}", SEARCH).tool is None
    assert tools.find("search", SEARCH).tool is SEARCH
