"""Advice per error: the next action, what to check first, and the replacement of a deprecated tool."""

from dataclasses import replace

import pytest

from tests.texts import matches
from toolcrib.errors import CODES, problem
from toolcrib.gateway.generated_hints import (
    CallOutcome,
    ToolRecord,
    action_after,
    dependencies_before_retry,
    for_outcome,
    replacement_action,
)
from toolcrib.model import Deprecation, Example
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


@pytest.mark.requirement("E9")
def test_invalid_arguments_show_an_example() -> None:
    wrong = problem("INVALID_ARGUMENTS", "…")
    advice = action_after(wrong, GET)
    assert replace(advice, description=None) == NextAction(
        action="correct-arguments",
        priority="high",
        data={"tool": "cards:get", "arguments": {"id": 7}},
        category="correction",
    )
    assert matches("hints", "advice for invalid arguments", str(advice.description))
    assert action_after(wrong, FAR).data is None
    hints = for_outcome(GET, NEW, CallOutcome(problem=wrong))
    assert hints.suggested_next_actions == (action_after(wrong, GET),)


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
