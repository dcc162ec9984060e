"""One trace from the caller through the gateway to a server behind it, whichever way the call comes."""

import json
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Literal

import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.gateways import InProcessGateway, listening, open_gateway
from tests.observe.collector import Collector, Span, collecting
from tests.servers.settings import ROOT
from tests.waiting import until
from toolcrib.observe import new_id
from toolcrib.sdk import ToolContext, create_tool

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("E14", "I3")]

CALLER = "00f067aa0ba902b7"
WHERE = "where:am_i"
SERVER = """
from tests.servers.plain import Lines, Server, Tool

class Where(Server):
    def call(self, params):
        return {"content": [], "structuredContent": params.get("_meta", {})}

Lines(Where("where", {name: Tool("Say which trace it is in.", dict) for name in ("am_i", "guarded")})).run()
"""


def config(collector: Collector, **traces: Any) -> str:
    """A gateway with one server behind it; the server says what it was given."""
    command = [sys.executable, "-ES", "-c", SERVER]
    return json.dumps(
        {
            "traces": {"endpoint": collector.url, **traces},
            "auth": {"anonymous": {"context": "default"}},
            "overrides": {"where:guarded": {"permissions": ["where:ask"]}},
            "mcp": {"servers": {"where": {"transport": "stdio", "command": command, "cwd": str(ROOT)}}},
        }
    )


@asynccontextmanager
async def gateway(collector: Collector, **traces: Any) -> AsyncGenerator[InProcessGateway]:
    async with open_gateway(config(collector, **traces)) as opened:
        assert await opened.runtime.settled(60)
        yield opened


def traceparent(trace: str, flags: str = "01") -> dict[str, str]:
    return {"traceparent": f"00-{trace}-{CALLER}-{flags}"}


def a_trace() -> str:
    return new_id().replace("-", "")


async def by_rest(crib: InProcessGateway, trace: str, flags: str = "01") -> str:
    """What the server was told of the trace of a call over REST."""
    reply = await crib.call(WHERE, headers=traceparent(trace, flags))
    assert reply.json["metadata"]["traceId"].replace("-", "") == trace
    return reply.json["data"]["traceparent"]


async def by_mcp(url: str, trace: str, mode: Literal["legacy", "2026-07-28"]) -> str:
    """The same for a call over MCP."""
    async with Client(streamable_http_client(f"{url}/mcp"), mode=mode, cache=None) as client:
        meta: Any = {**traceparent(trace), "tracestate": "desk=1"}
        answer = await client.call_tool("mcp_where_am_i", {}, meta=meta)
        told: Mapping[str, Any] = answer.structured_content or {}
        assert told["tracestate"] == "desk=1"
        return told["traceparent"]


def hangs_together(span: Span, told: str) -> bool:
    """Whether a span is under the caller's, and the server's would be under it."""
    return span.parent == CALLER and told == f"00-{span.trace}-{span.id}-01"


async def test_a_call_joins_its_callers_trace_and_passes_it_on() -> None:
    rest, legacy, modern = a_trace(), a_trace(), a_trace()
    with collecting() as collector:
        async with gateway(collector) as crib, listening(crib.server) as url:
            told = {
                rest: await by_rest(crib, rest),
                legacy: await by_mcp(url, legacy, "legacy"),
                modern: await by_mcp(url, modern, "2026-07-28"),
            }
            await until(lambda: len(collector.spans) == len(told))
        assert {span.trace for span in collector.spans} == told.keys()
        assert all(hangs_together(span, told[span.trace]) for span in collector.spans)
        faces = {span.trace: span.attributes["toolcrib.face"] for span in collector.spans}
        assert faces == {rest: "rest", legacy: "mcp", modern: "mcp"}


async def test_trace_continues_over_http() -> None:
    """Two gateways, one behind the other: what the second exports hangs under what the first does."""

    @create_tool(name="which-trace", category="query")
    async def which_trace(ctx: ToolContext) -> str:
        return ctx.trace_id

    trace = a_trace()
    with collecting() as collector:
        behind = json.dumps(
            {"traces": {"endpoint": collector.url}, "auth": {"anonymous": {"context": "default"}}}
        )
        async with open_gateway(behind, tools=[which_trace]) as far, listening(far.server) as url:
            servers = {"far": {"transport": "http", "url": f"{url}/mcp"}}
            front = json.dumps({"traces": {"endpoint": collector.url}, "mcp": {"servers": servers}})
            async with open_gateway(front) as near:
                assert await near.runtime.settled(60)
                reply = await near.call("far:which_trace", headers=traceparent(trace))
                assert reply.json["success"], reply.json
                assert reply.json["data"].replace("-", "") == trace
        spans = {span.attributes["gen_ai.tool.name"]: span for span in collector.spans}
        first, second = spans["far:which_trace"], spans["tools:which-trace"]
        assert {first.trace, second.trace} == {trace}
        assert (first.parent, second.parent) == (CALLER, first.id)


async def test_trace_sampling_follows_caller_else_config() -> None:
    kept, unkept = a_trace(), a_trace()
    with collecting() as collector:
        async with gateway(collector, sample=0.0) as crib:
            plain = await crib.key("plain")
            assert (await by_rest(crib, unkept, "00")).endswith("-00")
            assert (await crib.call(WHERE)).json["data"]["traceparent"].endswith("-00")
            assert (await by_rest(crib, kept)).endswith("-01")
            refused = await crib.call("where:guarded", key=plain, headers=traceparent(kept))
            assert refused.code == "PERMISSION_DENIED"
        # The house is closed, so all there was has been sent.
        fine, denied = collector.spans
        assert {fine.trace, denied.trace} == {kept}
        assert (fine.failed, denied.failed) == (False, True)
        assert denied.attributes["error.type"] == "PERMISSION_DENIED"
