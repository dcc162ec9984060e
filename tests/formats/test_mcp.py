"""How MCP spells results: structured content, blocks, and failures in the tool's own words."""

import pytest

from toolcrib.errors import problem
from toolcrib.formats.mcp import result
from toolcrib.model import Json, JsonObject, Result

SAID: JsonObject = {"type": "text", "text": "the tool's own words"}


@pytest.mark.parametrize("structured", [True, False])
def test_only_a_structured_answer_is_structured_content(structured: bool) -> None:
    spelled = result(Result(data={"n": 1}, content=(SAID,), structured=structured))
    assert spelled["content"] == [SAID]
    assert spelled.get("structuredContent") == ({"n": 1} if structured else None)


@pytest.mark.parametrize("data", [None, "text", [1], 1])
def test_what_is_no_object_is_never_structured_content(data: Json) -> None:
    assert "structuredContent" not in result(Result(data=data))


@pytest.mark.parametrize(
    "blocks, shown",
    [((), [{"type": "text", "text": "it failed"}]), ((SAID,), [SAID])],
    ids=["ours", "the tool's"],
)
def test_a_failure_shows_the_blocks_of_the_tool_where_it_has_any(
    blocks: tuple[JsonObject, ...], shown: list[JsonObject]
) -> None:
    spelled = result(Result(problem=problem("TOOL_FAILED", "it failed"), data={"n": 1}, content=blocks))
    assert spelled["isError"] is True
    assert spelled["content"] == shown
    assert "structuredContent" not in spelled
    assert spelled["_meta"]["toolcrib/error"]["message"] == "it failed"
