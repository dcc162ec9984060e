"""Hints that the gateway generates: complete, valid and derived from the tool's record."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.hint_fields import HINT_FIELD_SET
from tests.texts import matches
from toolcrib.errors import CODES, problem
from toolcrib.gateway.generated_hints import CallOutcome, ToolRecord, for_outcome, with_record
from toolcrib.gateway.hint_reasoning import age_text
from toolcrib.gateway.related_tools import RelatedTool
from toolcrib.gateway.result_pages import ResultPage
from toolcrib.hints import action, failed, faults
from toolcrib.hints.parts import impact_of
from toolcrib.model import Deprecation, Evidence, Example, Family, Hints, Problem, Tool
from toolcrib.model.hints import Caution, Impact, Risk
from toolcrib.testing import a_tool

rates = st.floats(0, 1)
pasts = st.builds(ToolRecord, rates, st.floats(0, 100), st.integers(0, 1000))
problems = st.none() | st.sampled_from(sorted(CODES)).map(lambda code: problem(code, "…"))
outcomes = st.builds(
    CallOutcome,
    problem=problems,
    asks=st.booleans(),
    cached=st.booleans(),
    freshness=rates,
    completeness=rates,
)


@pytest.mark.requirement("E7", "E9")
@given(pasts, outcomes)
def test_hints_are_complete_and_valid_for_every_outcome(past: ToolRecord, seen: CallOutcome) -> None:
    hints = for_outcome(a_tool(category="query"), past, seen)
    spelled = json.loads(hints.encoded)
    assert spelled == json.loads(json.dumps(hints.as_json()))
    assert spelled.keys() >= HINT_FIELD_SET
    assert faults(hints) == ()
    assert bool(spelled["suggestedNextActions"]) is (seen.problem is not None or seen.asks)
    assert bool(spelled["estimatedImpact"]["effort"]) is bool(spelled["suggestedNextActions"])


@pytest.mark.requirement("E8")
@given(rates, rates, st.integers(0, 1000), outcomes)
def test_a_better_record_never_lowers_confidence(a: float, b: float, calls: int, seen: CallOutcome) -> None:
    low, high = sorted((a, b))
    tool = a_tool()
    worse, better = (for_outcome(tool, ToolRecord(rate, 0.0, calls), seen) for rate in (low, high))
    assert worse.confidence <= better.confidence


@pytest.mark.requirement("E8")
def test_factors_that_lower_confidence() -> None:
    tool, past = a_tool(family="mcp"), ToolRecord(1.0, 0.0, 100)
    good = for_outcome(tool, past, CallOutcome()).confidence
    worse = [
        for_outcome(tool, past, CallOutcome(problem=problem("TIMEOUT", "…"))),
        for_outcome(tool, past, CallOutcome(cached=True, freshness=0.5)),
        for_outcome(tool, past, CallOutcome(completeness=0.5)),
        for_outcome(a_tool(family="mcp", changed="notify"), past, CallOutcome()),
        for_outcome(a_tool(family="mcp", degraded=True), past, CallOutcome()),
        for_outcome(tool, ToolRecord(1.0, 0.0, 0), CallOutcome()),
    ]
    assert all(each.confidence < good for each in worse)
    assert for_outcome(a_tool(), past, CallOutcome()).confidence > good
    certain = for_outcome(tool, past, CallOutcome(problem=problem("INVALID_ARGUMENTS", "…")))
    assert certain.confidence > worse[0].confidence


@pytest.mark.requirement("E7", "E9")
@pytest.mark.parametrize(
    "ttl, word",
    [(None, "immediate"), (60.0, "immediate"), (300.0, "short"), (3600.0, "medium"), (1e6, "long")],
)
def test_validity_follows_the_cache_ttl(ttl: float | None, word: str) -> None:
    assert for_outcome(a_tool(cache_ttl=ttl), ToolRecord(), CallOutcome()).validity_period == word


@pytest.mark.requirement("E9", "E12")
def test_bad_records_add_risks_and_warnings() -> None:
    shaky = for_outcome(a_tool(response_time="fast"), ToolRecord(0.4, 3.0, 50), CallOutcome())
    assert [risk.type for risk in shaky.risk_factors] == ["accuracy", "performance"]
    assert [each.type for each in shaky.warnings] == ["performance"]
    new = for_outcome(a_tool(), ToolRecord(0.4, 3.0, 2), CallOutcome())
    assert (new.risk_factors, new.warnings) == ((), ())


@pytest.mark.requirement("E13")
def test_a_deprecated_tool_warns_and_names_its_replacement() -> None:
    tool = a_tool(deprecated=Deprecation(since="1.2.0", replacement="fake:better", removal_date="2099-01-01"))
    hints = for_outcome(tool, ToolRecord(), CallOutcome())
    action, caution = hints.suggested_next_actions[0], hints.warnings[0]
    assert action.data == {"tool": "fake:better", "action": "better"}
    assert caution.type == "deprecation"
    assert "2099-01-01" in caution.message
    own = with_record(Hints(confidence=0.5), tool, ToolRecord())
    assert own.warnings == (caution,), "a tool's own hints do not hide that it is on its way out"


@pytest.mark.requirement("E8")
def test_author_evidence_is_combined_with_the_record() -> None:
    own = Hints(confidence=0.9, evidence=Evidence(quality=0.98, completeness=0.5))
    good, bad = (with_record(own, a_tool(), ToolRecord(rate, 0.0, 100)) for rate in (1.0, 0.2))
    assert bad.confidence < good.confidence
    assert json.loads(bad.encoded)["confidence"] == bad.confidence
    boast = with_record(Hints(confidence=1.0), a_tool(family="mcp"), ToolRecord(0.2, 0.0, 100))
    assert boast.confidence < 0.5, "a server from outside is trusted no more than it has earned"
    said = with_record(Hints(confidence=0.42), a_tool(), ToolRecord(0.2, 0.0, 100))
    assert said.confidence == 0.42, "without evidence it is the author's own figure"


def test_context_needed_names_the_invalid_path() -> None:
    tool = a_tool(examples=())
    wrong: Problem = problem("INVALID_ARGUMENTS", "…", path="arguments.when")
    hints = for_outcome(tool, ToolRecord(), CallOutcome(problem=wrong))
    assert hints.context_needed == ("arguments.when",)
    unknown = for_outcome(tool, ToolRecord(), CallOutcome(problem=problem("OUTCOME_UNKNOWN", "…")))
    assert unknown.dependencies[0].depends_on == ("check-outcome",)


# --- next actions and validity ---


EXAMPLE = Example(description="The card of the day", params={"id": 7})
GET = a_tool("cards:get", category="query", examples=(EXAMPLE,))
FAR = a_tool("far:get", family="mcp", category="query")
OTHER = RelatedTool(a_tool("cards:find", category="query", examples=(EXAMPLE,)), 0.5)
ANSWER = action("answer")
NEW, TRIED = ToolRecord(), ToolRecord(1.0, 0.0, 1_000)


def evidence(tool: Tool | None, seen: CallOutcome, past: ToolRecord = NEW) -> Evidence:
    made = for_outcome(tool, past, seen).evidence
    assert made is not None
    return made


def test_related_tools_are_resources_and_no_actions() -> None:
    near = (OTHER,)
    done = for_outcome(GET, NEW, CallOutcome(), near)
    assert done.suggested_next_actions == ()
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
def test_only_successful_answers_stay_valid(seen: CallOutcome, word: str) -> None:
    assert for_outcome(a_tool(cache_ttl=3600.0), NEW, seen).validity_period == word


# --- evidence ---


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
def test_source_quality_word(tool: Tool | None, word: str) -> None:
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
def test_validation_share_by_family_and_schema(family: Family, has_schema: bool, share: float) -> None:
    tool = a_tool(family=family, output_schema={"type": "object"} if has_schema else None)
    assert evidence(tool, CallOutcome()).validation == share


@pytest.mark.requirement("E8")
def test_evidence_of_results_and_failures() -> None:
    assert evidence(None, CallOutcome()).validation == 1.0
    seen = evidence(FAR, CallOutcome(freshness=0.4, completeness=0.3))
    assert (seen.freshness, seen.completeness) == (0.4, 0.3)
    broke = evidence(FAR, CallOutcome(problem=problem("NETWORK_ERROR", "…")))
    assert (broke.completeness, broke.validation) == (0.0, 0.3)
    ruled = evidence(FAR, CallOutcome(problem=problem("INVALID_ARGUMENTS", "…")))
    assert (ruled.completeness, ruled.validation) == (0.0, 0.8)


@pytest.mark.requirement("E8")
def test_own_evidence_gets_record_and_age() -> None:
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
def test_confidence_of_mcp_hints_is_capped() -> None:
    ours = for_outcome(FAR, TRIED, CallOutcome()).confidence
    old = for_outcome(FAR, TRIED, CallOutcome(freshness=0.5)).confidence
    assert old < ours < 1.0
    assert with_record(Hints(confidence=1.0), FAR, TRIED).confidence == ours
    assert with_record(Hints(confidence=1.0), FAR, TRIED, 0.5).confidence == old
    assert with_record(Hints(confidence=0.2), FAR, TRIED).confidence == 0.2
    assert with_record(Hints(confidence=1.0), GET, TRIED).confidence == 1.0


@pytest.mark.requirement("E11", "E18")
def test_own_hints_of_an_error_without_action_get_advice() -> None:
    seen = CallOutcome(problem=problem("TOOL_FAILED", "It is locked."))
    advised = with_record(failed("It is locked."), GET, NEW, 1.0, seen)
    generated = for_outcome(GET, NEW, seen)
    assert advised.suggested_next_actions == generated.suggested_next_actions != ()
    assert advised.estimated_impact.effort > 0
    own = failed("It is locked.", fix="unlock")
    assert with_record(own, GET, NEW, 1.0, seen).suggested_next_actions == own.suggested_next_actions


def test_existing_deprecation_warning_is_not_duplicated() -> None:
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
def test_failure_rate_is_a_risk_with_numbers(
    success: float, severity: Any, told: str, failing: float
) -> None:
    (risk,) = risks(ToolRecord(success, 0.0, 50))
    assert (risk.type, risk.severity, risk.probability, risk.impact) == ("accuracy", severity, failing, 0.5)
    assert told in risk.description
    assert matches("hints", f"risk, {told} of the calls failed", f"{risk.description}\n{risk.mitigation}")


@pytest.mark.parametrize(
    "past, count", [(ToolRecord(0.5, 0.0, 4), 0), (ToolRecord(0.5, 0.0, 5), 1), (ToolRecord(0.9, 0.0, 50), 0)]
)
def test_few_failures_or_calls_add_no_risk(past: ToolRecord, count: int) -> None:
    assert len(risks(past)) == count


@pytest.mark.requirement("E9", "E12")
def test_slow_record_adds_small_risk_and_warning() -> None:
    hints = for_outcome(a_tool("cards:get", response_time="fast"), ToolRecord(1.0, 0.2, 5), CallOutcome())
    (risk,), (warning,) = hints.risk_factors, hints.warnings
    assert replace(risk, description="") == Risk(
        type="performance", severity="low", description="", probability=0.5, impact=0.2
    )
    assert replace(warning, message="") == Caution(type="performance", severity="low", message="")
    assert matches("hints", "risk and warning, slow record", f"{risk.description}\n{warning.message}")


@pytest.mark.parametrize(
    "past", [ToolRecord(1.0, 0.1, 50), ToolRecord(1.0, 9.0, 4)], ids=["just in time", "too few to say"]
)
def test_kept_or_untested_promise_adds_nothing(past: ToolRecord) -> None:
    hints = for_outcome(a_tool(response_time="fast"), past, CallOutcome())
    assert (hints.risk_factors, hints.warnings) == ((), ())


@pytest.mark.requirement("E13")
@pytest.mark.parametrize(
    "name, gone",
    [
        ("since", Deprecation(since="1.0.0")),
        (
            "since, until and instead",
            Deprecation(since="1.0.0", replacement="cards:new", removal_date="2030-01-31"),
        ),
    ],
)
def test_deprecation_warning_text(name: str, gone: Deprecation) -> None:
    (warning,) = for_outcome(a_tool("cards:old", deprecated=gone), NEW, CallOutcome()).warnings
    assert (warning.type, warning.severity) == ("deprecation", "medium")
    assert (warning.suggested_fix is not None) == (gone.replacement is not None)
    assert matches(
        "hints", f"warning, deprecated {name}", f"{warning.message}\n{warning.suggested_fix or ''}"
    )


# --- effort, reasoning and assumptions ---


@pytest.mark.requirement("E9", "E18")
def test_impact_belongs_to_the_suggestions() -> None:
    for tool in (None, GET, a_tool(response_time="slow")):
        assert for_outcome(tool, TRIED, CallOutcome()).estimated_impact == Impact()
    asks = for_outcome(GET, TRIED, CallOutcome(asks=True))
    assert asks.estimated_impact.effort > 0
    sure, unsure = (impact_of((replace(ANSWER, confidence=share),), 0.5) for share in (0.9, 0.2))
    assert sure.benefit > unsure.benefit > 0
    assert sure.effort == unsure.effort
    assert impact_of((replace(ANSWER, estimated_time=60_000),), 0.5).effort > sure.effort


@pytest.mark.requirement("E9")
@pytest.mark.parametrize(
    "name, tool, past, seen",
    [
        ("success without record", GET, NEW, CallOutcome()),
        ("success with 75%", GET, ToolRecord(0.75, 0.0, 8), CallOutcome()),
        ("success without tool", None, NEW, CallOutcome()),
        ("external tool with schema", a_tool(family="mcp", output_schema={}), NEW, CallOutcome()),
        ("degraded and changed", replace(FAR, degraded=True, changed="notify"), NEW, CallOutcome()),
        ("empty result", GET, NEW, CallOutcome(completeness=0.5)),
        (
            "a page",
            GET,
            NEW,
            CallOutcome(page=ResultPage("decks", shown=2, total=12, more="nextCursor")),
        ),
        ("question", GET, NEW, CallOutcome(asks=True)),
        ("failure", GET, NEW, CallOutcome(problem=problem("INVALID_ARGUMENTS", "…"))),
        ("failure with 75%", GET, ToolRecord(0.75, 0.0, 8), CallOutcome(problem=problem("TIMEOUT", "…"))),
        ("failure of the tool", GET, NEW, CallOutcome(problem=problem("TOOL_FAILED", "…"))),
        ("result too large", GET, NEW, CallOutcome(problem=problem("RESULT_TOO_LARGE", "…"))),
        ("unknown outcome", GET, NEW, CallOutcome(problem=problem("OUTCOME_UNKNOWN", "…"))),
    ],
)
def test_reasoning_states_conclusion_and_facts(
    name: str, tool: Tool | None, past: ToolRecord, seen: CallOutcome
) -> None:
    made = for_outcome(tool, past, seen)
    reasoning = str(made.reasoning)
    assert ("75%" in reasoning) == ("75%" in name)
    if seen.problem is not None:
        assert seen.problem.code in reasoning
    elif not seen.asks:
        assert f"{made.confidence:g}" in reasoning
    assert matches("hints", f"reasoning of the gateway, {name}", reasoning)


@pytest.mark.requirement("E9")
def test_reasoning_says_which_page_it_is() -> None:
    page = ResultPage("decks", shown=2, total=12, more="nextCursor")
    assert str(for_outcome(GET, NEW, CallOutcome(page=page)).reasoning).startswith("2 of 12 decks ")


@pytest.mark.requirement("E9")
@pytest.mark.parametrize(
    "tool, code, severity",
    [
        (a_tool(destructive=True), None, "high"),
        (a_tool(family="mcp", annotations={"destructiveHint": True}), None, "high"),
        (a_tool(), "OUTCOME_UNKNOWN", "high"),
        (a_tool(destructive=True), "OUTCOME_UNKNOWN", "critical"),
    ],
)
def test_destruction_and_unknown_outcomes_are_risks(tool: Tool, code: str | None, severity: str) -> None:
    seen = CallOutcome(problem=None if code is None else problem(code, "…"))
    own = with_record(Hints(confidence=0.5), tool, NEW, 1.0, seen)
    for made in (for_outcome(tool, NEW, seen), own):
        (risk,) = made.risk_factors
        assert (risk.severity, risk.probability) == (severity, 0.5)
        assert faults(made) == ()
        name = f"risk, {'destructive tool' if code is None else 'unknown outcome'}"
        assert matches("hints", name, f"{risk.description}\n{risk.mitigation}")


def test_certain_or_harmless_outcomes_are_no_risk() -> None:
    harmless = a_tool(family="mcp", annotations={"destructiveHint": False})
    for seen in (CallOutcome(), CallOutcome(problem=problem("INVALID_ARGUMENTS", "…"))):
        assert for_outcome(harmless, NEW, seen).risk_factors == ()


def test_context_needed_and_assumptions() -> None:
    asks = for_outcome(GET, NEW, CallOutcome(asks=True))
    assert (len(asks.context_needed), asks.assumptions) == (1, ())
    assert matches("hints", "context needed by a question", *asks.context_needed)
    assert for_outcome(GET, NEW, CallOutcome(problem=problem("TIMEOUT", "…"))).context_needed == ()
    old = CallOutcome(cached=True, age="about 3 minutes")
    kept = for_outcome(a_tool(degraded=True, changed="notify"), NEW, old)
    assert len(kept.assumptions) == 3
    assert "about 3 minutes" in kept.assumptions[0]
    assert matches("hints", "assumptions of a cached answer", "\n".join(kept.assumptions))
    own = Hints(confidence=0.5, assumptions=("It is spring.",))
    assert with_record(own, a_tool(), NEW, 0.5, old).assumptions == ("It is spring.", kept.assumptions[0])
    assert len(for_outcome(a_tool(), NEW, CallOutcome(cached=True)).assumptions) == 1


@pytest.mark.parametrize(
    "seconds, words",
    [(59.9, "less than a minute"), (60, "about 1 minute"), (7_199, "about 1 hour"), (2e5, "about 2 days")],
)
def test_age_in_words(seconds: float, words: str) -> None:
    assert age_text(seconds) == words
