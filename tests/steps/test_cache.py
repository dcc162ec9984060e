"""The result cache: per caller unless shared, never for mutations or errors, single-flight."""

from dataclasses import replace

import anyio
import orjson
import pytest

from toolcrib.errors import Failed, problem
from toolcrib.interfaces import Handler
from toolcrib.model import Call, Family, JsonObject, Result, Tool
from toolcrib.steps.cache import Cache
from toolcrib.store.shared.memory import MemoryShared
from toolcrib.testing import a_call, a_caller, a_tool, echo

pytestmark = pytest.mark.anyio
QUERY = a_tool("fake:ask", category="query", cache_ttl=60.0)


class Counter:
    """Returns the number of its calls."""

    def __init__(self) -> None:
        self.asked = 0

    async def __call__(self, call: Call) -> Result:
        self.asked += 1
        return Result(data={"asked": self.asked, "who": call.caller.id})


@pytest.mark.requirement("E12")
@pytest.mark.parametrize(
    "tool", [a_tool(), a_tool(cache_ttl=60.0, category="mutation"), a_tool(category="query")]
)
async def test_uncacheable_tools_have_no_cache_step(tool: Tool) -> None:
    assert Cache(MemoryShared()).fit(tool) is None


async def test_equal_calls_are_answered_from_the_cache() -> None:
    stage, counter = Cache(MemoryShared()).fit(QUERY), Counter()
    assert stage is not None
    first = await stage(a_call(QUERY, arguments={"a": 1, "b": 2}), counter)
    again = await stage(a_call(QUERY, arguments={"b": 2, "a": 1}), counter)
    other = await stage(a_call(QUERY, arguments={"a": 2}), counter)
    assert (first.cached, again.cached, other.cached) == (False, True, False)
    assert again.data == first.data
    assert counter.asked == 2


@pytest.mark.check(4)
async def test_cache_is_separate_per_caller() -> None:
    stage, counter = Cache(MemoryShared()).fit(QUERY), Counter()
    assert stage is not None
    one = await stage(a_call(QUERY, caller=a_caller(id="key:1")), counter)
    two = await stage(a_call(QUERY, caller=a_caller(id="key:2")), counter)
    assert one.data["who"] == "key:1"
    assert two.data["who"] == "key:2"


async def test_shared_cache_is_shared_between_callers() -> None:
    tool = replace(QUERY, shared_cache=True)
    stage, counter = Cache(MemoryShared()).fit(tool), Counter()
    assert stage is not None
    await stage(a_call(tool, caller=a_caller(id="key:1")), counter)
    assert (await stage(a_call(tool, caller=a_caller(id="key:2")), counter)).cached


async def test_changed_definition_invalidates_the_cache() -> None:
    shared, counter = MemoryShared(), Counter()
    for fingerprint in ("one", "two"):
        tool = replace(QUERY, fingerprint=fingerprint)
        stage = Cache(shared).fit(tool)
        assert stage is not None
        await stage(a_call(tool), counter)
    assert counter.asked == 2


async def test_errors_are_not_cached() -> None:
    stage = Cache(MemoryShared()).fit(QUERY)
    assert stage is not None
    outcomes = [Result(problem=problem("TOOL_FAILED", "no")), Result(data={"ok": True})]

    async def answer(_call: Call) -> Result:
        return outcomes.pop(0)

    assert (await stage(a_call(QUERY), answer)).problem is not None
    assert (await stage(a_call(QUERY), answer)).data == {"ok": True}


@pytest.mark.check(37)
async def test_concurrent_equal_calls_are_single_flight() -> None:
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


async def test_single_flight_error_is_raised_unchanged() -> None:
    stage = Cache(MemoryShared()).fit(QUERY)
    assert stage is not None

    async def answer(_call: Call) -> Result:
        raise Failed("TOOL_FAILED", "no such row")

    with pytest.raises(Failed, match="no such row"):
        await stage(a_call(QUERY), answer)


# --- concurrent calls ---


class UnusedChannel:
    """An elicitation channel that must not be used."""

    owner, alone, level = "somebody", True, None

    def __init__(self) -> None:
        self.capabilities: JsonObject = {"elicitation": {}}

    async def ask(self, method: str, params: JsonObject) -> JsonObject:
        raise AssertionError(method)

    async def log(self, params: JsonObject) -> None:
        raise AssertionError(params)


class Held:
    """Returns the arguments once it is opened."""

    def __init__(self) -> None:
        self.open, self.calls = anyio.Event(), 0

    async def __call__(self, call: Call) -> Result:
        self.calls += 1
        await self.open.wait()
        return await echo(call)


def answering(result: Result) -> Handler:
    async def answer(_call: Call) -> Result:
        return result

    return answer


async def at_once(tool: Tool, *calls: Call) -> tuple[list[Result], int]:
    """Make concurrent calls; return their results in order and the number that reached the tool."""
    stage, held = Cache(MemoryShared()).fit(tool), Held()
    assert stage is not None
    results: dict[int, Result] = {}

    async def one(place: int, call: Call) -> None:
        results[place] = await stage(call, held)

    async with anyio.create_task_group() as tasks:
        for place, call in enumerate(calls):
            tasks.start_soon(one, place, call)
        await anyio.wait_all_tasks_blocked()
        held.open.set()
    return [results[place] for place in range(len(calls))], held.calls


async def test_concurrent_different_calls_are_separate() -> None:
    asked = [a_call(QUERY, arguments={"number": number}) for number in range(3)]
    results, calls = await at_once(QUERY, *asked)
    assert ([result.data["number"] for result in results], calls) == ([0, 1, 2], 3)


@pytest.mark.parametrize("family, calls", [("function", 1), ("core", 1), ("mcp", 2)])
async def test_callers_with_channel_share_only_local_flights(family: Family, calls: int) -> None:
    tool = a_tool("far:ask", family=family, category="query", cache_ttl=60.0)
    results, reached = await at_once(
        tool, a_call(tool, channel=UnusedChannel()), a_call(tool, channel=UnusedChannel())
    )
    assert ([result.data for result in results], reached) == ([{}, {}], calls)


# --- what is stored ---


async def test_cached_answer_has_its_creation_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolcrib.steps.cache.time", lambda: 1234.5)
    stage = Cache(MemoryShared()).fit(QUERY)
    assert stage is not None
    await stage(a_call(QUERY), echo)
    assert (await stage(a_call(QUERY), echo)).made == 1234.5


async def test_mutating_an_answer_does_not_change_the_cache() -> None:
    stage, data = Cache(MemoryShared()).fit(QUERY), {"words": ["one"]}
    assert stage is not None
    first = await stage(a_call(QUERY), answering(Result(data=data, encoded=orjson.dumps(data))))
    first.data["words"].append("two")
    assert (await stage(a_call(QUERY), echo)).data == {"words": ["one"]}


class SizeRecorder(MemoryShared):
    """Records the sizes of stored results."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: list[int] = []

    async def keep(self, key: str, result: Result, ttl: float) -> None:
        self.sizes.append(len(result.encoded))


async def test_answers_up_to_a_megabyte_are_cached() -> None:
    shared, megabyte = SizeRecorder(), 1024 * 1024
    stage = Cache(shared).fit(QUERY)
    assert stage is not None
    for size in (megabyte, megabyte + 1):
        text = "x" * (size - len('""'))
        await stage(a_call(QUERY), answering(Result(data=text, encoded=orjson.dumps(text))))
    assert shared.sizes == [megabyte]
