"""Retries at their edges: the last of the budget, the longest patience, and the caller's deadline."""

from contextlib import suppress

import anyio
import pytest

from tests.steps.scripted import Script
from toolcrib.errors import Lost, ToolcribError, Unavailable
from toolcrib.steps.retry import Retry
from toolcrib.testing import a_call, a_tool

pytestmark = pytest.mark.anyio

READS = a_tool("far:read", family="mcp", category="query")
UNSENT = Unavailable("NETWORK_ERROR", "connection refused")


async def tries(retry: Retry, *errors: ToolcribError, deadline: float | None = None) -> int:
    """Make one call; how often the source was asked."""
    stage, source = retry.fit(READS), Script(*errors)
    assert stage is not None
    with suppress(ToolcribError):
        await stage(a_call(READS, deadline=deadline), source)
    return source.tries


@pytest.fixture
def no_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    def lowest(low: float, high: float) -> float:
        return low

    monkeypatch.setattr("toolcrib.steps.retry.uniform", lowest)


@pytest.mark.parametrize(
    "budget, asked",
    [
        (1.0, [2, 1, 1]),
        (2.0, [2, 2, 1]),
        (3.0, [2, 2, 2]),
    ],
)
@pytest.mark.usefixtures("no_chance")
async def test_a_budget_of_so_many_is_worth_so_many_retries(budget: float, asked: list[int]) -> None:
    retry = Retry(budget=budget, share=0.0)
    assert [await tries(retry, UNSENT) for _ in asked] == asked


@pytest.mark.usefixtures("no_chance")
async def test_every_call_earns_its_share_of_a_retry() -> None:
    retry = Retry(budget=1.0, share=0.5)
    assert [await tries(retry, UNSENT) for _ in range(5)] == [2, 1, 2, 1, 2]


@pytest.mark.parametrize("wait, asked", [(0.01, 2), (0.011, 1)])
@pytest.mark.usefixtures("no_chance")
async def test_who_says_when_to_come_back_is_waited_for_as_long_as_patience_lasts(
    wait: float, asked: int
) -> None:
    later = Unavailable("NETWORK_ERROR", "busy", retry_after=wait)
    assert await tries(Retry(patience=0.01), later) == asked


@pytest.mark.usefixtures("no_chance")
async def test_a_try_that_could_only_begin_at_the_deadline_is_not_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = anyio.current_time()
    monkeypatch.setattr("toolcrib.steps.retry.anyio.current_time", lambda: now)
    assert await tries(Retry(), UNSENT, deadline=now) == 1
    assert await tries(Retry(), UNSENT, deadline=now + 0.001) == 2


async def test_the_pause_is_picked_by_chance_below_a_bound_that_doubles(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bounds: list[tuple[float, float]] = []

    def pick(low: float, high: float) -> float:
        bounds.append((low, high))
        return 0.0

    monkeypatch.setattr("toolcrib.steps.retry.uniform", pick)
    assert await tries(Retry(most=3, pause=0.25), UNSENT, UNSENT, UNSENT) == 4
    assert bounds == [(0, 0.25), (0, 0.5), (0, 1.0)]


@pytest.mark.usefixtures("no_chance")
@pytest.mark.parametrize(
    "second, asked",
    [
        (Unavailable("SOURCE_DOWN", "back at once", retry_after=0.001), 3),
        (Unavailable("SOURCE_DOWN", "down"), 2),
        (Unavailable("OVERLOADED", "busy", retry_after=0.001), 2),
        (Lost("TIMEOUT", "too late", retry_after=0.001), 2),
    ],
)
async def test_a_source_that_was_lost_is_waited_for_only_if_it_says_it_is_about_to_be_back(
    second: ToolcribError, asked: int
) -> None:
    assert await tries(Retry(), Lost("SOURCE_DOWN", "it died"), second) == asked
