"""The tool that finds tools: what it finds is what its caller may use, and what to call next."""

from collections.abc import AsyncGenerator
from typing import Any

import pytest

from tests.gateways import InProcessGateway, open_gateway
from tests.texts import matches
from toolcrib.builtin.gateway_tools import CORE, search_tools
from toolcrib.gateway import Gateway
from toolcrib.sdk import Registry, create_tool

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("F8")]

CONFIG = "contexts: {few: {tools: [tools:add-stamp], search: true}, plain: {tools: [tools:add-stamp]}}"


@create_tool(category="mutation", tags=["collection"])
async def add_stamp(country: str) -> str:
    """Add a stamp to the album."""
    return country


@create_tool(category="query", permissions=["stamps:value"])
async def value_stamp(country: str) -> str:
    """Say what a stamp of the album is worth."""
    return country


@pytest.fixture
async def gateway() -> AsyncGenerator[InProcessGateway]:
    async with open_gateway(CONFIG, tools=[add_stamp, value_stamp]) as opened:
        yield opened


async def found(gateway: InProcessGateway, query: str, **more: Any) -> list[str]:
    reply = await gateway.call("crib:search_tools", {"query": query}, **more)
    assert reply.status == 200, reply.body
    return [each["name"] for each in reply.json["data"]["tools"]]


def test_nothing_falls_short_but_the_name_that_callers_know() -> None:
    tool = search_tools(Gateway.__new__(Gateway))
    assert tool.bind(CORE, "core").name == "crib:search_tools"
    assert {finding.rule for finding in Registry().validate(tool)} == {"name"}


async def test_answer_has_everything_for_a_call(gateway: InProcessGateway) -> None:
    reply = await gateway.call("search_tools", {"query": "add a stamp", "limit": 1})
    (best,) = reply.json["data"]["tools"]
    assert set(best) == {"name", "description", "inputSchema", "score"}
    assert (best["name"], best["description"]) == ("add_stamp", "Add a stamp to the album.")
    assert list(best["inputSchema"]["properties"]) == ["country"]
    assert best["score"] > 0
    assert reply.json["data"]["more"] is True
    called = await gateway.call(best["name"], {"country": "Fiji"})
    assert called.json["data"] == "Fiji"


async def test_hints_name_the_tool_to_call(gateway: InProcessGateway) -> None:
    reply = (await gateway.call("search_tools", {"query": "stamp value"})).json
    actions = [each["action"] for each in reply["agentHints"]["suggestedNextActions"]]
    assert actions[:2] == ["value_stamp", "add_stamp"]
    assert matches("tools", "hints name the tool to call", reply["message"])
    nothing = (await gateway.call("search_tools", {"query": "astronomy"})).json
    assert nothing["data"] == {"tools": [], "more": False}
    assert nothing["agentHints"]["suggestedNextActions"][0]["action"] == "broaden-search"


async def test_search_omits_forbidden_tools(gateway: InProcessGateway) -> None:
    plain = await gateway.key("plain")
    assert "value_stamp" in await found(gateway, "stamp worth")
    assert await found(gateway, "stamp worth", key=plain) == ["add_stamp"]
    assert await found(gateway, "value_stamp", key=plain) == ["add_stamp"]
    assert await found(gateway, "tools:value-stamp", key=plain) == ["add_stamp"]


async def test_it_looks_in_the_context_it_is_called_in(gateway: InProcessGateway) -> None:
    body = {"name": "search_tools", "arguments": {"query": "stamp time"}, "context": "few"}
    reply = await gateway.request("POST", "/api/tools/execute", body=body)
    assert [each["name"] for each in reply.json["data"]["tools"]] == ["add_stamp"]
    refused = await gateway.request("POST", "/api/tools/execute", body={**body, "context": "plain"})
    assert refused.code == "TOOL_NOT_FOUND", "a context that names its tools does not name this one"


async def test_it_does_not_find_itself(gateway: InProcessGateway) -> None:
    assert "search_tools" not in await found(gateway, "search tools")
    assert (await gateway.request("GET", "/api/tools?q=search+tools")).json["tools"][0][
        "name"
    ] == "crib:search_tools"


@pytest.mark.parametrize("arguments", [{}, {"query": ""}, {"query": 1}, {"query": "a", "limit": 51}])
async def test_invalid_arguments_are_refused(gateway: InProcessGateway, arguments: dict[str, Any]) -> None:
    assert (await gateway.call("search_tools", arguments)).code == "INVALID_ARGUMENTS"
