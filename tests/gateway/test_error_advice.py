"""Advice per error: the next action, what to check first, and the replacement of a deprecated tool."""

import pytest

from toolcrib.errors import CODES, problem
from toolcrib.gateway.generated_hints import CallOutcome, ToolRecord, after, before, for_outcome, instead
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
    action = after(problem(code, "…"), None)
    assert action.category == "correction"
    assert action.description is not None
    assert action.description.endswith(".")
    assert action.data is None


@pytest.mark.parametrize(
    "code, action, priority",
    [("NOT_FOUND", "check-address", "high"), ("TOOL_NOT_FOUND", "list-tools", "high")],
)
def test_not_found_and_tool_not_found_differ(code: str, action: str, priority: str) -> None:
    found = after(problem(code, "…"), GET)
    assert (found.action, found.priority, found.data) == (action, priority, None)


@pytest.mark.requirement("E9")
def test_invalid_arguments_show_an_example() -> None:
    wrong = problem("INVALID_ARGUMENTS", "…")
    assert after(wrong, GET) == NextAction(
        action="correct-arguments",
        priority="high",
        data={"tool": "cards:get", "arguments": {"id": 7}},
        description="Mend what the error names and call again.",
        category="correction",
    )
    assert after(wrong, FAR).data is None
    hints = for_outcome(GET, NEW, CallOutcome(problem=wrong))
    assert hints.suggested_next_actions == (after(wrong, GET),)


def test_only_unknown_outcome_needs_a_check_first() -> None:
    (first,) = before(problem("OUTCOME_UNKNOWN", "…"))
    assert (first.action, first.depends_on, first.type) == ("call-again", ("check-outcome",), "required")
    assert before(problem("TIMEOUT", "…")) == ()
    assert before(None) == ()


@pytest.mark.requirement("E13")
def test_replacement_is_suggested_by_full_name() -> None:
    gone = Deprecation(since="1.0.0", replacement="cards:v2:get_card")
    assert instead(a_tool("cards:old", deprecated=gone)) == NextAction(
        action="use-replacement",
        priority="medium",
        data={"tool": "cards:v2:get_card", "action": "get-card"},
        description="cards:old is deprecated; call cards:v2:get_card from now on.",
    )
    assert instead(a_tool("cards:old", deprecated=Deprecation(since="1.0.0"))) is None
    assert instead(GET) is None
