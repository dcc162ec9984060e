"""Data flow: values of a result as arguments of other tools, and silence where there is none."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.errors import problem
from toolcrib.gateway.next_actions import NextActions, suggesting
from toolcrib.interfaces import ArgumentSource, LearnedStep
from toolcrib.model import Caller, Category, Deprecation, Hints, JsonObject, Result, Tool
from toolcrib.model.hints import NextAction
from toolcrib.schemas import compile_schema
from toolcrib.sdk import DeckId
from toolcrib.testing import a_call, a_caller, a_tool

TEXT: JsonObject = {"type": "string"}
WHOLE: JsonObject = {"type": "integer"}
DECK: JsonObject = {"type": "string", "pattern": "^deck_[a-z0-9]+$"}


def a_query(name: str, *optional: str, out: JsonObject | None = None, **required: JsonObject) -> Tool:
    """A tool that reads; parameters in `optional` are texts."""
    properties = {**required, **dict.fromkeys(optional, TEXT)}
    schema = {"type": "object", "properties": properties, "required": [*required]}
    return a_tool(name, category="query", input_schema=schema, output_schema=out)


def an_object(**members: JsonObject) -> JsonObject:
    return {"type": "object", "properties": members}


def next_actions(
    *tools: Tool, steps: tuple[LearnedStep, ...] = (), hidden: tuple[str, ...] = ()
) -> NextActions:
    made = NextActions(lambda tool, _: tool.name not in hidden, lambda _tool, _caller: steps)
    made.adopt({tool.name: tool for tool in tools})
    return made


def calls(
    made: NextActions,
    tool: Tool,
    data: Any,
    arguments: JsonObject | None = None,
    caller: Caller | None = None,
) -> list[tuple[str, JsonObject]]:
    """The suggested calls after a result, as tool and arguments."""
    call = a_call(tool, arguments=arguments or {}, caller=caller or a_caller())
    found = [each.data or {} for each in made.after(call, Result(data=data))]
    return [(each["tool"], each["arguments"]) for each in found]


GET_DECK = a_query("cards:get-deck", deck_id=DECK)
OPEN_DECK = a_query("cards:open-deck", deckId=TEXT)


# --- what fits ---


@pytest.mark.requirement("E18")
@pytest.mark.parametrize(
    "data",
    [
        {"deckId": "deck_1"},
        {"deck_id": "deck_1"},
        {"decks": [{"id": "deck_1"}, {"id": "deck_2"}]},
        {"deck": {"id": "deck_1", "title": "Sums"}},
        {"items": [{"deck": {"id": "deck_1"}}]},
        {"best": "deck_1"},
        [{"id": "deck_1"}],
    ],
    ids=str,
)
def test_id_of_an_entity_fits_its_parameter(data: Any) -> None:
    find = a_query("cards:search-decks", "words")
    made = next_actions(find, GET_DECK, OPEN_DECK)
    assert calls(made, find, data) == [
        ("cards:get-deck", {"deck_id": "deck_1"}),
        ("cards:open-deck", {"deckId": "deck_1"}),
    ]


@pytest.mark.requirement("E18")
def test_bare_id_is_that_of_the_tools_own_noun() -> None:
    made_deck = a_tool("cards:create-deck", category="mutation", output_schema=an_object(id=TEXT))
    made = next_actions(made_deck, OPEN_DECK, a_query("cards:get-card", card_id=TEXT))
    assert calls(made, made_deck, {"id": "sums"}) == [("cards:open-deck", {"deckId": "sums"})]


@pytest.mark.requirement("E18")
def test_declared_results_follow_references_and_nullable_unions() -> None:
    deck = {"anyOf": [{"$ref": "#/$defs/Deck"}, {"type": "null"}]}
    out = {**an_object(deck=deck), "$defs": {"Deck": an_object(id=DECK)}}
    find = a_query("cards:find", "words", out=out)
    made = next_actions(find, GET_DECK)
    assert calls(made, find, {"deck": {"id": "deck_9"}}) == [("cards:get-deck", {"deck_id": "deck_9"})]
    assert calls(made, find, {"deck": None}) == []


@pytest.mark.requirement("E18")
def test_missing_arguments_are_carried_over_from_the_call() -> None:
    listed = a_query("git:list-issues", owner=TEXT, repo=TEXT)
    get = a_query("git:get-issue", owner=TEXT, repo=TEXT, issue_number=WHOLE)
    made = next_actions(listed, get)
    given = {"owner": "ada", "repo": "engine"}
    assert calls(made, listed, [{"number": 7, "title": "Late"}], given) == [
        ("git:get-issue", {**given, "issue_number": 7})
    ]
    assert calls(made, listed, [{"number": 7}], {"owner": "ada"}) == [], "repo is unknown"


@pytest.mark.requirement("E18")
def test_addresses_fit_by_name_and_format() -> None:
    find = a_query("web:search", "words")
    fetch = a_query("reader:fetch", url={"type": "string", "format": "uri"})
    page = {"results": [{"title": "Sums", "url": "https://sums.example/1"}]}
    assert calls(next_actions(find, fetch), find, page) == [
        ("reader:fetch", {"url": "https://sums.example/1"})
    ]


@pytest.mark.requirement("E18")
def test_format_alone_fits_only_where_nothing_else_could() -> None:
    out = an_object(contact={"type": "string", "format": "email"})
    find = a_query("people:find", "name", out=out)
    look = a_query("mail:look", address={"type": "string", "format": "email"})
    other = a_query("mail:other", address={"type": "string", "format": "email"})
    data = {"contact": "ada@example.com"}
    assert calls(next_actions(find, look), find, data) == [("mail:look", {"address": "ada@example.com"})]
    assert calls(next_actions(find, look, other), find, data) == []


def test_list_parameter_gets_a_list() -> None:
    find = a_query("graph:search-nodes", "words")
    get = a_query("graph:get-cards", card_ids={"type": "array", "items": TEXT})
    assert calls(next_actions(find, get), find, {"cards": [{"id": "c1"}]}) == [
        ("graph:get-cards", {"card_ids": ["c1"]})
    ]


def test_most_certain_evidence_comes_first_and_says_why() -> None:
    find = a_query("cards:find", "words")
    by_name = a_query("cards:read-file", path=TEXT)
    made = next_actions(find, by_name, GET_DECK, OPEN_DECK)
    found = made.after(a_call(find), Result(data={"deckId": "deck_1", "path": "a/b"}))
    assert [each.action for each in found] == ["get-deck", "open-deck", "read-file"]
    confidences = [each.confidence or 0 for each in found]
    assert confidences == sorted(confidences, reverse=True)
    assert len(set(confidences)) == 3
    assert "deckId" in (found[0].description or "")


def test_at_most_three_suggestions() -> None:
    find = a_query("cards:find", "words")
    many = [a_query(f"cards:get-{number}", deck_id=DECK) for number in range(6)]
    assert len(calls(next_actions(find, *many), find, {"deckId": "deck_1"})) == 3


@pytest.mark.requirement("E18")
def test_servers_annotation_counts_as_a_query() -> None:
    find = a_query("far:find", "words")
    schema = {"type": "object", "properties": {"deck_id": TEXT}, "required": ["deck_id"]}

    def suggested(**fields: Any) -> list[tuple[str, JsonObject]]:
        get = a_tool("far:get", family="mcp", input_schema=schema, **fields)
        return calls(next_actions(find, get), find, {"deckId": "d1"})

    assert suggested(annotations={"readOnlyHint": True}) == [("far:get", {"deck_id": "d1"})]
    assert suggested() == []
    assert suggested(annotations={"readOnlyHint": True}, declared_mutation=True) == []
    assert suggested(annotations={"readOnlyHint": "yes"}) == []


# --- where there is no flow ---

CONVERT = a_query(
    "demo:convert-units",
    value={"type": "number"},
    unit=TEXT,
    to=TEXT,
    out=an_object(value={"type": "number"}, unit=TEXT),
)
ADD = a_query("demo:add-numbers", numbers={"type": "array", "items": {"type": "number"}})
NOW = a_query("core:get_datetime", "zone", out=an_object(datetime=TEXT, timezone=TEXT, weekday=TEXT))
SEARCH = a_query("core:search", query=TEXT)
WORLD_TIME = a_query("time:get_current_time", timezone=TEXT)
REMOVE = a_tool("kitchen:remove-recipe", input_schema=an_object(recipe_id=TEXT), category="mutation")
RECIPE = a_query("kitchen:get-recipe", recipe_id=TEXT)
QUOTED = (CONVERT, ADD, NOW, SEARCH, WORLD_TIME, REMOVE, RECIPE)


@pytest.mark.requirement("E18")
@pytest.mark.parametrize(
    "tool, data",
    [
        (CONVERT, {"value": 4.8, "unit": "km"}),
        (NOW, {"datetime": "2030-01-01T12:00:00Z", "timezone": "Asia/Tokyo", "weekday": "Tuesday"}),
        (REMOVE, {"id": "recipe_6"}),
        (REMOVE, {"removed": "recipe_6"}),
        (REMOVE, {"recipe": {"id": "recipe_6", "name": "Soup"}}),
        (REMOVE, {"recipe_id": "recipe_6", "removed": True}),
    ],
    ids=lambda each: each.local if isinstance(each, Tool) else str(each)[:40],
)
def test_nothing_is_suggested_where_nothing_flows(tool: Tool, data: JsonObject) -> None:
    assert calls(next_actions(*QUOTED), tool, data, {"recipe_id": "recipe_6"}) == []


@pytest.mark.requirement("E18")
@pytest.mark.parametrize(
    "target, data",
    [
        (a_query("cards:get", deck_id=DECK), {"deckId": "card_1"}),
        (a_query("cards:get", deck_id=WHOLE), {"deckId": "one"}),
        (a_query("cards:get", deck_id=TEXT, why=TEXT), {"deckId": "d1"}),
        (a_query("cards:get", deck_id=TEXT), {"deckId": None}),
        (a_query("cards:get", deck_id=TEXT), {"deckId": "x" * 300}),
        (a_query("cards:get", deck_id=TEXT), {"deckId": "two\nlines"}),
        (a_query("cards:get", deck_id=TEXT), {"deck": "free text", "id": "c1"}),
        (a_query("cards:get", access_token=TEXT), {"access_token": "abc123"}),
        (a_query("cards:get", text=TEXT), {"text": "abc"}),
        (a_query("cards:get", deck_id={"enum": ["d1"], "type": "string"}), {"deckId": "d1"}),
        (a_query("other:get-card", id=TEXT), [{"id": "c1"}]),
        (a_tool("cards:drop", input_schema=an_object(deck_id=TEXT)), {"deckId": "d1"}),
        (a_query("cards:get", "words"), {"deckId": "d1"}),
    ],
    ids=lambda each: each.name if isinstance(each, Tool) else str(each)[:40],
)
def test_a_value_that_does_not_fit_suggests_nothing(target: Tool, data: Any) -> None:
    find = a_query("cards:search-cards", "words")
    assert calls(next_actions(find, target), find, data) == []


@pytest.mark.requirement("E18")
@pytest.mark.parametrize(
    "fields",
    [{"degraded": True}, {"changed": "notify"}, {"deprecated": Deprecation(since="1.0.0")}],
    ids=str,
)
def test_tools_that_are_not_current_are_not_suggested(fields: Any) -> None:
    find = a_query("cards:find", "words")
    get = a_tool("cards:get", category="query", input_schema=GET_DECK.input_schema, **fields)
    assert calls(next_actions(find, get), find, {"deckId": "deck_1"}) == []


@pytest.mark.requirement("E18")
def test_tools_that_the_caller_cannot_use_now_are_not_suggested() -> None:
    find, banned = a_query("cards:find", "words"), set[str]()
    made = NextActions(lambda _tool, caller: caller.id not in banned, lambda _tool, _caller: ())
    made.adopt({tool.name: tool for tool in (find, GET_DECK)})
    data, caller = {"deckId": "deck_1"}, a_caller(id="key:a")
    assert calls(made, find, data, caller=caller)
    banned.add("key:a")
    assert calls(made, find, data, caller=caller) == []
    assert calls(made, find, data, caller=a_caller(id="key:b"))


def test_the_same_call_is_not_suggested_again() -> None:
    made = next_actions(GET_DECK)
    data = {"id": "deck_1", "parent": {"deck_id": "deck_2"}}
    assert calls(made, GET_DECK, {"id": "deck_1"}, {"deck_id": "deck_1"}) == []
    assert calls(made, GET_DECK, data, {"deck_id": "deck_2"}) == [("cards:get-deck", {"deck_id": "deck_1"})]


def test_failed_calls_and_questions_suggest_nothing() -> None:
    made = next_actions(OPEN_DECK, GET_DECK)
    call = a_call(OPEN_DECK)
    assert made.after(call, Result(data={"deckId": "deck_1"}, problem=problem("TIMEOUT", "…"))) == ()
    assert made.after(call, Result(data="deck_1")) == ()


# --- properties ---

NAMES = st.sampled_from(
    ["id", "deckId", "deck_id", "card", "cards", "items", "name", "url", "path", "number", "email", "token"]
)
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(["deck_1", "card_2", "https://a.example", "a@b.example", "", "x" * 400]),
    st.text(max_size=8),
)
DATA = st.recursive(
    VALUES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=5),
    max_leaves=20,
)
SCHEMAS: st.SearchStrategy[Any] = st.sampled_from(
    [
        TEXT,
        WHOLE,
        DECK,
        {"type": "number"},
        {"type": "array", "items": TEXT},
        {"type": ["string", "null"]},
        True,
    ]
)


def _any_tool(name: str, properties: dict[str, Any], required: set[str], category: Category) -> Tool:
    schema = {
        "type": "object",
        "properties": properties,
        "required": sorted(required & {*properties}),
        "additionalProperties": False,
    }
    return a_tool(f"s:{name}", category=category, input_schema=schema)


TOOLS = st.builds(
    _any_tool,
    st.sampled_from(["get-deck", "list-cards", "find", "remove-card", "read_url", "x"]),
    st.dictionaries(NAMES, SCHEMAS, max_size=4),
    st.sets(NAMES, max_size=3),
    st.sampled_from(["query", "mutation"]),
)


@pytest.mark.requirement("E18")
@given(st.lists(TOOLS, min_size=1, max_size=6, unique_by=lambda tool: tool.name), DATA, st.data())
def test_every_suggestion_is_a_valid_call_of_a_visible_query(
    tools: list[Tool], data: Any, draw: st.DataObject
) -> None:
    hidden = tuple(draw.draw(st.sets(st.sampled_from([tool.name for tool in tools]))))
    tool = draw.draw(st.sampled_from(tools))
    given_arguments = draw.draw(st.dictionaries(NAMES, VALUES, max_size=3))
    made = next_actions(*tools, hidden=hidden)
    by_name = {each.name: each for each in tools}
    found = calls(made, tool, data, given_arguments)
    assert len(found) <= 3
    for name, arguments in found:
        assert name not in hidden
        assert by_name[name].read_only
        assert compile_schema(by_name[name].input_schema).ok(arguments)
        assert (name, arguments) != (tool.name, given_arguments)


@given(DATA)
def test_suggestions_are_spliced_into_serialized_hints(data: Any) -> None:
    find = a_query("cards:find", "words")
    made = next_actions(find, GET_DECK, OPEN_DECK)
    hints = Hints(
        confidence=0.5, suggested_next_actions=(NextAction(action="x", priority="low", data={"a": 1}),)
    )
    for each in (hints, Hints(confidence=0.5)):
        result = Result(
            data=data, hints=each.replace(encoded=json.dumps(each.as_json(), separators=(",", ":")).encode())
        )
        actions = made.after(a_call(find), result)
        shown = suggesting(result, actions).hints if actions else result.hints
        assert shown is not None
        assert json.loads(shown.encoded) == shown.as_json()


# --- learned steps ---


def test_learned_step_takes_values_from_result_and_call() -> None:
    find = a_query("cards:find", "words")
    odd = a_query("cards:odd", label=TEXT, words=TEXT)
    sources = (ArgumentSource("label", ("found", 0, "text")), ArgumentSource("words", given="words"))
    made = next_actions(find, odd, steps=(LearnedStep("cards:odd", 1.0, sources),))
    data = {"found": [{"text": "abc"}]}
    assert calls(made, find, data, {"words": "w"}) == [("cards:odd", {"label": "abc", "words": "w"})]
    assert calls(made, find, {"found": []}, {"words": "w"}) == []


@pytest.mark.requirement("E18")
def test_learned_mutation_needs_the_callers_own_sequence() -> None:
    find, drop = a_query("cards:find", "words"), a_tool("cards:drop", category="mutation")
    step = LearnedStep("cards:drop", 1.0, (ArgumentSource("id", ("id",)),))
    assert calls(next_actions(find, drop, steps=(step,)), find, {"id": "c1"}) == []
    own = step._replace(own=True)
    assert calls(next_actions(find, drop, steps=(own,)), find, {"id": "c1"}) == [("cards:drop", {"id": "c1"})]


def test_learned_call_that_flows_too_is_more_certain() -> None:
    find = a_query("cards:find", "words")
    step = LearnedStep("cards:open-deck", 1.0, (ArgumentSource("deckId", ("deckId",)),))
    result = Result(data={"deckId": "deck_1"})
    (alone,) = next_actions(find, OPEN_DECK).after(a_call(find), result)
    (both,) = next_actions(find, OPEN_DECK, steps=(step,)).after(a_call(find), result)
    assert (both.confidence or 0) > (alone.confidence or 0)


# --- checks of an unknown outcome ---


@pytest.mark.requirement("E19")
def test_unknown_outcome_is_checked_by_the_read_of_its_entity() -> None:
    rename = a_tool(
        "cards:rename-deck",
        category="mutation",
        input_schema={**an_object(deck_id=DECK, title=TEXT), "required": ["deck_id", "title"]},
    )
    unknown = Result(problem=problem("OUTCOME_UNKNOWN", "…"))
    call = a_call(rename, arguments={"deck_id": "deck_1", "title": "Sums"})
    (check,) = next_actions(rename, GET_DECK).after(call, unknown)
    assert check.action == "check-outcome"
    assert check.data == {"tool": "cards:get-deck", "arguments": {"deck_id": "deck_1"}}
    assert next_actions(rename).after(call, unknown) == ()
    assert next_actions(rename, GET_DECK, hidden=("cards:get-deck",)).after(call, unknown) == ()


# --- what the author names ---


def _named(action: str, data: JsonObject, *tools: Tool, hidden: tuple[str, ...] = ()) -> list[Any]:
    """The actions of a result whose author names one, as action and data."""
    tool = a_tool("cards:add-deck", category="mutation")
    own = Hints(confidence=0.5, suggested_next_actions=(NextAction(action=action, priority="high"),))
    result = Result(data=data, hints=own.replace(encoded=json.dumps(own.as_json()).encode()))
    actions = next_actions(tool, *tools, hidden=hidden).after(a_call(tool), result)
    shown = suggesting(result, actions).hints if actions else result.hints
    assert shown is not None
    assert json.loads(shown.encoded) == shown.as_json()
    return [(each.action, each.data, each.priority) for each in shown.suggested_next_actions]


DROP = a_tool("cards:drop_deck", category="mutation", input_schema=GET_DECK.input_schema)


@pytest.mark.requirement("E18")
@pytest.mark.parametrize("name", ["drop_deck", "drop-deck", "cards:drop_deck"])
def test_mutation_that_the_author_names_gets_its_arguments(name: str) -> None:
    call = {"tool": "cards:drop_deck", "arguments": {"deck_id": "deck_1"}}
    assert _named(name, {"deckId": "deck_1"}, DROP) == [(name, call, "high")]


def test_named_tool_without_its_arguments_or_rights_stays_a_name() -> None:
    assert _named("drop-deck", {"title": "Sums"}, DROP) == [("drop-deck", None, "high")]
    hidden = _named("drop-deck", {"deckId": "deck_1"}, DROP, hidden=("cards:drop_deck",))
    assert hidden == [("drop-deck", None, "high")]
    assert _named("think-again", {"deckId": "deck_1"}, DROP) == [("think-again", None, "high")]


def test_what_the_author_suggests_is_not_suggested_twice() -> None:
    call = {"tool": "cards:get-deck", "arguments": {"deck_id": "deck_1"}}
    assert _named("get-deck", {"deckId": "deck_1"}, GET_DECK) == [("get-deck", call, "high")]


# --- odd results ---


def test_branded_ids_become_plain_texts() -> None:
    find = a_query("cards:find", "words")
    ((_, arguments),) = calls(next_actions(find, OPEN_DECK), find, {"deckId": DeckId("deck_1")})
    assert type(arguments["deckId"]) is str


def test_results_with_data_for_names_are_not_planned_forever() -> None:
    find = a_query("cards:find", "words")
    made = next_actions(find, OPEN_DECK)
    for number in range(100):
        calls(made, find, {f"k{number}": {"deckId": "deck_1"}})
    assert calls(made, find, {"k1": {"deckId": "deck_1"}})
    assert calls(made, find, {"k99": {"deckId": "deck_1"}}) == []


def test_a_fault_while_suggesting_leaves_the_result_alone(caplog: pytest.LogCaptureFixture) -> None:
    def broken(_tool: str, _caller: str) -> tuple[LearnedStep, ...]:
        raise ValueError("broken")

    made = NextActions(lambda _tool, _caller: True, broken)
    assert made.after(a_call(GET_DECK), Result(data={"deckId": "deck_1"})) == ()
    assert "no next actions" in caplog.text
