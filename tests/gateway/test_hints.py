"""The gateway's own hints: complete, honest, and reckoned from what is known."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.errors import CODES, problem
from toolcrib.gateway.complete import Completion
from toolcrib.gateway.hints import Past, confidence, for_outcome
from toolcrib.model import Deprecation, Origin, Problem, Result
from toolcrib.testing import a_tool

rates = st.floats(0, 1)
pasts = st.builds(Past, rates, st.floats(0, 100), st.integers(0, 1000))
problems = st.none() | st.sampled_from(sorted(CODES)).map(lambda code: problem(code, "…"))


@given(pasts, problems, st.booleans())
def test_hints_are_complete_for_every_outcome(past: Past, trouble: Problem | None, cached: bool) -> None:
    hints = for_outcome(a_tool(category="query"), past, trouble, cached=cached)
    spelled = json.loads(hints.encoded)
    assert spelled == json.loads(json.dumps(hints.as_json()))
    assert 0 <= spelled["confidence"] <= 1
    impact = spelled["estimatedImpact"]
    assert impact["roi"] == round(impact["benefit"] / impact["effort"], 2)
    assert bool(spelled["suggestedNextActions"]) is (trouble is not None)


@given(rates, rates, problems, st.booleans())
def test_a_better_record_never_lowers_confidence(
    a: float, b: float, trouble: Problem | None, cached: bool
) -> None:
    low, high = sorted((a, b))
    assert confidence("high", Past(low), trouble, cached=cached) <= confidence(
        "high", Past(high), trouble, cached=cached
    )


def test_failure_and_age_lower_confidence() -> None:
    past = Past()
    fresh = confidence("high", past, None, cached=False)
    assert confidence("high", past, None, cached=True) < fresh
    assert confidence("high", past, problem("TIMEOUT", "…"), cached=False) < fresh
    assert (
        confidence("low", past, None, cached=False) < confidence("medium", past, None, cached=False) < fresh
    )


@pytest.mark.parametrize(
    "ttl, word",
    [(None, "immediate"), (60.0, "short"), (3600.0, "medium"), (86400.0, "long"), (1e6, "indefinite")],
)
def test_validity_follows_how_long_an_answer_may_be_kept(ttl: float | None, word: str) -> None:
    assert for_outcome(a_tool(cache_ttl=ttl), Past(), None, cached=False).validity_period == word


def test_a_shaky_or_slow_record_is_a_risk() -> None:
    shaky = for_outcome(a_tool(response_time="fast"), Past(0.4, 3.0, 50), None, cached=False)
    assert [risk["type"] for risk in shaky.risk_factors] == ["accuracy", "performance"]
    assert for_outcome(a_tool(), Past(0.4, 3.0, 2), None, cached=False).risk_factors == ()


def test_a_deprecated_tool_warns_and_names_its_replacement() -> None:
    tool = a_tool(deprecated=Deprecation(since="1.2.0", replacement="fake:better", removal_date="2099-01-01"))
    hints = for_outcome(tool, Past(), None, cached=False)
    assert "fake:better" in hints.suggested_next_actions[0]["description"]
    assert hints.warnings[0]["type"] == "deprecation"
    assert "2099-01-01" in hints.warnings[0]["message"]


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
    completion = Completion(lambda _tool: (1.0, 0.0, 0))
    first, again = (completion.complete(Result(data={}), a_tool(), Origin(), 0.1).hints for _ in range(2))
    assert first is again
    completion.forget()
    assert completion.complete(Result(data={}), a_tool(), Origin(), 0.1).hints is not first
