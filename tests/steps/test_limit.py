"""Rate limits per user and tool: a burst, then an even rate."""

from collections.abc import Sequence

import pytest

from tests.texts import matches
from toolcrib.errors import Refused
from toolcrib.interfaces import RateDemand
from toolcrib.model import RateLimit
from toolcrib.steps.limit import Limit
from toolcrib.store.shared.memory import MemoryShared
from toolcrib.testing import a_call, a_caller, a_tool, echo

pytestmark = pytest.mark.anyio


async def test_unlimited_tool_has_no_limit_step() -> None:
    assert Limit(MemoryShared()).fit(a_tool()) is None


async def test_excess_call_is_rate_limited_with_retry_after() -> None:
    stage = Limit(MemoryShared(), per_user=RateLimit(2, 60_000)).fit(a_tool())
    assert stage is not None
    for _ in range(2):
        assert (await stage(a_call(), echo)).problem is None
    with pytest.raises(Refused) as refused:
        await stage(a_call(), echo)
    problem = refused.value.problem
    assert problem.code == "RATE_LIMITED"
    assert problem.retryable
    assert problem.retry_after is not None
    assert 0 < problem.retry_after <= 30


async def test_callers_do_not_share_a_limit() -> None:
    stage = Limit(MemoryShared(), per_user=RateLimit(1, 60_000)).fit(a_tool())
    assert stage is not None
    await stage(a_call(caller=a_caller(id="key:a")), echo)
    await stage(a_call(caller=a_caller(id="key:b")), echo)
    with pytest.raises(Refused):
        await stage(a_call(caller=a_caller(id="key:a")), echo)


async def test_limit_of_a_tool_counts_for_that_tool_only() -> None:
    limit = Limit(MemoryShared())
    tight = limit.fit(a_tool("fake:tight", rate_limit=RateLimit(1, 60_000)))
    other = limit.fit(a_tool("fake:other", rate_limit=RateLimit(1, 60_000)))
    assert tight is not None
    assert other is not None
    await tight(a_call(), echo)
    await other(a_call(), echo)
    with pytest.raises(Refused, match="fake:tight"):
        await tight(a_call(), echo)


async def test_operator_limits_match_by_glob() -> None:
    limit = Limit(MemoryShared(), per_tool={"fake:*": RateLimit(1, 1000)})
    assert limit.fit(a_tool("fake:a")) is not None
    assert limit.fit(a_tool("other:a")) is None


async def test_all_limits_are_taken_in_one_request() -> None:
    asked: list[Sequence[RateDemand]] = []

    class Asked(MemoryShared):
        async def take(self, demands: Sequence[RateDemand]) -> float:
            asked.append(demands)
            return 0.0

    limit = Limit(Asked(), per_user=RateLimit(5, 1000), per_tool={"*": RateLimit(7, 2000)})
    stage = limit.fit(a_tool(rate_limit=RateLimit(9, 3000)))
    assert stage is not None
    await stage(a_call(), echo)
    assert [(demand.calls, demand.window) for demand in asked[0]] == [(5, 1.0), (9, 3.0), (7, 2.0)]
    assert len({demand.key for demand in asked[0]}) == 3


FAR = a_tool("far:echo", family="mcp")


class Busy(MemoryShared):
    """Always returns this wait."""

    def __init__(self, wait: float) -> None:
        super().__init__()
        self.wait = wait

    async def take(self, demands: Sequence[RateDemand]) -> float:
        return self.wait


@pytest.mark.parametrize("wait, said", [(12.34, "12.4 s"), (0.2, "0.2 s"), (30.0, "30 s")])
async def test_wait_is_exact_in_retry_after_and_rounded_in_text(wait: float, said: str) -> None:
    stage = Limit(Busy(wait), per_user=RateLimit(1, 1000)).fit(FAR)
    assert stage is not None
    with pytest.raises(Refused) as refused:
        await stage(a_call(FAR), echo)
    problem = refused.value.problem
    assert problem.code == "RATE_LIMITED"
    assert problem.message.endswith(f" {said}")
    assert matches("errors", f"rate limit, {said}", problem.message)
    assert problem.retry_after == wait
