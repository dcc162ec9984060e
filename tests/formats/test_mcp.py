"""The MCP format of results: structured content, blocks and failures."""

import json
from typing import Any

import pytest

from toolcrib.catalog import ToolOverride
from toolcrib.errors import problem
from toolcrib.formats.mcp import McpFormat, encode, meta
from toolcrib.model import Hints, Json, JsonObject, Metadata, Result, Tool, Voice

WHEN = Metadata(
    tool_version="1.0.0",
    timestamp="2026-07-28T12:00:00.000Z",
    execution_time=1.5,
    service_version="0",
    trace_id="t",
    correlation_id="c",
)
STAMP = b'{"name":"us"}'
SAID: JsonObject = {"type": "text", "text": "the tool's own words"}


def result(outcome: Result) -> dict[str, Any]:
    return json.loads(encode(outcome))


@pytest.mark.parametrize("structured", [True, False])
def test_only_structured_results_have_structured_content(structured: bool) -> None:
    spelled = result(Result(data={"n": 1}, content=(SAID,), structured=structured))
    assert spelled["content"] == [SAID]
    assert spelled.get("structuredContent") == ({"n": 1} if structured else None)


@pytest.mark.parametrize("data", [None, "text", [1], 1])
def test_non_object_structured_content_needs_new_revision(data: Json) -> None:
    assert "structuredContent" not in result(Result(data=data))
    assert json.loads(encode(Result(data=data), STAMP)).get("structuredContent") == data


@pytest.mark.parametrize(
    "blocks, shown",
    [((), [{"type": "text", "text": "it failed"}]), ((SAID,), [SAID])],
    ids=["ours", "the tool's"],
)
def test_failure_keeps_the_content_of_the_tool(
    blocks: tuple[JsonObject, ...], shown: list[JsonObject]
) -> None:
    spelled = result(Result(problem=problem("TOOL_FAILED", "it failed"), data={"n": 1}, content=blocks))
    assert spelled["isError"] is True
    assert spelled["content"] == shown
    assert spelled.get("structuredContent") == ({"n": 1} if blocks else None)
    assert spelled["_meta"]["toolcrib/error"]["message"] == "it failed"


@pytest.mark.parametrize(
    "outcome",
    [
        Result(data="plain", encoded=b'"plain"', message="Done."),
        Result(data="plain"),
        Result(data={"n": [1, "é"]}, encoded='{"n":[1,"é"]}'.encode(), meta={"vendor/x": 1}),
        Result(data={"n": 1}),
        Result(data=[1, 2], encoded=b"[1,2]"),
        Result(data={"n": 1}, encoded=b'{"n":1}', content=(SAID,), structured=False),
        Result(problem=problem("TOOL_FAILED", "it failed"), data="x", encoded=b'"x"'),
        Result(problem=problem("TOOL_FAILED", "it failed"), content=(SAID,)),
        Result(data=1, hints=Hints(confidence=0.5), metadata=WHEN),
        Result(data=1, hints=Hints(confidence=0.5, encoded=b'{"prepared":true}'), metadata=WHEN),
    ],
)
def test_encoded_parts_are_spliced(outcome: Result) -> None:
    plain = result(outcome.replace(encoded=b""))
    if outcome.hints is not None and outcome.hints.encoded:
        plain["_meta"]["toolcrib/agentHints"] = {"prepared": True}
    assert result(outcome) == plain
    stamped = json.loads(encode(outcome, STAMP))
    assert stamped.pop("resultType") == "complete"
    assert stamped["_meta"].pop("io.modelcontextprotocol/serverInfo") == {"name": "us"}
    stamped.pop("structuredContent", None)
    plain.pop("structuredContent", None)
    assert stamped == plain


@pytest.mark.parametrize("encoded", [b"", b'""'])
def test_empty_text_has_no_block(encoded: bytes) -> None:
    assert result(Result(data="", encoded=encoded, structured=False))["content"] == []


CLAIMS: JsonObject = {"readOnlyHint": True, "destructiveHint": True, "openWorldHint": False, "vendor": 1}


def declared(**fields: Any) -> Any:
    return McpFormat().tool(Tool(name="far:read", source="far", **fields), "read").get("annotations")


def test_annotations_of_a_server_are_unchanged() -> None:
    assert declared(family="mcp", annotations=CLAIMS) == CLAIMS
    assert declared(family="mcp") is None
    assert declared(family="mcp", annotations={"readOnlyHint": "yes", "destructiveHint": None}) is None


@pytest.mark.parametrize(
    "override, hints",
    [
        (ToolOverride(category="query"), {"readOnlyHint": True, "idempotentHint": False}),
        (ToolOverride(category="mutation"), {"idempotentHint": False}),
        (ToolOverride(idempotent=True), {"readOnlyHint": True, "idempotentHint": True}),
        (ToolOverride(title="Read"), {"readOnlyHint": True, "idempotentHint": False}),
    ],
    ids=["it reads", "it writes", "it can be repeated", "nothing of the kind"],
)
def test_overrides_change_annotations(override: ToolOverride, hints: JsonObject) -> None:
    claims = {"readOnlyHint": True, "idempotentHint": False}
    tool = override.apply(Tool(name="far:read", source="far", family="mcp", annotations=claims))
    assert McpFormat().tool(tool, "read").get("annotations") == hints


def test_annotations_of_functions_are_complete() -> None:
    said = {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": False}
    assert declared(destructive=True) == said
    assert declared(category="query", idempotent=True) == {
        "readOnlyHint": True,
        "destructiveHint": False,
        "idempotentHint": True,
    }


@pytest.mark.requirement("G4")
def test_voice_settings_are_in_meta() -> None:
    outcome = Result(data=1, voice=Voice(suppress=True, follow_ups=("Again?",)))
    wanted = {"suppressVoiceResponse": True, "suggestedFollowUps": ["Again?"]}
    for beside in (result(outcome)["_meta"], meta(outcome)):
        assert beside["toolcrib/mentraExtensions"] == wanted
    for beside in (result(Result(data=1))["_meta"], meta(Result(data=1))):
        assert "toolcrib/mentraExtensions" not in beside
