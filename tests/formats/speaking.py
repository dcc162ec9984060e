"""Shared values of the format tests: a tool, its results and refusals."""

from typing import Any

import pytest

from toolcrib.errors import Refused, problem
from toolcrib.interfaces import Provider, ProviderCall, ProviderResult
from toolcrib.model import JsonObject, Result, Tool, Voice
from toolcrib.testing import a_tool

SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "description": "Which city."},
        "days": {"type": "integer", "description": "How many days ahead."},
    },
    "required": ["city"],
}
WEATHER = a_tool(
    "sky:weather", description="Tells the weather.", input_schema=SCHEMA, category="query", source="sky"
)
NOTHING: JsonObject = {"type": "object", "properties": {}, "required": []}
PICTURE: JsonObject = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
SUNNY = Result(data={"sky": "clear", "degrees": 21}, message="It is sunny — 21°.")
GONE = Result(problem=problem("SOURCE_DOWN", "the server sky is down"), message="I cannot reach it.")
LOST = Result(problem=problem("OUTCOME_UNKNOWN", "no answer came"), message="I do not know.")
QUIET = Result(data={"played": True}, message="Playing.", voice=Voice(suppress=True))
TOLD = '{"status":"success","message":"It is sunny — 21°.","data":{"sky":"clear","degrees":21}}'
TOLD_GONE = (
    '{"status":"error","message":"I cannot reach it.","error":{"code":"SOURCE_DOWN","kind":"unavailable",'
    '"class":"system","message":"the server sky is down","retryable":true}}'
)


def answered(result: Result, *, id: str = "c1", name: str = "weather") -> ProviderResult:
    return ProviderResult(call=ProviderCall(id=id, name=name, arguments={"city": "Oslo"}), result=result)


def of_server(**fields: Any) -> Tool:
    """The tool of an MCP server."""
    return a_tool("sky:weather", description="Tells the weather.", family="mcp", source="sky", **fields)


def refusal(format: Provider, message: Any) -> tuple[str, str]:
    """The path and message of a refusal."""
    with pytest.raises(Refused) as refused:
        format.calls(message)
    assert refused.value.problem.code == "INVALID_REQUEST"
    return refused.value.problem.path or "", refused.value.problem.message
