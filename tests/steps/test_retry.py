"""Retries: only safe calls, few, within the budget and the deadline."""

from collections.abc import Sequence
from contextlib import suppress

import anyio
import pytest

from tests.simulated_clock import simulated_clock
from tests.steps.scripted import Script
from toolcrib.errors import BusinessRuleError, Failed, Lost, Refused, ToolcribError, Unavailable
from toolcrib.model import Tool
from toolcrib.steps.retry import Retry
from toolcrib.testing import a_call, a_tool

pytestmark = pytest.mark.anyio
WRITES = a_tool("far:write", family="mcp")
READS = a_tool("far:read", family="mcp", category="query")
REPEATS = a_tool("far:put", family="mcp", idempotent=True)
OURS = a_tool("near:read", family="function", category="analysis")
GENERATES = a_tool("far:draw", family="mcp", category="generation", idempotent=True)
CLAIMS = a_tool("far:claim", family="mcp", annotations={"readOnlyHint": True, "idempotentHint": True})
UNSENT = Unavailable("NETWORK_ERROR", "connection refused")
DIED = Lost("SOURCE_DOWN", "it died under the call")
UNKNOWN = Lost("OUTCOME_UNKNOWN", "it died under the call")
BUSY = Failed("HTTP_ERROR", "503", retryable=True)
MAY_PASS = Failed("HANDLER_ERROR", "connection reset", retryable=True)


def back_in(seconds: float | None) -> Unavailable:
    return Unavailable("SOURCE_DOWN", "it is started again", retry_after=seconds)


async def attempt(retry: Retry, tool: Tool, script: Script, deadline: float | None = None) -> str:
    """Make one call; return its outcome."""
    stage = retry.fit(tool)
    assert stage is not None
    try:
        await stage(a_call(tool, deadline=deadline), script)
    except ToolcribError as error:
        return error.problem.message
    return "good"


@pytest.mark.requirement("E12")
@pytest.mark.parametrize(
    "tool, is_retried",
    [
        (a_tool(family="core", category="query"), False),
        (a_tool(family="function"), False),
        (a_tool(family="function", category="generation"), False),
        (a_tool(family="function", category="generation", idempotent=True), False),
        (a_tool(family="function", idempotent=True), True),
        (a_tool(family="function", category="query"), True),
        (a_tool(family="function", category="analysis"), True),
        (a_tool(family="langchain"), True),
        (a_tool(family="mcp"), True),
    ],
)
def test_retry_step_is_skipped_for_unrepeatable_functions(tool: Tool, is_retried: bool) -> None:
    assert (Retry().fit(tool) is not None) is is_retried


@pytest.mark.requirement("E12")
@pytest.mark.parametrize(
    "tool, error",
    [
        (WRITES, UNSENT),
        (READS, UNSENT),
        (READS, DIED),
        (REPEATS, DIED),
        (READS, BUSY),
        (REPEATS, Lost("NETWORK_ERROR", "reset")),
        (READS, Unavailable("HTTP_ERROR", "503")),
        (READS, MAY_PASS),
        (REPEATS, MAY_PASS),
        (OURS, MAY_PASS),
        (GENERATES, UNSENT),
    ],
)
async def test_safe_failures_are_retried(tool: Tool, error: ToolcribError) -> None:
    script = Script(error, error)
    assert await attempt(Retry(first_delay=0.001), tool, script) == "good"
    assert script.tries == 3


@pytest.mark.requirement("E12")
@pytest.mark.parametrize(
    "tool, error",
    [
        (WRITES, DIED),
        (WRITES, UNKNOWN),
        (WRITES, BUSY),
        (WRITES, MAY_PASS),
        (OURS, Failed("HANDLER_ERROR", "it raised")),
        (GENERATES, DIED),
        (GENERATES, BUSY),
        (GENERATES, Lost("NETWORK_ERROR", "reset")),
        (CLAIMS, DIED),
        (READS, Lost("TIMEOUT", "too late")),
        (READS, back_in(0.1)),
        (READS, Refused("OVERLOADED", "busy", retry_after=0.1)),
        (READS, Failed("TOOL_FAILED", "no")),
        (READS, Failed("HTTP_ERROR", "404", retryable=False)),
        (READS, BusinessRuleError("CLOSED", "come back", retryable=True)),
    ],
)
async def test_unsafe_failures_are_not_retried(tool: Tool, error: ToolcribError) -> None:
    script = Script(error)
    assert await attempt(Retry(first_delay=0.001), tool, script) == error.problem.message
    assert script.tries == 1


async def test_at_most_two_retries() -> None:
    script = Script(*[UNSENT] * 5)
    assert await attempt(Retry(first_delay=0.001), WRITES, script) == "connection refused"
    assert script.tries == 3


@pytest.mark.parametrize(
    "errors, said, tries",
    [
        ([UNSENT, UNKNOWN], "it died under the call", 2),
        ([UNSENT, Failed("TOOL_FAILED", "no")], "no", 2),
        ([UNSENT, back_in(0.001)], "connection refused", 2),
        ([UNSENT, Refused("OVERLOADED", "busy")], "connection refused", 2),
    ],
)
async def test_error_of_the_last_sent_attempt_is_returned(
    errors: Sequence[ToolcribError], said: str, tries: int
) -> None:
    script = Script(*errors)
    assert await attempt(Retry(first_delay=0.001), WRITES, script) == said
    assert script.tries == tries


async def test_short_retry_after_is_waited_for() -> None:
    script, before = Script(DIED, back_in(0.05)), anyio.current_time()
    assert await attempt(Retry(first_delay=0.001), READS, script) == "good"
    assert anyio.current_time() - before >= 0.05
    assert script.tries == 3


@pytest.mark.parametrize("seconds", [None, 1.1, 60.0])
@simulated_clock
async def test_long_retry_after_is_not_waited_for(seconds: float | None) -> None:
    script = Script(DIED, back_in(seconds))
    with anyio.fail_after(1):
        assert await attempt(Retry(first_delay=0.001), READS, script) == DIED.problem.message
    assert script.tries == 2


@pytest.mark.requirement("E12")
@simulated_clock
async def test_no_retry_outlasts_the_callers_deadline() -> None:
    script = Script(DIED, back_in(0.5))
    deadline = anyio.current_time() + 0.3
    assert await attempt(Retry(first_delay=0.001), READS, script, deadline) == DIED.problem.message
    assert script.tries == 2
    past = Script(UNSENT)
    assert await attempt(Retry(first_delay=0.001), READS, past, anyio.current_time()) == "connection refused"
    assert past.tries == 1


@pytest.mark.requirement("E12")
async def test_retry_budget_is_a_tenth_of_the_calls() -> None:
    retry, tries = Retry(first_delay=0.0), 0
    for _ in range(200):
        script = Script(*[UNSENT] * 3)
        await attempt(retry, READS, script)
        tries += script.tries
    assert 200 + 10 <= tries <= 200 + 10 + 20
    script = Script(UNSENT)
    assert await attempt(retry, a_tool("near:read", family="mcp"), script) == "good"


@pytest.mark.requirement("E12")
async def test_pause_has_full_jitter_and_doubling_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bounds, slept = list[tuple[float, float]](), list[float]()

    def pick(lowest: float, highest: float) -> float:
        bounds.append((lowest, highest))
        return highest / 2

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr("toolcrib.steps.retry.uniform", pick)
    monkeypatch.setattr("toolcrib.steps.retry.anyio.sleep", sleep)
    assert await attempt(Retry(), OURS, Script(MAY_PASS, MAY_PASS)) == "good"
    assert bounds == [(0, 0.05), (0, 0.1)]
    assert slept == [0.025, 0.05]


async def test_cancellation_ends_the_wait() -> None:
    soon = Unavailable("NETWORK_ERROR", "try again", retry_after=0.9)
    with anyio.move_on_after(0.01) as gone:
        await attempt(Retry(), READS, Script(soon))
    assert gone.cancelled_caught


# --- budget, patience and deadline ---


async def tries(retry: Retry, *errors: ToolcribError, deadline: float | None = None) -> int:
    """Make one call; return the number of attempts."""
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
async def test_budget_bounds_the_number_of_retries(budget: float, asked: list[int]) -> None:
    retry = Retry(budget=budget, tokens_per_call=0.0)
    assert [await tries(retry, UNSENT) for _ in asked] == asked


@pytest.mark.usefixtures("no_chance")
async def test_every_call_refills_the_budget_by_its_share() -> None:
    retry = Retry(budget=1.0, tokens_per_call=0.5)
    assert [await tries(retry, UNSENT) for _ in range(5)] == [2, 1, 2, 1, 2]


@pytest.mark.parametrize("wait, asked", [(0.01, 2), (0.011, 1)])
@pytest.mark.usefixtures("no_chance")
async def test_retry_after_is_waited_for_within_patience(wait: float, asked: int) -> None:
    later = Unavailable("NETWORK_ERROR", "busy", retry_after=wait)
    assert await tries(Retry(max_retry_after=0.01), later) == asked


@pytest.mark.usefixtures("no_chance")
async def test_no_retry_starts_at_the_deadline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = anyio.current_time()
    monkeypatch.setattr("toolcrib.steps.retry.anyio.current_time", lambda: now)
    assert await tries(Retry(), UNSENT, deadline=now) == 1
    assert await tries(Retry(), UNSENT, deadline=now + 0.001) == 2


async def test_pause_bounds_for_configured_pause(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bounds: list[tuple[float, float]] = []

    def pick(low: float, high: float) -> float:
        bounds.append((low, high))
        return 0.0

    monkeypatch.setattr("toolcrib.steps.retry.uniform", pick)
    assert await tries(Retry(max_retries=3, first_delay=0.25), UNSENT, UNSENT, UNSENT) == 4
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
async def test_lost_source_is_retried_only_with_retry_after(second: ToolcribError, asked: int) -> None:
    assert await tries(Retry(), Lost("SOURCE_DOWN", "it died"), second) == asked
