"""The energy cost of a call is taken once, only in contexts that use energy."""

import pytest

from toolcrib.model import Call, Result
from toolcrib.steps.spend import Spend
from toolcrib.testing import a_call, a_caller, a_tool

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("F5")]


async def _done(call: Call) -> Result:
    return Result(data=call.id)


async def test_call_spends_the_energy_cost_of_its_tool() -> None:
    taken: list[tuple[str, float]] = []

    async def take(who: str, cost: float) -> None:
        taken.append((who, cost))

    step = Spend(lambda caller: caller.context == "small", lambda tool: tool.energy_cost or 1.0, take)
    tool = a_tool("tools:dear", energy_cost=7.0)
    stage = step.fit(tool)
    assert stage is not None
    for context in ("small", "default", "small"):
        assert (await stage(a_call(tool, caller=a_caller(id="key:a", context=context)), _done)).data
    assert taken == [("key:a", 7.0)] * 2


def test_spend_step_is_skipped_for_free_tools() -> None:
    async def take(who: str, cost: float) -> None: ...

    assert Spend(bool, lambda _: 0.0, take).fit(a_tool("tools:free")) is None
    assert Spend(bool, lambda _: 0.5, take).fit(a_tool("tools:cheap")) is not None
