"""The rate limits keep their promise: never more than burst and refill, and waiting as told suffices."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolcrib.interfaces import RateDemand
from toolcrib.store.shared.memory import TOLERANCE_SECONDS, RateLimits


class Clock:
    def __init__(self, now: float = 50_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


calls = st.integers(1, 40)
windows = st.floats(0.05, 5_000.0)
gaps = st.lists(st.floats(0.0, 2.0), min_size=1, max_size=80)
"""Time between calls, as parts of a window's step."""


@given(calls=calls, window=windows, gaps=gaps)
@pytest.mark.check(36)
def test_no_stretch_of_time_sees_more_than_burst_and_refill(
    calls: int, window: float, gaps: list[float]
) -> None:
    clock = Clock()
    rates = RateLimits(clock)
    allowed: list[float] = []
    for gap in gaps:
        clock.now += gap * window / calls
        if rates.take([RateDemand("k", calls, window)]) == 0.0:
            allowed.append(clock.now)
    for first, start in enumerate(allowed):
        for last in range(first, len(allowed)):
            count = last - first + 1
            assert count <= calls + calls * (allowed[last] - start + 2 * TOLERANCE_SECONDS) / window + 1e-6


@given(calls=calls, window=windows, gaps=gaps)
def test_retry_after_is_exact(calls: int, window: float, gaps: list[float]) -> None:
    clock = Clock()
    rates = RateLimits(clock)
    demands = [RateDemand("k", calls, window)]
    for gap in gaps:
        clock.now += gap * window / calls
        wait = rates.take(demands)
        assert 0.0 <= wait <= window / calls + TOLERANCE_SECONDS
        if wait:
            told = clock.now + wait
            clock.now = told - max(0.01 * wait, 10 * TOLERANCE_SECONDS)
            if clock.now > told - wait:
                assert rates.take(demands) > 0.0
            clock.now = told
            assert rates.take(demands) == 0.0


class Exact:
    """The same rule in exact numbers, as plainly as it can be said."""

    def __init__(self) -> None:
        self.whole_at: dict[str, Fraction] = {}

    def take(self, now: Fraction, demands: list[RateDemand]) -> bool:
        due = {
            demand.key: max(self.whole_at.get(demand.key, now), now) + Fraction(demand.window) / demand.calls
            for demand in demands
        }
        if any(due[demand.key] - Fraction(demand.window) > now for demand in demands):
            return False
        self.whole_at.update(due)
        return True


LIMITS = (RateDemand("user", 4, 8.0), RateDemand("tool", 2, 1.0), RateDemand("all", 16, 32.0))
events = st.lists(
    st.tuples(st.integers(0, 1024), st.lists(st.sampled_from(LIMITS), unique=True)), max_size=120
)


@settings(max_examples=200)
@given(events=events)
@pytest.mark.check(36)
def test_several_limits_together_decide_as_exact_numbers_would(
    events: list[tuple[int, list[RateDemand]]],
) -> None:
    clock = Clock(64.0)
    rates, exact = RateLimits(clock), Exact()
    for pause, demands in events:
        clock.now += pause / 1024
        allowed = rates.take(demands) == 0.0
        assert allowed == exact.take(Fraction(clock.now), demands)


def test_keys_that_are_whole_again_are_forgotten() -> None:
    clock = Clock()
    rates = RateLimits(clock)
    for number in range(50_000):
        clock.now += 0.001
        rates.take([RateDemand(f"user {number}", 10, 1.0)])
    assert len(rates) < 3_000


def test_key_limit_evicts_least_indebted_keys() -> None:
    clock = Clock()
    rates = RateLimits(clock, keys=2_000)
    heavy = [RateDemand("heavy", 1, 1_000_000.0)]
    assert rates.take(heavy) == 0.0
    for number in range(20_000):
        rates.take([RateDemand(f"user {number}", 10, 3_600.0)])
        assert len(rates) <= 2_001
    assert rates.take(heavy) > 0.0
