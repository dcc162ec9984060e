"""What is kept and for whom, what counts towards a size, and how faults of arguments are told."""

import anyio
import orjson
import pytest

from toolcrib.errors import Broken, Refused, problem
from toolcrib.interfaces import Handler
from toolcrib.model import Ask, Call, Family, JsonObject, Result, Tool
from toolcrib.steps.cache import Cache
from toolcrib.steps.shape import Shape
from toolcrib.steps.validate import Validate
from toolcrib.store.shared.memory import MemoryShared
from toolcrib.testing import a_call, a_tool, echo

pytestmark = pytest.mark.anyio

QUERY = a_tool("far:ask", category="query", cache_ttl=60.0)


class Line:
    """A caller that could be asked something, and is not."""

    owner, alone, level = "somebody", True, None

    def __init__(self) -> None:
        self.capabilities: JsonObject = {"elicitation": {}}

    async def ask(self, method: str, params: JsonObject) -> JsonObject:
        raise AssertionError(method)

    async def log(self, params: JsonObject) -> None:
        raise AssertionError(params)


class Held:
    """Answers with its arguments, all at the same moment."""

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
    """Make calls at the same time; their results in that order, and how many of them reached the tool."""
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


# --- cache ---


async def test_different_questions_at_once_get_their_own_answers() -> None:
    asked = [a_call(QUERY, arguments={"number": number}) for number in range(3)]
    results, calls = await at_once(QUERY, *asked)
    assert ([result.data["number"] for result in results], calls) == ([0, 1, 2], 3)


@pytest.mark.parametrize("family, calls", [("function", 1), ("core", 1), ("mcp", 2)])
async def test_only_what_runs_elsewhere_might_ask_each_caller_and_is_asked_for_each(
    family: Family, calls: int
) -> None:
    tool = a_tool("far:ask", family=family, category="query", cache_ttl=60.0)
    results, reached = await at_once(tool, a_call(tool, channel=Line()), a_call(tool, channel=Line()))
    assert ([result.data for result in results], reached) == ([{}, {}], calls)


async def test_a_kept_answer_says_when_it_was_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolcrib.steps.cache.time", lambda: 1234.5)
    stage = Cache(MemoryShared()).fit(QUERY)
    assert stage is not None
    await stage(a_call(QUERY), echo)
    assert (await stage(a_call(QUERY), echo)).made == 1234.5


async def test_what_is_done_to_an_answer_does_not_change_what_is_kept() -> None:
    stage, data = Cache(MemoryShared()).fit(QUERY), {"words": ["one"]}
    assert stage is not None
    first = await stage(a_call(QUERY), answering(Result(data=data, encoded=orjson.dumps(data))))
    first.data["words"].append("two")
    assert (await stage(a_call(QUERY), echo)).data == {"words": ["one"]}


class Kept(MemoryShared):
    """Writes down the sizes of what it is given to keep."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: list[int] = []

    async def keep(self, key: str, result: Result, ttl: float) -> None:
        self.sizes.append(len(result.encoded))


async def test_a_megabyte_is_kept_and_no_byte_more() -> None:
    shared, megabyte = Kept(), 1024 * 1024
    stage = Cache(shared).fit(QUERY)
    assert stage is not None
    for size in (megabyte, megabyte + 1):
        text = "x" * (size - len('""'))
        await stage(a_call(QUERY), answering(Result(data=text, encoded=orjson.dumps(text))))
    assert shared.sizes == [megabyte]


# --- shape ---


async def test_what_is_asked_counts_on_top_of_what_is_shown() -> None:
    both = Result(content=({"text": "x" * 60},), ask=Ask(questions={}, state="y" * 60))
    with pytest.raises(Broken, match="120 bytes, the cap is 100"):
        await Shape(100).fit(QUERY)(a_call(QUERY), answering(both))
    assert await Shape(120).fit(QUERY)(a_call(QUERY), answering(both)) is both


async def test_of_a_block_its_text_counts_and_its_numbers_do_not() -> None:
    numbers = Result(data="d", content=({"type": "chart", "points": [1, None, True] * 100},))
    shaped = await Shape(len("chart")).fit(QUERY)(a_call(QUERY), answering(numbers))
    assert shaped.content == numbers.content


async def test_data_and_blocks_count_together() -> None:
    both = Result(data="d", encoded=b"x" * 60, content=({"text": "y" * 60},))
    with pytest.raises(Broken, match="120 bytes"):
        await Shape(119).fit(QUERY)(a_call(QUERY), answering(both))
    assert (await Shape(120).fit(QUERY)(a_call(QUERY), answering(both))).content == both.content


async def test_a_failure_that_says_too_much_keeps_nothing_but_itself() -> None:
    failed = Result(problem=problem("TOOL_FAILED", "no"), meta={"example.com/more": "x" * 200})
    shaped = await Shape(100).fit(QUERY)(a_call(QUERY), answering(failed))
    assert (shaped.problem, shaped.content, shaped.meta) == (failed.problem, (), {})


# --- validate ---


async def test_faults_are_told_in_one_sentence_and_each_with_what_was_expected() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}}
    tool = a_tool("far:add", input_schema=schema)
    with pytest.raises(Refused) as refused:
        await Validate().fit(tool)(a_call(tool, arguments={"a": "x", "b": 1}), echo)
    found = refused.value.problem
    faults = found.details["faults"]
    assert [(fault["path"], fault["expected"]) for fault in faults] == [
        ("arguments.a", "an integer"),
        ("arguments.b", "a string"),
    ]
    assert found.path == "arguments.a"
    said = 'arguments.a: must be an integer, got "x"; arguments.b: must be a string, got 1'
    assert found.message == f"far:add: {said}"
