"""The spoken message and the size cap of results."""

from typing import Any

import anyio
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.texts import matches
from toolcrib.errors import Broken, Refused, ToolcribError, problem
from toolcrib.interfaces import Handler
from toolcrib.model import Ask, Call, Json, Result, Speech, Tool
from toolcrib.steps.shape import FALLBACK, LARGE_BYTES, Shape
from toolcrib.testing import a_call, a_tool

pytestmark = pytest.mark.anyio
WEATHER = {
    "city": "Oslo",
    "now": {"degrees": 4, "words": "clear sky"},
    "days": [{"words": "rain"}],
    "none": None,
}


def answering(result: Result) -> Handler:
    async def answer(_call: Call) -> Result:
        return result

    return answer


async def spoken(tool: Tool, result: Result) -> str:
    return (await Shape().fit(tool)(a_call(tool), answering(result))).message


@pytest.mark.requirement("G1")
@pytest.mark.parametrize(
    "speech, said",
    [
        (Speech(template="In {city}: {now.words}, {now.degrees} degrees."), "In Oslo: clear sky, 4 degrees."),
        (Speech(template="{days.0.words} tomorrow", field="city"), "rain tomorrow"),
        (Speech(field="now.words"), "clear sky"),
        (Speech(field="days.-1.words"), "rain"),
        (Speech(template="{missing}", field="city"), "Oslo"),
        (Speech(template="{missing.deeper}{days.7}"), FALLBACK),
        (Speech(field="missing"), FALLBACK),
        (Speech(field="now"), FALLBACK),
        (Speech(field="none"), FALLBACK),
        (Speech(), FALLBACK),
    ],
)
async def test_message_precedence_template_field_text_fallback(speech: Speech, said: str) -> None:
    assert await spoken(a_tool(speech=speech), Result(data=WEATHER)) == said


@pytest.mark.requirement("G1")
async def test_text_content_is_the_message_without_speech() -> None:
    assert await spoken(a_tool(), Result(data="It is noon.")) == "It is noon."
    blocks = (
        {"type": "text", "text": "One."},
        {"type": "image", "data": "…"},
        {"type": "text", "text": "Two."},
    )
    assert await spoken(a_tool(), Result(content=blocks)) == "One. Two."


@pytest.mark.requirement("G1")
async def test_message_of_the_tool_is_kept() -> None:
    assert await spoken(a_tool(speech=Speech(field="city")), Result(data=WEATHER, message="Mine.")) == "Mine."


@pytest.mark.requirement("G1")
@given(
    template=st.text(max_size=60),
    data=st.recursive(st.none() | st.text(), st.lists, max_leaves=5),
)
def test_no_template_ever_raises(template: str, data: Json) -> None:

    anyio.run(spoken, a_tool(speech=Speech(template=template, field=template or None)), Result(data=data))


async def test_result_over_the_cap_is_result_too_large() -> None:
    data = {"text": "x" * 100}
    stage = Shape(result_bytes=100).fit(a_tool())
    with pytest.raises(Broken) as broken:
        await stage(a_call(), answering(Result(data=data, encoded=orjson.dumps(data))))
    assert broken.value.problem.code == "RESULT_TOO_LARGE"
    with pytest.raises(Broken):
        await stage(a_call(), answering(Result(content=({"type": "text", "text": "y" * 101},))))


async def test_small_failure_is_unchanged() -> None:
    failed = Result(problem=problem("TOOL_FAILED", "no"))
    assert await Shape().fit(a_tool())(a_call(), answering(failed)) is failed


async def test_failure_over_the_cap_loses_its_content() -> None:
    failed = Result(problem=problem("TOOL_FAILED", "no"), content=({"type": "text", "text": "x" * 100},))
    for cap, kept in ((104, failed.content), (103, ())):
        result = await Shape(cap).fit(a_tool())(a_call(), answering(failed))
        assert (result.problem, result.content) == (failed.problem, kept)


@pytest.mark.parametrize(
    "result",
    [
        Result(data={}, content=({"type": "resource", "resource": {"uri": "a:b", "text": "x" * 2000}},)),
        Result(data={}, content=({"type": "other", "parts": [["x" * 2000], 7, None]},)),
        Result(data={}, meta={"example.com/more": {"text": "x" * 2000}}),
    ],
)
async def test_nested_values_count_towards_the_cap(result: Result) -> None:
    tool = a_tool()
    with pytest.raises(Broken, match=r"\b1000\b") as broken:
        await Shape(1000).fit(tool)(a_call(tool), answering(result))
    assert broken.value.problem.code == "RESULT_TOO_LARGE"


QUERY = a_tool("far:ask", category="query", cache_ttl=60.0)


async def test_questions_count_towards_the_cap() -> None:
    both = Result(content=({"text": "x" * 60},), ask=Ask(questions={}, state="y" * 60))
    with pytest.raises(Broken, match="120 bytes") as broken:
        await Shape(100).fit(QUERY)(a_call(QUERY), answering(both))
    assert matches("errors", "result over the cap", broken.value.problem.message)
    assert await Shape(120).fit(QUERY)(a_call(QUERY), answering(both)) is both


async def test_only_strings_of_a_block_count_towards_the_cap() -> None:
    numbers = Result(data="d", content=({"type": "chart", "points": [1, None, True] * 100},))
    shaped = await Shape(len("chart")).fit(QUERY)(a_call(QUERY), answering(numbers))
    assert shaped.content == numbers.content


async def test_data_and_blocks_share_the_cap() -> None:
    both = Result(data="d", encoded=b"x" * 60, content=({"text": "y" * 60},))
    with pytest.raises(Broken, match="120 bytes"):
        await Shape(119).fit(QUERY)(a_call(QUERY), answering(both))
    assert (await Shape(120).fit(QUERY)(a_call(QUERY), answering(both))).content == both.content


async def test_failure_with_large_meta_loses_meta() -> None:
    failed = Result(problem=problem("TOOL_FAILED", "no"), meta={"example.com/more": "x" * 200})
    shaped = await Shape(100).fit(QUERY)(a_call(QUERY), answering(failed))
    assert (shaped.problem, shaped.content, shaped.meta) == (failed.problem, (), {})


# --- large results ---
class Memory:
    """Memory accounting with a size limit, which records reservations."""

    def __init__(self, room: int = 1 << 40) -> None:
        self.room, self.held = room, dict[str, int]()
        self.reserved: list[int] = []

    def reserve(self, principal: str, size: int) -> bool:
        if size > self.room:
            return False
        self.held[principal] = self.held.get(principal, 0) + size
        self.reserved.append(size)
        return True

    def release(self, principal: str, size: int) -> None:
        self.held[principal] -= size


def sized(size: int, **fields: Any) -> Result:
    return Result(data="", encoded=b"x" * size, **fields)


@pytest.mark.requirement("I5")
async def test_small_results_reserve_nothing() -> None:
    memory = Memory(0)
    stage = Shape(memory=memory).fit(a_tool())
    for _ in range(2):
        await stage(a_call(), answering(sized(LARGE_BYTES)))
    assert memory.reserved == []


@pytest.mark.requirement("I5")
async def test_memory_is_reserved_once_results_are_large() -> None:
    memory, held = Memory(), list[int]()
    stage, call = Shape(memory=memory).fit(a_tool()), a_call()

    async def answer(_call: Call) -> Result:
        held.append(memory.held.get(call.caller.principal, 0))
        return sized(2 * LARGE_BYTES)

    for _ in range(2):
        await stage(call, answer)
    assert held == [0, 2 * LARGE_BYTES]
    assert memory.held == {call.caller.principal: 0}
    assert memory.reserved == [2 * LARGE_BYTES, 2 * LARGE_BYTES]
    memory.room = LARGE_BYTES
    with pytest.raises(Refused) as refused:
        await stage(call, answer)
    assert (refused.value.problem.code, refused.value.problem.retry_after) == ("OVERLOADED", 2.0)
    assert len(held) == 2


@pytest.mark.requirement("I5")
async def test_reservation_ends_with_a_call_that_fails() -> None:
    memory = Memory()
    stage, call = Shape(memory=memory).fit(a_tool()), a_call()

    async def fail(_call: Call) -> Result:
        raise Broken("CONTRACT_VIOLATION", "no")

    await stage(call, answering(sized(2 * LARGE_BYTES)))
    with pytest.raises(Broken):
        await stage(call, fail)
    assert memory.held == {call.caller.principal: 0}


@pytest.mark.requirement("I5")
async def test_larger_result_than_reserved_is_measured_again() -> None:
    memory = Memory(3 * LARGE_BYTES)
    stage = Shape(memory=memory).fit(a_tool(category="query"))
    await stage(a_call(), answering(sized(2 * LARGE_BYTES)))
    with pytest.raises(Refused):
        await stage(a_call(), answering(sized(4 * LARGE_BYTES)))


@pytest.mark.requirement("I5")
async def test_expected_size_halves_with_each_small_result() -> None:
    memory = Memory()
    stage = Shape(memory=memory).fit(a_tool())
    await stage(a_call(), answering(sized(4 * LARGE_BYTES)))
    for _ in range(4):
        await stage(a_call(), answering(sized(1)))
    assert memory.reserved == [4 * LARGE_BYTES, 4 * LARGE_BYTES, 2 * LARGE_BYTES]


@pytest.mark.requirement("I5")
@pytest.mark.parametrize(
    "read_only, code, retryable", [(True, "OVERLOADED", True), (False, "ANSWER_NOT_KEPT", False)]
)
async def test_dropped_result_says_whether_anything_changed(
    read_only: bool, code: str, retryable: bool
) -> None:
    stage = Shape(memory=Memory(0)).fit(a_tool(category="query" if read_only else "mutation"))
    with pytest.raises(ToolcribError) as dropped:
        await stage(a_call(), answering(sized(LARGE_BYTES + 1)))
    assert (dropped.value.problem.code, dropped.value.problem.retryable) == (code, retryable)


@pytest.mark.requirement("I5")
async def test_failure_keeps_its_problem_without_memory() -> None:
    fault = problem("TOOL_FAILED", "no")
    failed = Result(problem=fault, content=({"type": "text", "text": "x" * (LARGE_BYTES + 1)},))
    result = await Shape(memory=Memory(0)).fit(a_tool())(a_call(), answering(failed))
    assert (result.problem, result.content) == (fault, ())
