"""What the gateway says of an outcome, word by word: of a failure, a record, a promise, the age of data."""

from typing import Any

import pytest

from toolcrib.errors import CODES, problem
from toolcrib.gateway.error_advice import after, before, instead
from toolcrib.gateway.generated_hints import CallOutcome, ToolRecord, for_outcome, with_record
from toolcrib.gateway.related_tools import RelatedTool
from toolcrib.model import Deprecation, Evidence, Example, Family, Hints, Tool
from toolcrib.model.hints import Caution, Impact, NextAction, Risk
from toolcrib.testing import a_tool

EXAMPLE = Example(description="The card of the day", params={"id": 7})
GET = a_tool("cards:get", category="query", examples=(EXAMPLE,))
FAR = a_tool("far:get", family="mcp", category="query")
OTHER = RelatedTool(a_tool("cards:find", category="query", examples=(EXAMPLE,)), 0.5, followed=True)
NEW, TRIED = ToolRecord(), ToolRecord(1.0, 0.0, 1_000)


def evidence(tool: Tool | None, seen: CallOutcome, past: ToolRecord = NEW) -> Evidence:
    made = for_outcome(tool, past, seen).evidence
    assert made is not None
    return made


# --- what to do next ---


@pytest.mark.requirement("E9", "E11")
@pytest.mark.parametrize("code", sorted(CODES))
def test_every_problem_has_a_correction_with_a_sentence(code: str) -> None:
    action = after(problem(code, "…"), None)
    assert action.category == "correction"
    assert action.description is not None
    assert action.description.endswith(".")
    assert action.data is None


@pytest.mark.parametrize(
    "code, action, priority",
    [("NOT_FOUND", "check-address", "high"), ("TOOL_NOT_FOUND", "list-tools", "high")],
)
def test_what_leads_nowhere_is_told_from_a_tool_there_is_none_of(
    code: str, action: str, priority: str
) -> None:
    found = after(problem(code, "…"), GET)
    assert (found.action, found.priority, found.data) == (action, priority, None)


@pytest.mark.requirement("E9")
def test_who_got_the_arguments_wrong_is_shown_some_that_are_right() -> None:
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


def test_only_an_unknown_outcome_is_looked_into_before_a_second_try() -> None:
    (first,) = before(problem("OUTCOME_UNKNOWN", "…"))
    assert (first.action, first.depends_on, first.type) == ("call-again", ("check-outcome",), "required")
    assert before(problem("TIMEOUT", "…")) == ()
    assert before(None) == ()


@pytest.mark.requirement("E13")
def test_the_tool_to_go_over_to_is_suggested_by_its_own_name() -> None:
    gone = Deprecation(since="1.0.0", replacement="cards:v2:get_card")
    assert instead(a_tool("cards:old", deprecated=gone)) == NextAction(
        action="use-replacement",
        priority="medium",
        data={"tool": "cards:v2:get_card", "action": "get-card"},
        description="cards:old is deprecated; call cards:v2:get_card from now on.",
    )
    assert instead(a_tool("cards:old", deprecated=Deprecation(since="1.0.0"))) is None
    assert instead(GET) is None


def test_what_goes_with_a_tool_is_suggested_only_after_a_settled_call() -> None:
    near = (OTHER,)
    done = for_outcome(GET, NEW, CallOutcome(), near)
    assert [each.action for each in done.suggested_next_actions] == ["find"]
    asks = for_outcome(GET, NEW, CallOutcome(asks=True), near)
    assert [each.action for each in asks.suggested_next_actions] == ["answer-questions"]
    failed = for_outcome(GET, NEW, CallOutcome(problem=problem("TIMEOUT", "…")), near)
    assert [each.action for each in failed.suggested_next_actions] == ["retry-once"]
    for hints in (done, asks, failed):
        assert [each.id for each in hints.related_resources] == ["cards:find"]


@pytest.mark.parametrize(
    "seen, word",
    [
        (CallOutcome(), "medium"),
        (CallOutcome(asks=True), "immediate"),
        (CallOutcome(problem=problem("TIMEOUT", "…")), "immediate"),
    ],
)
def test_only_a_settled_answer_stays_valid(seen: CallOutcome, word: str) -> None:
    assert for_outcome(a_tool(cache_ttl=3600.0), NEW, seen).validity_period == word


# --- how far to trust it ---


@pytest.mark.requirement("E8")
@pytest.mark.parametrize(
    "tool, word",
    [
        (None, "high"),
        (a_tool(family="function"), "high"),
        (a_tool(family="core"), "high"),
        (FAR, "medium"),
        (a_tool(family="function", changed="notify"), "low"),
        (a_tool(family="mcp", degraded=True), "low"),
    ],
)
def test_the_quality_of_a_source_is_put_into_a_word(tool: Tool | None, word: str) -> None:
    assert for_outcome(tool, NEW, CallOutcome()).source_quality == word


@pytest.mark.requirement("E8")
@pytest.mark.parametrize(
    "family, has_schema, share",
    [
        ("function", True, 1.0),
        ("function", False, 0.95),
        ("core", True, 1.0),
        ("core", False, 0.95),
        ("mcp", True, 0.9),
        ("mcp", False, 0.85),
    ],
)
def test_how_closely_an_answer_was_looked_at_counts(family: Family, has_schema: bool, share: float) -> None:
    tool = a_tool(family=family, output_schema={"type": "object"} if has_schema else None)
    assert evidence(tool, CallOutcome()).validation == share


@pytest.mark.requirement("E8")
def test_what_counts_is_what_was_seen_and_of_a_failure_how_well_it_is_explained() -> None:
    assert evidence(None, CallOutcome()).validation == 1.0
    seen = evidence(FAR, CallOutcome(freshness=0.4, completeness=0.3))
    assert (seen.freshness, seen.completeness) == (0.4, 0.3)
    broke = evidence(FAR, CallOutcome(problem=problem("NETWORK_ERROR", "…")))
    assert (broke.completeness, broke.validation) == (0.0, 0.3)
    ruled = evidence(FAR, CallOutcome(problem=problem("INVALID_ARGUMENTS", "…")))
    assert (ruled.completeness, ruled.validation) == (0.0, 0.8)


@pytest.mark.requirement("E8")
def test_a_tools_own_hints_are_reckoned_again_with_its_record_and_their_age() -> None:
    said = Evidence(quality=1.0, freshness=0.8)
    own = Hints(confidence=1.0, evidence=said)
    for age, counted in ((1.0, 0.8), (0.5, 0.5)):
        known = with_record(own, GET, TRIED, age).evidence
        assert known is not None
        assert (known.quality, known.freshness, round(known.success, 3)) == (1.0, counted, 1.0)
    fresh = with_record(own, GET, TRIED).evidence
    assert fresh is not None
    assert fresh.freshness == 0.8


@pytest.mark.requirement("E8")
def test_what_a_server_says_of_itself_is_trusted_no_more_than_we_would_trust_it() -> None:
    ours = for_outcome(FAR, TRIED, CallOutcome()).confidence
    old = for_outcome(FAR, TRIED, CallOutcome(freshness=0.5)).confidence
    assert old < ours < 1.0
    assert with_record(Hints(confidence=1.0), FAR, TRIED).confidence == ours
    assert with_record(Hints(confidence=1.0), FAR, TRIED, 0.5).confidence == old
    assert with_record(Hints(confidence=0.2), FAR, TRIED).confidence == 0.2
    assert with_record(Hints(confidence=1.0), GET, TRIED).confidence == 1.0


def test_a_warning_the_tool_gave_itself_is_not_given_twice() -> None:
    tool = a_tool(deprecated=Deprecation(since="1.0.0"))
    own = Caution(type="deprecation", severity="high", message="Soon gone.")
    assert with_record(Hints(confidence=0.5, warnings=(own,)), tool, NEW).warnings == (own,)


# --- risks and warnings ---


def risks(past: ToolRecord) -> tuple[Risk, ...]:
    return for_outcome(FAR, past, CallOutcome()).risk_factors


@pytest.mark.requirement("E9")
@pytest.mark.parametrize(
    "success, severity, told, failing",
    [(0.493, "high", "51%", 0.51), (0.5, "medium", "50%", 0.5), (0.875, "medium", "12%", 0.12)],
)
def test_a_record_of_failures_is_a_risk_that_is_told_in_figures(
    success: float, severity: Any, told: str, failing: float
) -> None:
    assert risks(ToolRecord(success, 0.0, 50)) == (
        Risk(
            type="accuracy",
            severity=severity,
            description=f"About {told} of the latest calls to this tool failed.",
            probability=failing,
            impact=0.5,
            mitigation="Have another tool at hand, or try again where the error says that helps.",
        ),
    )


@pytest.mark.parametrize(
    "past, count", [(ToolRecord(0.5, 0.0, 4), 0), (ToolRecord(0.5, 0.0, 5), 1), (ToolRecord(0.9, 0.0, 50), 0)]
)
def test_few_failures_and_few_calls_are_no_risk(past: ToolRecord, count: int) -> None:
    assert len(risks(past)) == count


@pytest.mark.requirement("E9", "E12")
def test_a_broken_promise_is_a_small_risk_and_a_warning() -> None:
    hints = for_outcome(a_tool("cards:get", response_time="fast"), ToolRecord(1.0, 0.2, 5), CallOutcome())
    said = "It lately takes longer than the 0.1 s it promises."
    assert hints.risk_factors == (
        Risk(type="performance", severity="low", description=said, probability=0.5, impact=0.2),
    )
    told = "cards:get promises to answer within 0.1 s and lately does not."
    assert hints.warnings == (Caution(type="performance", severity="low", message=told),)


@pytest.mark.parametrize(
    "past", [ToolRecord(1.0, 0.1, 50), ToolRecord(1.0, 9.0, 4)], ids=["just in time", "too few to say"]
)
def test_a_promise_that_is_kept_or_hardly_tested_is_not_spoken_of(past: ToolRecord) -> None:
    hints = for_outcome(a_tool(response_time="fast"), past, CallOutcome())
    assert (hints.risk_factors, hints.warnings) == ((), ())


@pytest.mark.requirement("E13")
@pytest.mark.parametrize(
    "gone, caution",
    [
        (
            Deprecation(since="1.0.0"),
            Caution(type="deprecation", severity="medium", message="cards:old is deprecated since 1.0.0."),
        ),
        (
            Deprecation(since="1.0.0", replacement="cards:new", removal_date="2030-01-31"),
            Caution(
                type="deprecation",
                severity="medium",
                message="cards:old is deprecated since 1.0.0 and will be removed on 2030-01-31.",
                suggested_fix="Call cards:new instead.",
            ),
        ),
    ],
)
def test_a_tool_on_its_way_out_is_warned_of_in_a_sentence(gone: Deprecation, caution: Caution) -> None:
    assert for_outcome(a_tool("cards:old", deprecated=gone), NEW, CallOutcome()).warnings == (caution,)


# --- the rest of what is said ---


@pytest.mark.parametrize(
    "tool, past, effort",
    [
        (None, NEW, 0.1),
        (a_tool(response_time="fast"), NEW, 0.1),
        (a_tool(response_time="medium"), NEW, 0.3),
        (a_tool(response_time="slow"), NEW, 0.6),
        (a_tool(response_time="slow"), ToolRecord(1.0, 0.1, 4), 0.6),
        (a_tool(response_time="slow"), ToolRecord(1.0, 0.1, 5), 0.1),
        (a_tool(response_time="slow"), ToolRecord(1.0, 0.11, 5), 0.3),
        (a_tool(response_time="slow"), ToolRecord(1.0, 1.0, 5), 0.3),
        (a_tool(response_time="fast"), ToolRecord(1.0, 1.01, 5), 0.6),
    ],
)
def test_effort_is_the_time_it_takes_by_its_record_or_else_its_promise(
    tool: Tool | None, past: ToolRecord, effort: float
) -> None:
    hints = for_outcome(tool, past, CallOutcome())
    trust = hints.confidence
    assert hints.estimated_impact == Impact(benefit=trust, effort=effort, roi=round(trust / effort, 2))
    failed = for_outcome(tool, past, CallOutcome(problem=problem("TIMEOUT", "…")))
    assert failed.estimated_impact == Impact(benefit=0.0, effort=effort, roi=0.0)


@pytest.mark.parametrize(
    "past, seen, told",
    [
        (NEW, CallOutcome(), "The call succeeded; there are no earlier calls to go by."),
        (ToolRecord(0.75, 0.0, 8), CallOutcome(), "The call succeeded; 75% of the latest calls succeeded."),
        (
            NEW,
            CallOutcome(problem=problem("TIMEOUT", "…")),
            "The call failed; there are no earlier calls to go by.",
        ),
        (NEW, CallOutcome(asks=True), "The call waits for an answer; there are no earlier calls to go by."),
    ],
)
def test_the_reasoning_says_what_happened_and_what_there_is_to_go_by(
    past: ToolRecord, seen: CallOutcome, told: str
) -> None:
    assert for_outcome(GET, past, seen).reasoning == told


def test_what_is_missing_and_what_is_assumed_is_said() -> None:
    asks = for_outcome(GET, NEW, CallOutcome(asks=True))
    assert (asks.context_needed, asks.assumptions) == (("the answers to the questions",), ())
    assert for_outcome(GET, NEW, CallOutcome(problem=problem("TIMEOUT", "…"))).context_needed == ()
    kept = for_outcome(a_tool(degraded=True), NEW, CallOutcome(cached=True))
    assert kept.assumptions == (
        "The answer was kept from an earlier, equal call.",
        "The tool is as it was when its source was last up.",
    )
