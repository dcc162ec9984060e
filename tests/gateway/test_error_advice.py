"""Advice per error: the next action, what to check first, and the replacement of a deprecated tool."""

import re
from dataclasses import replace

import pytest

from tests.texts import matches
from toolcrib.errors import ADVICE, CODES, advice_on, problem
from toolcrib.gateway.error_advice import action_after, dependencies_before_retry, replacement_action
from toolcrib.gateway.generated_hints import CallOutcome, ToolRecord, for_outcome
from toolcrib.model import Deprecation, Example, Kind, Tool
from toolcrib.model.hints import NextAction
from toolcrib.testing import a_tool

EXAMPLE = Example(description="The card of the day", params={"id": 7})
GET = a_tool("cards:get", category="query", examples=(EXAMPLE,))
FAR = a_tool("far:get", family="mcp", category="query")
NEW = ToolRecord()


@pytest.mark.requirement("E9", "E11")
@pytest.mark.parametrize("code", sorted(CODES))
def test_every_error_code_has_a_correction(code: str) -> None:
    action = action_after(problem(code, "…"), None)
    assert action.category == "correction"
    assert action.description is not None
    assert action.description.endswith(".")
    assert action.data is None


@pytest.mark.parametrize(
    "code, action, priority",
    [("NOT_FOUND", "check-address", "high"), ("TOOL_NOT_FOUND", "list-tools", "high")],
)
def test_not_found_and_tool_not_found_differ(code: str, action: str, priority: str) -> None:
    found = action_after(problem(code, "…"), GET)
    assert (found.action, found.priority, found.data) == (action, priority, None)


@pytest.mark.requirement("E9", "E19")
def test_invalid_arguments_never_suggest_an_example() -> None:
    wrong = problem("INVALID_ARGUMENTS", "…")
    advice = action_after(wrong, GET)
    assert replace(advice, description=None) == NextAction(
        action="correct-arguments", priority="high", category="correction"
    )
    assert matches("hints", "advice for invalid arguments", str(advice.description))
    hints = for_outcome(GET, NEW, CallOutcome(problem=wrong))
    assert hints.suggested_next_actions == (advice,)


REPEATING = re.compile(r"\b(again|retry|try|repeat|once more|the same call)\b", re.IGNORECASE)
"""Words of a sentence that suggests the same call; a warning against it names the repetition."""


@pytest.mark.requirement("E11", "E19")
@pytest.mark.parametrize("tool", [None, GET, FAR, a_tool("cards:set")])
@pytest.mark.parametrize("retryable", [False, True])
@pytest.mark.parametrize("code", sorted(CODES))
def test_advice_never_contradicts_its_problem(code: str, retryable: bool, tool: Tool | None) -> None:
    found = problem(code, "…", retryable=retryable)
    advice, action = advice_on(found), action_after(found, tool)
    text = str(action.description)
    assert action.action == advice.action
    if not retryable:
        assert not advice.repeats
        assert not REPEATING.search(text), text
        assert "retry" not in action.action
    else:
        assert advice.retry != "never"
    if found.kind == Kind.UNKNOWN:
        assert text.startswith(advice.check)
        assert action.priority == "critical"
    if advice.check and tool is not None and not tool.read_only:
        assert text.startswith(advice.check)


@pytest.mark.requirement("E19")
@pytest.mark.parametrize("retryable", [False, True])
@pytest.mark.parametrize("code", sorted(CODES))
def test_hints_of_an_outcome_agree_with_its_advice(code: str, retryable: bool) -> None:
    found = problem(code, "…", retryable=retryable)
    hints = for_outcome(FAR, NEW, CallOutcome(problem=found))
    assert hints.suggested_next_actions == (action_after(found, FAR),)
    checks_first = any(each.action == "call-again" for each in hints.dependencies)
    assert checks_first == (found.kind == Kind.UNKNOWN)


@pytest.mark.requirement("E19")
def test_codes_with_a_cause_of_their_own_have_their_own_advice() -> None:
    own = ("NO_SESSION", "TOOL_REMOVED", "CONTRACT_VIOLATION", "APP_NOT_AVAILABLE", "HTTP_ERROR")
    for code in own:
        for retryable in (False, True):
            action = advice_on(problem(code, "…", retryable=retryable)).action
            assert action == "retry-later" or all(
                action != each.action for other, each in ADVICE.items() if other != code
            )
    assert ADVICE.keys() == CODES.keys()


@pytest.mark.requirement("E13", "E19")
def test_removed_tool_names_its_replacement_once() -> None:
    gone = a_tool("cards:old", deprecated=Deprecation(since="1.0.0", replacement="get"))
    removed = problem("TOOL_REMOVED", "…")
    (advice,) = for_outcome(gone, NEW, CallOutcome(problem=removed)).suggested_next_actions
    assert (advice.action, advice.data) == ("use-replacement", {"tool": "get", "action": "get"})


def test_only_unknown_outcome_needs_a_check_first() -> None:
    (first,) = dependencies_before_retry(problem("OUTCOME_UNKNOWN", "…"))
    assert (first.action, first.depends_on, first.type) == ("call-again", ("check-outcome",), "required")
    assert dependencies_before_retry(problem("TIMEOUT", "…")) == ()
    assert dependencies_before_retry(None) == ()


@pytest.mark.requirement("E13")
def test_replacement_is_suggested_by_full_name() -> None:
    gone = Deprecation(since="1.0.0", replacement="cards:v2:get_card")
    advice = replacement_action(a_tool("cards:old", deprecated=gone))
    assert advice is not None
    assert replace(advice, description=None) == NextAction(
        action="use-replacement",
        priority="medium",
        data={"tool": "cards:v2:get_card", "action": "get-card"},
    )
    assert matches("hints", "advice to use the replacement", str(advice.description))
    assert replacement_action(a_tool("cards:old", deprecated=Deprecation(since="1.0.0"))) is None
    assert replacement_action(GET) is None
