"""The gateway's own hints: complete, honest, and reckoned from what is known."""

import json
from time import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.eleven import ELEVEN
from toolcrib.errors import CODES, problem
from toolcrib.gateway.completion import Completion
from toolcrib.gateway.generated_hints import CallOutcome, ToolRecord, for_outcome, with_record
from toolcrib.hints import faults
from toolcrib.model import Deprecation, Evidence, Hints, Origin, Problem, Result
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
def test_hints_are_complete_and_faultless_for_every_outcome(past: ToolRecord, seen: CallOutcome) -> None:
    hints = for_outcome(a_tool(category="query"), past, seen)
    spelled = json.loads(hints.encoded)
    assert spelled == json.loads(json.dumps(hints.as_json()))
    assert spelled.keys() >= ELEVEN
    assert faults(hints) == ()
    assert bool(spelled["suggestedNextActions"]) is (seen.problem is not None or seen.asks)


@pytest.mark.requirement("E8")
@given(rates, rates, st.integers(0, 1000), outcomes)
def test_a_better_record_never_lowers_confidence(a: float, b: float, calls: int, seen: CallOutcome) -> None:
    low, high = sorted((a, b))
    tool = a_tool()
    worse, better = (for_outcome(tool, ToolRecord(rate, 0.0, calls), seen) for rate in (low, high))
    assert worse.confidence <= better.confidence


@pytest.mark.requirement("E8")
def test_failure_age_gaps_and_a_doubtful_source_lower_confidence() -> None:
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
def test_validity_follows_how_long_an_answer_may_be_kept(ttl: float | None, word: str) -> None:
    assert for_outcome(a_tool(cache_ttl=ttl), ToolRecord(), CallOutcome()).validity_period == word


@pytest.mark.requirement("E9", "E12")
def test_a_shaky_or_slow_record_is_a_risk_and_a_broken_promise_a_warning() -> None:
    shaky = for_outcome(a_tool(response_time="fast"), ToolRecord(0.4, 3.0, 50), CallOutcome())
    assert [risk.type for risk in shaky.risk_factors] == ["accuracy", "performance"]
    assert [each.type for each in shaky.warnings] == ["performance"]
    assert (
        shaky.estimated_impact.effort
        > for_outcome(a_tool(), ToolRecord(0.4, 0.01, 50), CallOutcome()).estimated_impact.effort
    )
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
def test_what_an_author_knows_is_joined_by_the_tools_record() -> None:
    own = Hints(confidence=0.9, evidence=Evidence(quality=0.98, completeness=0.5))
    good, bad = (with_record(own, a_tool(), ToolRecord(rate, 0.0, 100)) for rate in (1.0, 0.2))
    assert bad.confidence < good.confidence
    assert json.loads(bad.encoded)["confidence"] == bad.confidence
    boast = with_record(Hints(confidence=1.0), a_tool(family="mcp"), ToolRecord(0.2, 0.0, 100))
    assert boast.confidence < 0.5, "a server from outside is trusted no more than it has earned"
    said = with_record(Hints(confidence=0.42), a_tool(), ToolRecord(0.2, 0.0, 100))
    assert said.confidence == 0.42, "without evidence it is the author's own figure"


def test_the_part_of_a_request_that_is_wrong_is_named() -> None:
    tool = a_tool(examples=())
    wrong: Problem = problem("INVALID_ARGUMENTS", "…", path="arguments.when")
    hints = for_outcome(tool, ToolRecord(), CallOutcome(problem=wrong))
    assert hints.context_needed == ("arguments.when",)
    unknown = for_outcome(tool, ToolRecord(), CallOutcome(problem=problem("OUTCOME_UNKNOWN", "…")))
    assert unknown.dependencies[0].depends_on == ("check-outcome",)


@pytest.mark.requirement("E8")
def test_an_answer_that_is_old_empty_or_full_of_gaps_is_trusted_less() -> None:
    schema: Any = {"type": "object", "required": ["a", "b"], "properties": {"a": {}, "b": {}}}
    tool = a_tool(category="query", output_schema=schema, cache_ttl=100.0)
    completion = Completion(lambda _tool: (1.0, 0.0, 50))

    def trust(result: Result) -> float:
        hints = completion.complete(result, tool, Origin(), 0.1).hints
        assert hints is not None
        return hints.confidence

    whole, gaps, hollow = ({"a": 1, "b": 2}, {"a": 1, "b": None}, [])
    assert trust(Result(data=whole)) > trust(Result(data=gaps))
    assert trust(Result(data=whole)) > trust(Result(data=hollow))
    ages = [trust(Result(data=whole, cached=True, made=time() - age)) for age in (1, 30, 60, 90, 500)]
    assert ages == sorted(ages, reverse=True)
    assert len(set(ages)) >= 4


@pytest.mark.requirement("G1")
@pytest.mark.parametrize(
    "said, spoken",
    [
        ("This card is locked until tomorrow.", "This card is locked until tomorrow."),
        ("see https://internal.example/x", CODES["TOOL_FAILED"].speak),
        ("ERR_17 in table_cards", CODES["TOOL_FAILED"].speak),
        ("db.internal.example refused", CODES["TOOL_FAILED"].speak),
    ],
)
def test_a_tools_own_words_are_spoken_where_they_can_be(said: str, spoken: str) -> None:
    completion = Completion(lambda _tool: (1.0, 0.0, 0))
    trouble = problem("TOOL_FAILED", said, tool_code="LOCKED")
    assert completion.complete(Result(problem=trouble), a_tool(), Origin(), 0.1).message == spoken


@pytest.mark.requirement("G1")
@given(st.sampled_from(sorted(CODES)))
def test_an_error_is_spoken_without_codes_or_addresses(code: str) -> None:
    trouble = problem(code, "10.0.0.7:5432 SQLSTATE 42P01")
    result = Completion(lambda _tool: (1.0, 0.0, 0)).complete(Result(problem=trouble), None, Origin(), 0.0)
    assert result.message == CODES[code].speak


def test_prepared_hints_are_used_again_and_forgotten_with_the_catalog() -> None:
    completion, tool = Completion(lambda _tool: (1.0, 0.0, 0)), a_tool()
    first, again = (completion.complete(Result(data={}), tool, Origin(), 0.1).hints for _ in range(2))
    assert first is again
    completion.forget()
    assert completion.complete(Result(data={}), tool, Origin(), 0.1).hints is not first
