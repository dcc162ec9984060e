"""Runs that were cut off for what their server sent count as failures in a row, however long they were up."""

import pytest

from toolcrib.interfaces import Upkeep
from toolcrib.supervisor.backoff import MISBEHAVING_SECONDS, Backoff

pytestmark = pytest.mark.requirement("C2", "I5")

UP = 60.0
"""Seconds that make any other run a good one."""


def states(runs: int, up: float, *, misbehaved: bool) -> list[str]:
    """The states after runs of equal length."""
    backoff, now, found = Backoff(Upkeep(most_restarts=3, backoff=0.1), 60.0, None), 0.0, list[str]()
    for _ in range(runs):
        backoff.came_up(now)
        now += up
        backoff.connection_lost(now)
        backoff.misbehaved = misbehaved
        found.append(backoff.failed(now, unreachable=False)[0])
    return found


def test_repeated_disconnects_are_a_crash_loop() -> None:
    assert states(5, UP, misbehaved=True) == ["down", "down", "down", "crash_loop", "crash_loop"]


def test_occasional_crashes_are_no_crash_loop() -> None:
    assert states(5, UP, misbehaved=False) == ["down"] * 5


def test_long_uptime_resets_the_backoff() -> None:
    assert states(5, MISBEHAVING_SECONDS, misbehaved=True) == ["down"] * 5
