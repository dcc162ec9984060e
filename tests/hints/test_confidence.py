"""Confidence is monotone in its evidence and stays in its range."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.hints import Evidence, confidence
from toolcrib.hints.rules import CONFIDENCE_FLOORS, FRESHNESS_VALUES, QUALITY_VALUES, smoothed_success

NAMES = ("quality", "freshness", "completeness", "validation", "success")
shares = st.floats(0, 1)
evidence = st.builds(
    Evidence, quality=shares, freshness=shares, completeness=shares, validation=shares, success=shares
)


@pytest.mark.requirement("E8")
@pytest.mark.parametrize("name", NAMES)
@given(evidence, shares, shares)
def test_confidence_is_monotone_in_each_factor(name: str, known: Evidence, one: float, other: float) -> None:
    low, high = sorted((one, other))
    worse, better = replace(known, **{name: low}), replace(known, **{name: high})
    assert confidence(worse) <= confidence(better)


@pytest.mark.requirement("E8")
@given(evidence)
def test_confidence_stays_between_0_and_1(known: Evidence) -> None:
    assert 0.0 <= confidence(known) <= 1.0


@pytest.mark.requirement("E8")
@pytest.mark.parametrize("name", NAMES)
def test_each_factor_changes_confidence_gradually(name: str) -> None:
    values = [confidence(replace(Evidence(quality=0.98), **{name: step / 50})) for step in range(51)]
    assert values == sorted(values)
    assert len(set(values)) == 51


@pytest.mark.requirement("E8")
def test_confidence_at_best_and_worst_evidence() -> None:
    good, bad = Evidence(quality=1.0), dict.fromkeys(NAMES, 0.0)
    assert confidence(good) == 1.0
    assert confidence(Evidence(**bad)) == 0.0
    assert confidence(Evidence(**(bad | {"quality": 1.0}))) == round(0.6 * 0.5 * 0.3 * 0.4, 3)


@pytest.mark.parametrize("name", CONFIDENCE_FLOORS)
def test_single_worst_factor_gives_its_floor(name: str) -> None:
    assert confidence(replace(Evidence(quality=1.0), **{name: 0.0})) == CONFIDENCE_FLOORS[name]


@pytest.mark.parametrize("far", [-3.0, 1e300, float("inf"), float("nan")])
def test_invalid_evidence_stays_in_range(far: float) -> None:
    assert 0.0 <= confidence(Evidence(quality=far)) <= 1.0


def test_scale_words_are_ordered() -> None:
    assert (
        QUALITY_VALUES["high"]
        > QUALITY_VALUES["medium"]
        > QUALITY_VALUES["unknown"]
        > QUALITY_VALUES["low"]
        > 0
    )
    order = ("current", "fresh", "recent", "unknown", "stale", "outdated")
    counts = [FRESHNESS_VALUES[word] for word in order]
    assert counts == sorted(counts, reverse=True)
    assert set(order) == set(FRESHNESS_VALUES)


@given(st.floats(0, 1), st.integers(0, 10_000))
def test_longer_records_weigh_more(rate: float, calls: int) -> None:
    known = smoothed_success(rate, calls)
    assert min(rate, 0.9) - 1e-9 <= known <= max(rate, 0.9) + 1e-9
    assert abs(smoothed_success(rate, calls + 1) - rate) <= abs(known - rate) + 1e-9


def test_unused_tool_has_prior_success_rate() -> None:
    assert smoothed_success(1.0, 0) == smoothed_success(0.0, 0) == 0.9
    assert smoothed_success(0.0, 4) == pytest.approx(0.45)
