"""Observability of calls: logged under their trace, counted and timed."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.gateways import ADMIN, InProcessGateway
from toolcrib import BusinessRuleError, ToolResult, create_tool
from toolcrib.config import parse
from toolcrib.observe import Redactor
from toolcrib.observe.log import setup
from toolcrib.runtime import build
from toolcrib.sdk import AnyTool
from toolcrib.server import GatewayApp

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("E14")]

SECRET = "s3cret-of-the-caller"
CONFIG = json.dumps(
    {
        "overrides": {
            "tools:take-card": {
                "deprecated": {
                    "since": "2.0.0",
                    "replacement": "tools:find-card",
                    "removal_date": "2999-01-01",
                }
            }
        }
    }
)


@create_tool(category="query", cache_ttl=60, response_time="slow")
async def find_card(card: str, password: str = "") -> list[str]:
    """Find cards."""
    if card == "closed":
        raise BusinessRuleError("CLOSED", "the box is closed")
    if card == "broken":
        raise LookupError(f"no row for {card} in table cards")
    return [card, card]


@create_tool(category="query", response_time="slow")
async def claim_much() -> ToolResult[int]:
    """Return invalid hints."""
    return ToolResult(data=1, hints={"confidence": 1.7})


@create_tool(category="mutation", response_time="slow", permissions=["cards:take"])
async def take_card() -> str:
    """Take a card, the old way."""
    return "taken"


TOOLS: tuple[AnyTool, ...] = (find_card, claim_much, take_card)


def trace(number: int) -> str:
    return f"{number:032x}"


@asynccontextmanager
async def watched(file: Path) -> AsyncGenerator[InProcessGateway]:
    """A gateway that logs to a file."""
    env = {"TOOLCRIB_ADMIN_KEY": ADMIN}
    document = replace(parse(CONFIG, "toolcrib.yaml", env), store="sqlite://")
    redactor = Redactor(document.secret_texts)
    log = setup("info", file, redactor)
    try:
        async with build(document, env=env, tools=TOOLS, journal_to=log, redactor=redactor) as runtime:
            server = GatewayApp(runtime)
            async with server.running():
                yield InProcessGateway(runtime, server)
    finally:
        log.close()


class Story:
    """Calls with every outcome, each with its own trace, and their log lines."""

    def __init__(self, crib: InProcessGateway) -> None:
        self.crib = crib
        self.calls: dict[str, str | None] = {}
        """The code each trace ended with."""

    async def call(self, name: str, arguments: Any = None, key: str = ADMIN) -> None:
        number = trace(len(self.calls) + 1)
        headers = {"traceparent": f"00-{number}-00f067aa0ba902b7-01"}
        reply = await self.crib.call(name, arguments, key=key, headers=headers)
        assert reply.json["metadata"]["traceId"].replace("-", "") == number
        self.calls[number] = reply.code


async def told(file: Path) -> tuple[dict[str, str | None], list[dict[str, Any]], str]:
    """Make the calls; how they ended, the lines, and the metrics."""
    async with watched(file) as crib:
        story, plain = Story(crib), await crib.key("plain")
        await story.call("find-card", {"card": "a", "password": SECRET})
        await story.call("find-card", {"card": "a", "password": SECRET})
        await story.call("find-card", {"card": "closed"})
        await story.call("find-card", {"card": "broken"})
        await story.call("find-card", {"card": 5})
        await story.call("claim-much")
        await story.call("take-card")
        await story.call("take-card", key=plain)
        metrics = (await crib.request("GET", "/metrics")).body.decode()
    lines = [json.loads(line) for line in (await anyio.Path(file).read_text()).splitlines()]
    return story.calls, [line for line in lines if line.get("tool")], metrics


ENDS = [None, None, "TOOL_FAILED", "HANDLER_ERROR", "INVALID_ARGUMENTS", "CONTRACT_VIOLATION", None]
DENIED = "PERMISSION_DENIED"


@pytest.mark.requirement("E11", "E13")
async def test_every_log_line_has_the_trace(tmp_path: Path) -> None:
    calls, lines, _ = await told(tmp_path / "log")
    assert [*calls.values()] == [*ENDS, DENIED]
    of: dict[str, list[dict[str, Any]]] = {number: [] for number in calls}
    for line in lines:
        of[line["trace_id"].replace("-", "")].append(line)
    events = [sorted(line["event"] for line in each) for each in of.values()]
    plain, loud, declared = ["call"], ["call", "log"], ["call", "call_started", "log"]
    assert events == [plain, plain, plain, loud, plain, loud, declared, plain]
    ends = [next(line for line in each if line["event"] == "call") for each in of.values()]
    assert [line["code"] for line in ends] == [*calls.values()]
    assert all(line["duration_ms"] >= 0 for line in ends)


@pytest.mark.requirement("I2")
async def test_line_has_the_arguments_and_a_summary_of_the_result(tmp_path: Path) -> None:
    _, lines, _ = await told(tmp_path / "log")
    assert SECRET not in (tmp_path / "log").read_text()
    asked = next(line["arguments"] for line in lines if line["event"] == "call")
    assert asked == {"card": "a", "password": "[redacted]"}
    first, again = [line for line in lines if line["event"] == "call"][:2]
    assert (first["result"], first["items"], first["cached"]) == ("list", 2, False)
    assert again["cached"] is True
    assert '"a","a"' not in (tmp_path / "log").read_text()


@pytest.mark.requirement("E11", "E13")
async def test_faults_log_stack_and_warnings_name_replacement(tmp_path: Path) -> None:
    _, lines, _ = await told(tmp_path / "log")
    raised, broken, leaving = [line for line in lines if line["event"] == "log"]
    assert (raised["level"], raised["code"]) == ("error", "HANDLER_ERROR")
    assert "no row for broken in table cards" in raised["exception"]["stack"]
    assert "in find_card" in raised["exception"]["stack"]
    assert (broken["level"], broken["code"]) == ("error", "CONTRACT_VIOLATION")
    assert "Traceback" in broken["exception"]["stack"]
    assert leaving["level"] == "warning"
    assert "call tools:find-card instead" in leaving["message"]


@pytest.mark.requirement("I3")
async def test_calls_are_counted_by_outcome_and_timed(tmp_path: Path) -> None:
    _, _, metrics = await told(tmp_path / "log")
    values = {line.rpartition(" ")[0]: line.rpartition(" ")[2] for line in metrics.splitlines()}
    found, taken = 'tool="tools:find-card"', 'tool="tools:take-card"'
    assert (
        values[f'toolcrib_tool_calls_total{{{found},category="query",status="success",class="none"}}'] == "2"
    )
    for kind in ("business", "system", "validation"):
        assert values[f'toolcrib_tool_errors_total{{{found},class="{kind}"}}'] == "1"
    assert values[f'toolcrib_tool_errors_total{{{taken},class="business"}}'] == "1"
    assert values[f"toolcrib_tool_seconds_count{{{found}}}"] == "5"
    assert float(values[f"toolcrib_tool_seconds_sum{{{found}}}"]) > 0
    assert values[f'toolcrib_cache_total{{{found},outcome="hit"}}'] == "1"
