"""The cache: per caller unless shared, never for mutations or errors, one flight at a time."""

from dataclasses import replace

import anyio
import pytest

from toolcrib.errors import Failed, problem
from toolcrib.model import Call, Result, Tool
from toolcrib.steps.cache import Cache
from toolcrib.store.shared.memory import MemoryShared
from toolcrib.testing import a_call, a_caller, a_tool

pytestmark = pytest.mark.anyio

QUERY = a_tool("fake:ask", category="query", cache_ttl=60.0)


class Counter:
    """Answers with how often it was asked."""

    def __init__(self) -> None:
        self.asked = 0

    async def __call__(self, call: Call) -> Result:
        self.asked += 1
        return Result(data={"asked": self.asked, "who": call.caller.id})


@pytest.mark.requirement("E12")
@pytest.mark.parametrize(
    "tool", [a_tool(), a_tool(cache_ttl=60.0, category="mutation"), a_tool(category="query")]
)
async def test_what_may_not_be_kept_has_no_cache(tool: Tool) -> None:
    assert Cache(MemoryShared()).fit(tool) is None


async def test_the_same_question_is_answered_once() -> None:
    stage, counter = Cache(MemoryShared()).fit(QUERY), Counter()
    assert stage is not None
    first = await stage(a_call(QUERY, arguments={"a": 1, "b": 2}), counter)
    again = await stage(a_call(QUERY, arguments={"b": 2, "a": 1}), counter)
    other = await stage(a_call(QUERY, arguments={"a": 2}), counter)
    assert (first.cached, again.cached, other.cached) == (False, True, False)
    assert again.data == first.data
    assert counter.asked == 2


@pytest.mark.check(4)
async def test_callers_never_see_each_others_answers() -> None:
    stage, counter = Cache(MemoryShared()).fit(QUERY), Counter()
    assert stage is not None
    one = await stage(a_call(QUERY, caller=a_caller(id="key:1")), counter)
    two = await stage(a_call(QUERY, caller=a_caller(id="key:2")), counter)
    assert one.data["who"] == "key:1"
    assert two.data["who"] == "key:2"


async def test_an_operator_may_share_answers() -> None:
    tool = replace(QUERY, shared_cache=True)
    stage, counter = Cache(MemoryShared()).fit(tool), Counter()
    assert stage is not None
    await stage(a_call(tool, caller=a_caller(id="key:1")), counter)
    assert (await stage(a_call(tool, caller=a_caller(id="key:2")), counter)).cached


async def test_a_changed_definition_starts_afresh() -> None:
    shared, counter = MemoryShared(), Counter()
    for fingerprint in ("one", "two"):
        tool = replace(QUERY, fingerprint=fingerprint)
        stage = Cache(shared).fit(tool)
        assert stage is not None
        await stage(a_call(tool), counter)
    assert counter.asked == 2


async def test_errors_are_not_kept() -> None:
    stage = Cache(MemoryShared()).fit(QUERY)
    assert stage is not None
    outcomes = [Result(problem=problem("TOOL_FAILED", "no")), Result(data={"ok": True})]

    async def answer(_call: Call) -> Result:
        return outcomes.pop(0)

    assert (await stage(a_call(QUERY), answer)).problem is not None
    assert (await stage(a_call(QUERY), answer)).data == {"ok": True}


@pytest.mark.check(37)
async def test_equal_questions_at_once_are_asked_once() -> None:
    stage, gate, asked = Cache(MemoryShared()).fit(QUERY), anyio.Event(), 0
    assert stage is not None
    results: list[Result] = []

    async def answer(_call: Call) -> Result:
        nonlocal asked
        asked += 1
        await gate.wait()
        return Result(data={"ok": True})

    async def ask() -> None:
        results.append(await stage(a_call(QUERY), answer))

    async with anyio.create_task_group() as tasks:
        for _ in range(20):
            tasks.start_soon(ask)
        await anyio.wait_all_tasks_blocked()
        gate.set()
    assert asked == 1
    assert sorted(result.cached for result in results) == [False] + [True] * 19


async def test_a_failing_leader_fails_those_who_wait_with_its_own_error() -> None:
    stage = Cache(MemoryShared()).fit(QUERY)
    assert stage is not None

    async def answer(_call: Call) -> Result:
        raise Failed("TOOL_FAILED", "no such row")

    with pytest.raises(Failed, match="no such row"):
        await stage(a_call(QUERY), answer)
