"""Every answer has version, time, duration and ids, on every frontend."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from tests.contract.asking import FACES, SERVED, Answer, asking
from tests.frontends.rest.test_codes import PROVOKED
from tests.frontends.rest.tools import CONFIG
from tests.frontends.rest.tools import TOOLS as BENCH
from tests.gateways import open_gateway
from tests.hint_fields import HINT_FIELD_SET
from toolcrib import BusinessRuleError, Crib, ToolContext, create_tool
from toolcrib.formats.rest import as_json
from toolcrib.version import VERSION

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("E6")]

FIELDS = {
    *("toolVersion", "timestamp", "executionTime", "serviceVersion"),
    *("traceId", "correlationId", "cached"),
}
SEMANTIC = re.compile(r"\d+\.\d+\.\d+")
TRACE = "0af7651916cd43dd8448eb211c80319c"
TRACEPARENT = f"00-{TRACE}-b7ad6b7169203331-01"
CONTEXT = {
    *("userId", "sessionId", "correlationId", "traceId", "agentId", "agentVersion"),
    *("timestamp", "metadata"),
}


@create_tool(category="query", version="3.1.4")
async def tell_context(ctx: ToolContext) -> dict[str, Any]:
    """Return the handler's context."""
    return ctx.as_json()


@create_tool(version="3.1.4")
async def refuse_politely() -> str:
    """Break a rule of its own."""
    raise BusinessRuleError("CLOSED", "it is closed today")


@create_tool(version="3.1.4")
async def fall_over() -> str:
    """Raise an unexpected error."""
    raise RuntimeError("no")


@create_tool(category="query", version="3.1.4")
async def answer_nothing() -> None:
    """Return None, which is invalid."""


TOOLS = (tell_context, refuse_politely, fall_over, answer_nothing)
OUTCOMES = {
    ("tell-context", None),
    ("refuse-politely", "TOOL_FAILED"),
    ("fall-over", "HANDLER_ERROR"),
    ("answer-nothing", "CONTRACT_VIOLATION"),
    ("nobody-knows", "TOOL_NOT_FOUND"),
}


def whole(answer: Answer, *, version: str) -> None:
    """Metadata is complete and well-typed."""
    told = answer.metadata
    assert told.keys() == FIELDS
    assert (told["toolVersion"], told["serviceVersion"]) == (version, VERSION)
    assert SEMANTIC.fullmatch(told["toolVersion"])
    assert SEMANTIC.match(told["serviceVersion"])
    moment = datetime.fromisoformat(told["timestamp"])
    assert moment.utcoffset() == timedelta(0)
    assert abs(datetime.now(UTC) - moment) < timedelta(minutes=10)
    assert str(UUID(told["traceId"])) == told["traceId"]
    assert str(UUID(told["correlationId"])) == told["correlationId"]
    assert isinstance(told["executionTime"], float | int)
    assert told["executionTime"] >= 0
    assert told["cached"] is False


async def test_metadata_is_complete_on_every_frontend() -> None:
    async with asking(*TOOLS) as asker:
        for face in FACES:
            for name, code in OUTCOMES:
                answer = await asker.ask(face, name)
                assert answer.code == code, (face, name)
                whole(answer, version="0.0.0" if code == "TOOL_NOT_FOUND" else "3.1.4")


@pytest.mark.requirement("E11")
async def test_metadata_is_complete_for_every_refusal() -> None:
    # Some provoke duplicate keys, and one stops the gateway.
    apart = ("SCOPE_DENIED", "OVERLOADED")
    for codes in (sorted(PROVOKED.keys() - set(apart)), apart):
        async with open_gateway(CONFIG, tools=BENCH) as crib:
            for code in codes:
                reply = (await PROVOKED[code](crib)).json
                assert reply["error"]["code"] == code
                answer = Answer("", None, reply["agentHints"], reply["metadata"], reply["error"])
                whole(answer, version=reply["metadata"]["toolVersion"])
                assert answer.hints.keys() >= HINT_FIELD_SET


async def test_execution_time_is_in_ms_and_covers_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    now, tries = 100.0, 0

    @create_tool(category="query")
    async def take_long() -> str:
        """Fail after one second, then succeed after half a second, on a manual clock."""
        nonlocal now, tries
        tries += 1
        now += 1.0 if tries == 1 else 0.5
        if tries == 1:
            raise ConnectionResetError
        return "done"

    monkeypatch.setattr("toolcrib.gateway.gateway.perf_counter", lambda: now)
    async with Crib(tools=[take_long]) as crib:
        told = as_json(await crib.call("take-long"))
    assert (told["data"], told["metadata"]["executionTime"]) == ("done", 1500.0)


@pytest.mark.requirement("E5", "E14")
async def test_trace_and_correlation_reach_handler_and_answer() -> None:
    wanted = str(UUID(TRACE))
    async with asking(*TOOLS) as asker:
        for face in SERVED:
            answer = await asker.ask(face, "tell-context", trace=TRACEPARENT)
            assert (answer.metadata["traceId"], answer.data["traceId"]) == (wanted, wanted), face
            assert answer.data["correlationId"] == answer.metadata["correlationId"]
            failed = await asker.ask(face, "fall-over", trace=TRACEPARENT)
            assert failed.metadata["traceId"] == wanted


@pytest.mark.requirement("E5")
async def test_handler_knows_the_caller_on_every_frontend() -> None:
    async with asking(*TOOLS) as asker:
        for face in FACES:
            told = (await asker.ask(face, "tell-context")).data
            assert told.keys() >= CONTEXT, face
            assert (told["userId"], told["metadata"]) == (None, {})
            assert str(UUID(told["traceId"])) == told["traceId"]
            assert str(UUID(told["correlationId"])) == told["correlationId"]
            assert told["agentId"]
            assert told["agentVersion"]
            assert datetime.fromisoformat(told["timestamp"]).utcoffset() == timedelta(0)
        for face in ("modern", "legacy"):
            told = (await asker.ask(face, "tell-context")).data
            assert (told["agentId"], told["agentVersion"]) == ("asker", "1.2.3")
