"""A handler's arguments are its own copy, and its result is returned completely, with hints."""

from copy import deepcopy
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

import pytest
from pydantic import BaseModel

from toolcrib import Crib, Registry, ToolContext, ToolResult, create_tool, hints
from toolcrib.formats.rest import as_json
from toolcrib.model import Hints
from toolcrib.model.hints import REQUIRED, json_name

ELEVEN = {json_name(name) for name in REQUIRED}
ARGUMENTS: dict[str, Any] = {"words": ["a", {"deep": [1, 2]}], "note": {"text": "x", "marks": ["m"]}}


class Note(BaseModel):
    """A note."""

    text: str
    marks: list[str]


class Whole(BaseModel):
    """All arguments in one."""

    words: list[Any]
    note: Note


def spoil(words: list[Any], note: Note) -> None:
    words[1]["deep"].append(3)
    words.clear()
    note.text = "spoilt"
    note.marks.append("n")


@create_tool
def spoil_each(words: list[Any], note: Note) -> str:
    spoil(words, note)
    return "done"


@create_tool
async def spoil_plain(words: list[Any], note: dict[str, Any]) -> str:
    words[1]["deep"].clear()
    note.clear()
    return "done"


@create_tool
async def spoil_whole(params: Whole, context: ToolContext) -> ToolResult[str]:
    spoil(params.words, params.note)
    return ToolResult(data=context.trace_id)


def spoil_ready(arguments: dict[str, Any]) -> str:
    arguments["words"].clear()
    arguments["note"]["marks"].clear()
    return "done"


def spoilers() -> list[Any]:
    ready = Registry().register_tool({"name": "spoil-ready"}, spoil_ready)
    return [spoil_each, spoil_plain, spoil_whole, ready]


@pytest.mark.requirement("E5", "B1")
async def test_handler_mutations_of_arguments_are_isolated() -> None:
    given, tools = deepcopy(ARGUMENTS), spoilers()
    async with Crib(tools=tools) as crib:
        for each in tools:
            result = await crib.call(each.name, given)
            assert result.problem is None
            assert given == ARGUMENTS


@create_tool(category="query")
def find_words(
    text: Annotated[str, "Where to look."], *, spelled: Annotated[bool, "As JSON."] = False
) -> ToolResult[list[str]]:
    words = text.split()
    made = hints.found(words)
    return ToolResult(data=words, message="Here they are.", hints=made.as_json() if spelled else made)


@pytest.mark.requirement("E6")
@pytest.mark.parametrize("spelled", [False, True])
async def test_hints_may_be_objects_or_dicts(spelled: bool) -> None:
    async with Crib(tools=[find_words]) as crib:
        result = await crib.call("find-words", {"text": "a b", "spelled": spelled})
    assert (result.problem, result.data, result.message) == (None, ["a", "b"], "Here they are.")
    assert isinstance(result.hints, Hints)
    assert result.hints.reasoning == hints.found(["a", "b"]).reasoning


@pytest.mark.requirement("E6")
async def test_every_result_carries_hints_and_metadata_errors_too() -> None:
    async with Crib(tools=[find_words]) as crib:
        for arguments in ({"text": "a b"}, {"text": 7}):
            spelled = as_json(await crib.call("find-words", arguments))
            assert spelled["agentHints"].keys() >= ELEVEN
            metadata = spelled["metadata"]
            assert metadata.keys() == {
                *("toolVersion", "timestamp", "executionTime", "serviceVersion"),
                *("traceId", "correlationId", "cached"),
            }
            assert datetime.fromisoformat(metadata["timestamp"]).utcoffset() is not None
            assert UUID(metadata["traceId"])
            assert UUID(metadata["correlationId"])
            assert metadata["executionTime"] >= 0
            assert metadata["cached"] is False
