"""Brief results over REST: the outcome, the data or the error, and hints that can be acted on."""

import json
from collections.abc import AsyncGenerator
from typing import Annotated, Any

import jsonschema_rs
import pytest
from pydantic import Field

from tests.gateways import InProcessGateway, Reply, open_gateway
from toolcrib import BusinessRuleError, ToolResult, create_tool, hints
from toolcrib.formats.rest import encode_brief
from toolcrib.model import Ask, Result

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("F10")]

CALL = {"action": "add", "priority": "high", "data": {"tool": "tools:find", "arguments": {"words": "b"}}}
REQUEST = {"action": "begin", "priority": "high", "data": {"request": {"method": "POST", "path": "/x"}}}
TALK = {"action": "think-about-it", "priority": "low"}
BRIEF: dict[str, Any] = {"detail": "brief"}
MINIMAL = {"prefer": "return=minimal"}


@create_tool(category="mutation")
def find(words: Annotated[str, Field(description="What to look for.")]) -> ToolResult[dict[str, str]]:
    """Find a thing, and suggest how to continue."""
    if words == "refuse":
        advice = hints.read({"confidence": 0, "suggestedNextActions": [TALK, REQUEST]})
        raise BusinessRuleError("TOO_MANY", "Too many.", hints=advice)
    actions = [TALK] if words == "plain" else [CALL, TALK]
    return ToolResult(data={"found": words}, hints={"suggestedNextActions": actions})


@pytest.fixture
async def gateway() -> AsyncGenerator[InProcessGateway]:
    async with open_gateway(tools=[find]) as opened:
        yield opened


async def execute(
    gateway: InProcessGateway, words: str = "a", headers: dict[str, str] | None = None, **fields: Any
) -> Reply:
    body = {"name": "find", "arguments": {"words": words}, **fields}
    return await gateway.request("POST", "/api/tools/execute", body=body, headers=headers or {})


async def test_a_brief_result_has_what_an_agent_acts_on(gateway: InProcessGateway) -> None:
    reply = await execute(gateway, **BRIEF)
    assert (reply.status, reply.json["data"]) == (200, {"found": "a"})
    assert reply.json.keys() == {"success", "status", "message", "data", "agentHints"}
    found = reply.json["agentHints"]
    assert found.keys() == {"suggestedNextActions"}
    assert [each["data"] for each in found["suggestedNextActions"]] == [CALL["data"]]


async def test_hints_without_an_action_are_left_out(gateway: InProcessGateway) -> None:
    reply = await execute(gateway, "plain", **BRIEF)
    assert reply.json.keys() == {"success", "status", "message", "data"}


async def test_a_brief_error_keeps_status_and_error(gateway: InProcessGateway) -> None:
    full, brief = await execute(gateway, "refuse"), await execute(gateway, "refuse", **BRIEF)
    assert brief.status == full.status >= 400
    assert brief.json["error"] == full.json["error"]
    assert brief.json.keys() == {"success", "status", "message", "error", "agentHints"}
    assert [each["action"] for each in brief.json["agentHints"]["suggestedNextActions"]] == ["begin"]


@pytest.mark.parametrize(
    "prefer, minimal",
    [
        ("return=minimal", True),
        ('respond-async, Return="minimal"; x=1', True),
        ("return=representation", False),
        ("return=representation, return=minimal", False),
        ("handling=strict", False),
        ("=,;,return", False),
    ],
)
async def test_the_prefer_header_asks_for_it_too(
    gateway: InProcessGateway, prefer: str, minimal: bool
) -> None:
    reply = await execute(gateway, headers={"prefer": prefer})
    assert ("metadata" not in reply.json) is minimal
    assert reply.headers.get("preference-applied") == ("return=minimal" if minimal else None)


async def test_the_body_precedes_the_header(gateway: InProcessGateway) -> None:
    reply = await execute(gateway, headers=MINIMAL, detail="full")
    assert "metadata" in reply.json
    assert "preference-applied" not in reply.headers
    assert "preference-applied" not in (await execute(gateway, **BRIEF)).headers


@pytest.mark.parametrize("detail", ["short", "", "Brief", 1, True, ["brief"], {}])
async def test_another_detail_is_refused(gateway: InProcessGateway, detail: Any) -> None:
    reply = await execute(gateway, detail=detail)
    assert (reply.status, reply.json["error"]["code"]) == (400, "INVALID_REQUEST")
    assert reply.json["error"]["path"] == "detail"
    assert "full, brief" in reply.json["error"]["message"]


@pytest.mark.parametrize("detail", ["full", None])
async def test_full_is_the_default(gateway: InProcessGateway, detail: str | None) -> None:
    reply, plain = await execute(gateway, detail=detail), await execute(gateway)
    assert reply.json.keys() == plain.json.keys() >= {"metadata", "content", "mentraExtensions"}


@pytest.mark.parametrize("headers", [{}, MINIMAL])
async def test_streamed_results_are_brief_too(gateway: InProcessGateway, headers: dict[str, str]) -> None:
    fields = {} if headers else BRIEF
    reply = await execute(gateway, headers={"accept": "text/event-stream", **headers}, **fields)
    last = json.loads(reply.body.decode().strip().split("\n\n")[-1].partition("data: ")[2])
    assert last.keys() == {"success", "status", "message", "data", "agentHints"}
    assert reply.headers.get("preference-applied") == ("return=minimal" if headers else None)


async def test_a_replayed_result_is_brief(gateway: InProcessGateway) -> None:
    for replayed in (None, "true"):
        reply = await execute(gateway, idempotencyKey="k1", **BRIEF)
        assert "metadata" not in reply.json
        assert reply.headers.get("idempotency-replayed") == replayed


async def test_brief_results_are_described(gateway: InProcessGateway) -> None:
    document = (await gateway.request("GET", "/openapi.json")).json
    schema = {"$ref": "#/components/schemas/BriefResult", "components": document["components"]}
    for words in ("a", "plain", "refuse"):
        jsonschema_rs.validate(schema, (await execute(gateway, words, **BRIEF)).json)
    headers = document["paths"]["/api/tools/execute"]["post"]["parameters"]
    assert "Prefer" in {each["name"] for each in headers}


def test_content_is_the_data_where_there_is_no_other() -> None:
    blocks = ({"type": "text", "text": "one"}, {"type": "text", "text": "two"})
    assert json.loads(encode_brief(Result(content=blocks)))["data"] == "one\ntwo"
    picture = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
    assert json.loads(encode_brief(Result(content=(*blocks, picture))))["data"] == [*blocks, picture]
    assert json.loads(encode_brief(Result(data=[], content=blocks)))["data"] == []


def test_questions_are_kept() -> None:
    told = json.loads(encode_brief(Result(ask=Ask(questions={"q": {"method": "m"}}, state="s"))))
    assert told["inputRequired"] == {"questions": {"q": {"method": "m"}}, "state": "s"}
    assert "data" not in told
