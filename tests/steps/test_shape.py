"""The sentence that can be spoken, and the cap on a result's size."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.errors import Broken, problem
from toolcrib.interfaces import Handler
from toolcrib.model import Call, Json, Result, Speech, Tool
from toolcrib.steps.shape import FALLBACK, Shape
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
async def test_the_message_comes_from_template_then_field_then_text_then_fallback(
    speech: Speech, said: str
) -> None:
    assert await spoken(a_tool(speech=speech), Result(data=WEATHER)) == said


@pytest.mark.requirement("G1")
async def test_text_is_spoken_where_nothing_else_is_said() -> None:
    assert await spoken(a_tool(), Result(data="It is noon.")) == "It is noon."
    blocks = (
        {"type": "text", "text": "One."},
        {"type": "image", "data": "…"},
        {"type": "text", "text": "Two."},
    )
    assert await spoken(a_tool(), Result(content=blocks)) == "One. Two."


@pytest.mark.requirement("G1")
async def test_a_tools_own_message_stays() -> None:
    assert await spoken(a_tool(speech=Speech(field="city")), Result(data=WEATHER, message="Mine.")) == "Mine."


@pytest.mark.requirement("G1")
@given(
    template=st.text(max_size=60),
    data=st.recursive(st.none() | st.text(), st.lists, max_leaves=5),
)
def test_no_template_ever_raises(template: str, data: Json) -> None:
    import anyio

    anyio.run(spoken, a_tool(speech=Speech(template=template, field=template or None)), Result(data=data))


async def test_a_result_over_the_cap_is_a_typed_error() -> None:
    data = {"text": "x" * 100}
    stage = Shape(result_bytes=100).fit(a_tool())
    with pytest.raises(Broken) as broken:
        await stage(a_call(), answering(Result(data=data, encoded=orjson.dumps(data))))
    assert broken.value.problem.code == "RESULT_TOO_LARGE"
    with pytest.raises(Broken):
        await stage(a_call(), answering(Result(content=({"type": "text", "text": "y" * 101},))))


async def test_a_failure_passes_untouched() -> None:
    failed = Result(problem=problem("TOOL_FAILED", "no"))
    assert await Shape().fit(a_tool())(a_call(), answering(failed)) is failed


async def test_what_a_failed_tool_says_is_bounded_and_the_failure_stays() -> None:
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
async def test_what_stands_deeper_counts_towards_the_cap(result: Result) -> None:
    tool = a_tool()
    with pytest.raises(Broken, match="the cap is 1000"):
        await Shape(1000).fit(tool)(a_call(tool), answering(result))
