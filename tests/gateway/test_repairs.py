"""Repairs at their edges: waits, misspelled tool names, replacements, and limits."""

from typing import Any

import pytest

from toolcrib.errors import ADVICE, CODES, problem
from toolcrib.gateway.repairs import Repairs, RequestedCall
from toolcrib.hints import Hints, faults
from toolcrib.model import Deprecation, Problem, Tool
from toolcrib.model.hints import NextAction
from toolcrib.testing import a_call, a_tool

pytestmark = pytest.mark.requirement("E19")

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"card_id": {"type": "string"}, "note": {"type": "string"}},
    "required": ["card_id"],
    "additionalProperties": False,
}
GET = a_tool("cards:get-card", category="query", input_schema=SCHEMA)
SET = a_tool("cards:set-card", input_schema=SCHEMA)
DISABLE = a_tool("cards:disable", input_schema=SCHEMA)
SHUFFLE = a_tool("cards:shuffle-deck", input_schema=SCHEMA)
CARD = {"card_id": "card_7"}


def no_tools(_name: str) -> None: ...


def found_among(*tools: Tool) -> Any:
    return {tool.name: tool for tool in tools}.get


def named(name: str, *tools: Tool, arguments: Any = CARD) -> NextAction | None:
    refused = problem("TOOL_NOT_FOUND", "…", details={"near": [tool.name for tool in tools]})
    return Repairs().repair_of_name(RequestedCall(name, arguments), refused, found_among(*tools))


def repaired(tool: Tool, refused: Problem, *tools: Tool, **fields: Any) -> NextAction | None:
    return Repairs().repair_of(a_call(tool, **fields), refused, found_among(*tools))


@pytest.mark.parametrize("code", ["RATE_LIMITED", "OVERLOADED", "IN_PROGRESS"])
def test_wait_names_call_seconds_and_key(code: str) -> None:
    later = problem(code, "…", retry_after=1.5)
    action = repaired(SET, later, arguments=CARD, idempotency_key="key")
    assert action is not None
    assert action.action == ADVICE[code].action
    assert action.data == {
        "tool": "cards:set-card",
        "arguments": CARD,
        "repair": True,
        "after": 1.5,
        "idempotencyKey": "key",
    }
    assert action.reversible is None
    assert repaired(SET, problem(code, "…"), arguments=CARD) is None
    assert repaired(SET, problem(code, "…", retry_after=1.5, retryable=False), arguments=CARD) is None


@pytest.mark.parametrize("code", sorted(CODES.keys() - {"RATE_LIMITED", "OVERLOADED", "IN_PROGRESS"}))
@pytest.mark.parametrize("retryable", [False, True])
def test_other_codes_never_suggest_the_same_call(code: str, retryable: bool) -> None:
    for arguments in (CARD, {"cardId": "card_7"}):
        action = repaired(
            SET, problem(code, "…", retryable=retryable, retry_after=1.0), SET, arguments=arguments
        )
        assert action is None or (code == "INVALID_ARGUMENTS" and arguments != CARD)


@pytest.mark.parametrize(
    "name, tools, tool",
    [
        ("get-crad", [GET, SET], GET),
        ("cards:get-cadr", [GET], GET),
        ("card", [GET], GET),
        ("set_crad", [SET], SET),
        ("shufle-deck", [SHUFFLE], SHUFFLE),
        ("get-card", [SET], None),
        ("read-card", [SET], None),
        ("card", [SET], None),
        ("enable", [DISABLE], None),
        ("deck", [SHUFFLE], None),
        ("card", [GET, a_tool("cards:find-card", category="query", input_schema=SCHEMA)], None),
    ],
)
def test_near_name_is_clear_and_no_other_verb(name: str, tools: list[Tool], tool: Tool | None) -> None:
    action = named(name, *tools)
    assert (action and action.data and action.data["tool"]) == (tool and tool.name)


def test_schema_decides_among_equally_near_names() -> None:
    other = a_tool("decks:get-card", category="query", input_schema={**SCHEMA, "required": ["note"]})
    action = named("get-crad", GET, other)
    assert action is not None
    assert action.data == {"tool": "cards:get-card", "arguments": CARD, "repair": True}


def test_near_tool_that_the_arguments_do_not_match_is_not_called() -> None:
    assert named("get-crad", GET, arguments={"note": "a"}) is None
    assert (
        Repairs().repair_of_name(RequestedCall("get-crad", CARD), problem("NOT_FOUND", "…"), no_tools) is None
    )


def test_deprecated_tool_is_replaced_if_only_that_accepts_the_arguments() -> None:
    old = a_tool(
        "cards:read",
        category="query",
        input_schema={**SCHEMA, "required": ["note"]},
        deprecated=Deprecation(since="1.0.0", replacement="get-card"),
    )
    invalid = problem("INVALID_ARGUMENTS", "…")
    action = repaired(old, invalid, GET, arguments=CARD)
    assert action is not None
    assert action.data == {"tool": "cards:get-card", "arguments": CARD, "repair": True}
    assert repaired(old, invalid, arguments=CARD) is None
    assert repaired(old, invalid, old, arguments=CARD) is None


def test_session_is_begun_only_for_a_user_that_is_named() -> None:
    assert Repairs().repair_of(None, problem("NO_SESSION", "…"), no_tools) is None
    too_long = problem("NO_SESSION", "…", details={"user": "u" * 5000})
    assert Repairs().repair_of(None, too_long, no_tools) is None


def test_changed_schema_is_compiled_again() -> None:
    repairs, invalid = Repairs(), problem("INVALID_ARGUMENTS", "…")
    call = a_call(GET, arguments={"cardId": "a"})
    assert repairs.repair_of(call, invalid, no_tools) is not None
    renamed = a_tool(
        "cards:get-card", input_schema={**SCHEMA, "properties": {"deck": {}}, "required": ["deck"]}
    )
    assert repairs.repair_of(a_call(renamed, arguments={"cardId": "a"}), invalid, no_tools) is None


def test_repair_of_hostile_arguments_is_bounded() -> None:
    schema = {**SCHEMA, "properties": {f"name_{n:03}": {"type": "string"} for n in range(60)}}
    tool = a_tool("cards:wide", input_schema={**schema, "required": ["name_000"]})
    hostile = {f"nam{n}": 1 for n in range(600)}
    assert repaired(tool, problem("INVALID_ARGUMENTS", "…"), arguments=hostile) is None


def test_repairs_are_valid_hints() -> None:
    action = repaired(SET, problem("INVALID_ARGUMENTS", "…"), arguments={"cardId": "c" * 3000})
    assert action is not None
    assert faults(_hints(action)) == ()
    assert repaired(SET, problem("INVALID_ARGUMENTS", "…"), arguments={"cardId": "c" * 5000}) is None


def _hints(action: NextAction) -> Hints:
    return Hints(suggested_next_actions=(action,), confidence=1.0)
