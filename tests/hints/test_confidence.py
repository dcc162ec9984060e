"""Confidence never falls when what it is reckoned from gets better, and stays in its range."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.hints import Evidence, confidence
from toolcrib.hints.confidence import FLOOR, FRESHNESS, QUALITY, success

NAMES = ("quality", "freshness", "completeness", "validation", "success")
shares = st.floats(0, 1)
evidence = st.builds(
    Evidence, quality=shares, freshness=shares, completeness=shares, validation=shares, success=shares
)


@pytest.mark.requirement("E8")
@pytest.mark.parametrize("name", NAMES)
@given(evidence, shares, shares)
def test_confidence_never_falls_when_one_of_the_five_rises(
    name: str, known: Evidence, one: float, other: float
) -> None:
    low, high = sorted((one, other))
    worse, better = replace(known, **{name: low}), replace(known, **{name: high})
    assert confidence(worse) <= confidence(better)


@pytest.mark.requirement("E8")
@given(evidence)
def test_confidence_stays_between_nothing_and_certainty(known: Evidence) -> None:
    assert 0.0 <= confidence(known) <= 1.0


@pytest.mark.requirement("E8")
@pytest.mark.parametrize("name", NAMES)
def test_each_of_the_five_moves_confidence_and_in_many_steps(name: str) -> None:
    values = [confidence(replace(Evidence(quality=0.98), **{name: step / 50})) for step in range(51)]
    assert values == sorted(values)
    assert len(set(values)) == 51


@pytest.mark.requirement("E8")
def test_what_is_all_good_is_certain_and_what_is_all_bad_is_nearly_nothing() -> None:
    good, bad = Evidence(quality=1.0), dict.fromkeys(NAMES, 0.0)
    assert confidence(good) == 1.0
    assert confidence(Evidence(**bad)) == 0.0
    assert confidence(Evidence(**(bad | {"quality": 1.0}))) == round(0.6 * 0.5 * 0.3 * 0.4, 3)


@pytest.mark.parametrize("name", FLOOR)
def test_one_bad_thing_alone_leaves_what_the_table_says(name: str) -> None:
    assert confidence(replace(Evidence(quality=1.0), **{name: 0.0})) == FLOOR[name]


@pytest.mark.parametrize("far", [-3.0, 1e300, float("inf"), float("nan")])
def test_nonsense_stays_in_range(far: float) -> None:
    assert 0.0 <= confidence(Evidence(quality=far)) <= 1.0


def test_words_count_in_their_order() -> None:
    assert QUALITY["high"] > QUALITY["medium"] > QUALITY["unknown"] > QUALITY["low"] > 0
    order = ("current", "fresh", "recent", "unknown", "stale", "outdated")
    counts = [FRESHNESS[word] for word in order]
    assert counts == sorted(counts, reverse=True)
    assert set(order) == set(FRESHNESS)


@given(st.floats(0, 1), st.integers(0, 10_000))
def test_a_record_counts_the_more_the_longer_it_is(rate: float, calls: int) -> None:
    known = success(rate, calls)
    assert min(rate, 0.9) - 1e-9 <= known <= max(rate, 0.9) + 1e-9
    assert abs(success(rate, calls + 1) - rate) <= abs(known - rate) + 1e-9


def test_nobody_knows_a_tool_that_was_never_called() -> None:
    assert success(1.0, 0) == success(0.0, 0) == 0.9
    assert success(0.0, 4) == pytest.approx(0.45)
