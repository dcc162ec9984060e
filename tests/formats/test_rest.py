"""The REST format: degraded tools, tool errors and content."""

import json
from typing import Any

import pytest

from toolcrib.errors import problem
from toolcrib.formats import RestFormat
from toolcrib.formats.rest import as_json, encode
from toolcrib.model import JsonObject, Result
from toolcrib.testing import a_tool

PICTURE: JsonObject = {"type": "image", "data": "aGk=", "mimeType": "image/png"}


def text(said: str) -> JsonObject:
    return {"type": "text", "text": said}


@pytest.mark.requirement("B6")
def test_degraded_is_shown_only_if_true() -> None:
    assert RestFormat().tool(a_tool(degraded=True), "x")["degraded"] is True
    assert "degraded" not in RestFormat().tool(a_tool(), "x")


@pytest.mark.parametrize(
    "blocks, content",
    [
        ((), "no such file"),
        ((text("ENOENT"),), "ENOENT"),
        ((text("ENOENT"), PICTURE, text("again")), "ENOENT\nagain"),
        ((PICTURE,), "no such file"),
    ],
)
def test_tool_error_keeps_code_and_message(blocks: tuple[JsonObject, ...], content: str) -> None:
    result = Result(problem=problem("TOOL_FAILED", "no such file"), content=blocks)
    for spelled in (as_json(result), json.loads(encode(result))):
        assert (spelled["success"], spelled["content"]) == (False, content)
        assert spelled["error"]["message"] == "no such file"
        assert "data" not in spelled


@pytest.mark.parametrize(
    "blocks, content",
    [
        ((), {"n": 1}),
        ((text("one"), text("two")), "one\ntwo"),
        ((text("one"), PICTURE), [text("one"), PICTURE]),
    ],
)
def test_content_is_text_or_blocks_or_the_data(blocks: tuple[JsonObject, ...], content: Any) -> None:
    spelled = as_json(Result(data={"n": 1}, content=blocks, structured=False))
    assert (spelled["content"], spelled["data"]) == (content, {"n": 1})
