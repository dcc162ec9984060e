"""Activation: a call waits for a source that is on its way up, not for one that is down."""

import anyio
import pytest

from toolcrib.errors import Unavailable
from toolcrib.steps.activate import Activate
from toolcrib.testing import a_call, a_tool, echo

pytestmark = pytest.mark.anyio

TOOL = a_tool("far:echo", family="mcp")


class Sleeper:
    """A source that is woken, and how often."""

    def __init__(self, *, up: bool = False, takes: float = 0.0) -> None:
        self.up, self.takes, self.woken = up, takes, 0

    def is_up(self, source: str) -> bool:
        assert source == "far"
        return self.up

    async def wake(self, source: str) -> None:
        assert source == "far"
        self.woken += 1
        await anyio.sleep(self.takes)
        self.up = True


@pytest.mark.parametrize("family", ["function", "core"])
async def test_what_runs_in_this_process_needs_no_waking(family: str) -> None:
    sleeper = Sleeper()
    assert Activate(sleeper.is_up, sleeper.wake).fit(a_tool(family=family)) is None


async def test_one_that_is_up_is_not_woken() -> None:
    sleeper = Sleeper(up=True)
    stage = Activate(sleeper.is_up, sleeper.wake).fit(TOOL)
    assert stage is not None
    assert (await stage(a_call(TOOL, arguments={"a": 1}), echo)).data == {"a": 1}
    assert sleeper.woken == 0


async def test_one_that_sleeps_is_woken_and_then_called() -> None:
    sleeper = Sleeper()
    stage = Activate(sleeper.is_up, sleeper.wake).fit(TOOL)
    assert stage is not None
    assert (await stage(a_call(TOOL), echo)).data == {}
    assert (sleeper.woken, sleeper.up) == (1, True)


async def test_the_wait_has_an_end_and_nothing_was_done() -> None:
    sleeper = Sleeper(takes=60.0)
    stage = Activate(sleeper.is_up, sleeper.wake, limit=0.01).fit(TOOL)
    assert stage is not None
    with pytest.raises(Unavailable, match="nothing was done") as down:
        await stage(a_call(TOOL), echo)
    assert (down.value.problem.code, down.value.problem.retry_after) == ("SOURCE_DOWN", 1.0)


async def test_what_waking_says_is_passed_on() -> None:
    async def refuse(source: str) -> None:
        raise Unavailable("SOURCE_DOWN", f"{source} is down", retry_after=3.0)

    stage = Activate(lambda _source: False, refuse).fit(TOOL)
    assert stage is not None
    with pytest.raises(Unavailable, match="far is down"):
        await stage(a_call(TOOL), echo)
