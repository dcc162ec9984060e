"""Whatever a tool is, answers or fails with, on whichever face it is asked: complete, faultless hints."""

import json
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.gateways import InProcessGateway, open_gateway
from tests.hint_fields import HINT_FIELD_SET
from tests.waiting import until
from toolcrib.errors import (
    CODES,
    Broken,
    BusinessRuleError,
    Failed,
    Lost,
    Refused,
    ToolcribError,
    Unavailable,
)
from toolcrib.hints import read
from toolcrib.model import Call, Deprecation, Example, Family, Result, Tool
from toolcrib.testing import FakeSource, a_caller, a_tool

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

FAMILIES: tuple[Family, ...] = ("function", "core", "mcp", "langchain", "openapi")
"""Apps need a user who has them: tests/walks/test_apps_everywhere.py asks real ones the same."""
MODERN, LEGACY = "2026-07-28", "2025-06-18"
MCP = {"accept": "application/json, text/event-stream"}
SCHEMA: Any = {"type": "object", "required": ["a"], "properties": {"a": {}}}
CLIENT = {"name": "test", "version": "1.0.0"}


def _error(kind: type[ToolcribError], code: str, text: str) -> ToolcribError:
    return kind(code, text)


values: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False)
    | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
blocks: st.SearchStrategy[Any] = st.lists(
    st.text(max_size=20).map(lambda text: {"type": "text", "text": text}), min_size=1, max_size=2
)
raised: st.SearchStrategy[Any] = st.one_of(
    st.builds(
        _error,
        st.sampled_from([Refused, Unavailable, Lost, Failed, Broken]),
        st.sampled_from(sorted(CODES)),
        st.text(max_size=30),
    ),
    st.builds(BusinessRuleError, st.text(max_size=10), st.text(max_size=30)),
    st.builds(ValueError, st.text(max_size=30)),
)
answers: st.SearchStrategy[Any] = st.one_of(
    values.map(lambda data: Result(data=data)),
    blocks.map(lambda content: Result(content=tuple(content))),
    raised,
)
tools: st.SearchStrategy[Any] = st.fixed_dictionaries(
    {
        "category": st.sampled_from(["query", "mutation", "analysis", "generation"]),
        "response_time": st.sampled_from(["fast", "medium", "slow"]),
        "tags": st.lists(st.sampled_from(["a", "b", "c"]), max_size=3, unique=True).map(tuple),
        "title": st.none() | st.text(min_size=1, max_size=10),
        "description": st.text(max_size=300),
        "cache_ttl": st.none() | st.floats(0.1, 1e6),
        "idempotent": st.booleans(),
        "destructive": st.booleans(),
        "examples": st.lists(
            st.builds(Example, description=st.text(max_size=300), params=st.just({"x": "y" * 300})),
            max_size=2,
        ).map(tuple),
        "deprecated": st.none()
        | st.just(Deprecation(since="1.0.0", replacement="mcp:other", removal_date="2199-01-01")),
        "output_schema": st.none() | st.just(SCHEMA),
    }
)


class SourcesGateway:
    """A house with a source of every family, which offers and answers as it is told."""

    def __init__(self, gateway: InProcessGateway) -> None:
        self.gateway = gateway
        self.answer: Result | Exception = Result(data=1)
        self.round = 0
        self.sources = {family: FakeSource([self.tool(family)], self.say) for family in FAMILIES}
        for source in self.sources.values():
            gateway.runtime.console.supervisor.add(source)

    def tool(self, family: Family, **fields: Any) -> Tool:
        return a_tool(f"{family}:one", family=family, expose_as=f"{family}_one", **fields)

    async def say(self, call: Call) -> Result:
        del call
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    async def offer(self, family: Family, fields: dict[str, Any]) -> None:
        """Offer a tool that is like no other before, and wait until it can be called."""
        self.round += 1
        version, caller = f"1.0.{self.round}", a_caller(permissions=frozenset({"*"}))
        one = self.tool(family, version=version, **fields)
        other = a_tool(f"{family}:other", family=family, expose_as=f"{family}_other", tags=("a",))
        self.sources[family].offer([one, other])
        await until(lambda: self.gateway.runtime.gateway.tool(one.name, caller).version == version)

    async def rest(self, family: str) -> Any:
        return (await self.gateway.call(f"{family}:one", {})).json["agentHints"]

    async def stream(self, family: str) -> Any:
        reply = await self.gateway.call(f"{family}:one", {}, headers={"accept": "text/event-stream"})
        last = reply.body.decode().strip().split("\n\n")[-1]
        return json.loads(last.partition("data: ")[2])["agentHints"]

    async def modern(self, family: str) -> Any:
        meta = {
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientInfo": CLIENT,
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        return await self._mcp(
            family,
            {"_meta": meta},
            {"mcp-protocol-version": MODERN, "mcp-method": "tools/call", "mcp-name": f"{family}_one"},
        )

    async def legacy(self, family: str) -> Any:
        hello = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": CLIENT}
        begun = await self.gateway.request(
            "POST",
            "/mcp",
            body={"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello},
            headers=MCP,
        )
        session = begun.headers["mcp-session-id"]
        return await self._mcp(family, {}, {"mcp-session-id": session, "mcp-protocol-version": LEGACY})

    async def _mcp(self, family: str, more: Any, headers: dict[str, str]) -> Any:
        params: Any = {"name": f"{family}_one", "arguments": {}, **more}
        body: Any = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        reply = (await self.gateway.request("POST", "/mcp", body=body, headers={**MCP, **headers})).json
        carried = reply["result"]["_meta"] if "result" in reply else reply["error"]["data"]
        return carried["toolcrib/agentHints"]


@pytest.fixture
async def sources() -> AsyncGenerator[SourcesGateway]:
    async with open_gateway("{limits: {per_user: null}, contexts: {default: {hints: full}}}") as gateway:
        made = SourcesGateway(gateway)
        assert await gateway.runtime.settled(10)
        yield made


@pytest.mark.no_cover
@pytest.mark.requirement("E6", "E7", "E9")
@settings(max_examples=250, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(family=st.sampled_from(FAMILIES), fields=tools, answer=answers)
async def test_every_result_carries_complete_hints(
    sources: SourcesGateway, family: Family, fields: dict[str, Any], answer: Result | ToolcribError
) -> None:
    sources.answer = answer
    await sources.offer(family, fields)
    for ask in (sources.rest, sources.stream, sources.modern, sources.legacy):
        hints = await ask(family)
        assert hints.keys() >= HINT_FIELD_SET
        read(hints)
    lost = await sources.gateway.call("nobody:knows")
    read(lost.json["agentHints"])
