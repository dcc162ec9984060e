"""Energy from the outside: spent by calls, it closes tools on every face, and opens them as it comes back."""

from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.subscriptions import ToolsListChanged
from mcp_types import ToolListChangedNotification

from tests.frontends.mcp.mcp_gateway import MODERN
from tests.gateways import InProcessGateway, listening, open_gateway
from tests.waiting import until
from toolcrib.sdk import create_tool

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("F5")]
CONFIG = """
energy: {{start: 100, recover_per_s: {rate}, default_cost: 1}}
contexts:
  small: {{tools: ["*"], max_energy_cost: 60}}
  needy: {{min_energy: 99.5}}
  rush: {{min_energy: 99.5, urgent: true}}
overrides: {{"tools:dear": {{energy_cost: 45}}, "tools:dearest": {{energy_cost: 70}}}}
"""


@create_tool
async def dear() -> int:
    """Do something dear."""
    return 1


@create_tool
async def dearest() -> int:
    """Do something dearer still."""
    return 1


@create_tool
async def cheap() -> int:
    """Do something cheap."""
    return 1


async def _names(gateway: InProcessGateway, key: str) -> set[str]:
    reply = await gateway.request("GET", "/api/tools", key=key)
    return {tool["name"] for tool in reply.json["tools"] if tool["source"] in ("tools", "crib")}


async def test_spending_closes_tools_in_list_and_call() -> None:
    async with open_gateway(CONFIG.format(rate=0), tools=[dear, dearest, cheap]) as gateway:
        key = await gateway.key("small", home="small")
        listed = await _names(gateway, key)
        assert {"tools:dear", "tools:cheap", "crib:await_energy"} <= listed
        assert "tools:dearest" not in listed, "the context shows nothing so dear"
        assert (await gateway.call("tools:dearest", key=key)).code == "TOOL_NOT_FOUND"
        for _ in range(2):
            assert (await gateway.call("tools:dear", key=key)).status == 200
        assert "tools:dear" not in await _names(gateway, key)
        assert (await gateway.call("tools:dear", key=key)).code == "TOOL_NOT_FOUND"
        assert (await gateway.call("tools:cheap", key=key)).status == 200
        why = await gateway.request("GET", "/api/explain?name=tools:dear&context=small")
        assert why.json["visible"] is True, "the operator has energy of its own"
        other = await gateway.key("other", home="small")
        assert "tools:dear" in await _names(gateway, other), "each caller has its own"


async def test_waiting_brings_it_back() -> None:
    async with open_gateway(CONFIG.format(rate=1000), tools=[dear, dearest, cheap]) as gateway:
        key = await gateway.key("small", home="small")
        assert (await gateway.call("tools:dear", key=key)).status == 200
        waited = await gateway.call("crib:await_energy", {"level": 99}, key=key)
        assert waited.json["data"]["reached"] is True
        assert waited.json["data"]["band"] == "high"
        assert waited.json["data"]["waited"] < 40, "at a thousand a second, and not at one"


async def test_waiting_costs_nothing() -> None:
    async with open_gateway(CONFIG.format(rate=0), tools=[dear, dearest, cheap]) as gateway:
        key = await gateway.key("small", home="small")
        for _ in range(3):
            waited = await gateway.call("crib:await_energy", {"level": 100}, key=key)
            assert waited.json["data"]["energy"] == 100


async def test_a_context_may_need_some_and_one_in_a_hurry_needs_none() -> None:
    async with open_gateway(CONFIG.format(rate=0), tools=[dear, dearest, cheap]) as gateway:
        key = await gateway.key("any", contexts=["needy", "rush"], home="needy")
        rush = "/api/tools?context=rush"
        assert {"tools:dear", "tools:cheap"} <= await _names(gateway, key)
        assert (await gateway.call("tools:cheap", key=key)).status == 200, "which costs what is usual"
        assert await _names(gateway, key) == {"crib:await_energy"}
        waited = await gateway.call("crib:await_energy", {"level": 0}, key=key)
        assert waited.json["data"]["energy"] == 99
        listed = (await gateway.request("GET", rush, key=key)).json["tools"]
        assert {"tools:dear", "tools:dearest", "tools:cheap"} <= {each["name"] for each in listed}


async def test_energy_is_absent_without_limits() -> None:
    async with open_gateway(CONFIG.format(rate=0), tools=[dear, dearest, cheap]) as gateway:
        key = await gateway.key("plain")
        for _ in range(4):
            assert (await gateway.call("tools:dear", key=key)).status == 200
        listed = await _names(gateway, key)
        assert {"tools:dear", "tools:dearest"} <= listed
        assert "crib:await_energy" not in listed


@pytest.mark.slow
async def test_both_eras_are_notified_when_tools_leave_and_return() -> None:
    heard: list[str] = []

    async def ear(message: Any) -> None:
        if isinstance(message, ToolListChangedNotification):
            heard.append("changed")

    async with (
        open_gateway(CONFIG.format(rate=20).replace("45", "60"), tools=[dear, dearest, cheap]) as gateway,
        listening(gateway.server) as url,
        httpx2.AsyncClient(
            headers={"authorization": f"Bearer {await gateway.key('small', home='small')}"}, timeout=20
        ) as http,
        Client(
            streamable_http_client(f"{url}/mcp", http_client=http), mode="legacy", message_handler=ear
        ) as old,
        Client(streamable_http_client(f"{url}/mcp", http_client=http), mode=MODERN, cache=None) as new,
        new.listen(tools_list_changed=True) as subscription,
    ):
        assert not (await new.call_tool("dear")).is_error
        with anyio.fail_after(10):
            for _ in ("gone", "back"):
                assert await anext(aiter(subscription)) == ToolsListChanged()
            await until(lambda: len(heard) == 2)
        for client in (old, new):
            assert "dear" in {tool.name for tool in (await client.list_tools()).tools}


async def test_energy_waiters_do_not_block_others() -> None:
    async with open_gateway(CONFIG.format(rate=0.01), tools=[dear]) as gateway:
        tired, other = await gateway.key("tired", home="small"), await gateway.key("other")
        assert (await gateway.call("tools:dear", key=tired)).status == 200
        ended: list[bool] = []

        async def wait(key: str) -> None:
            reply = await gateway.call("crib:await_energy", {"level": 90}, key=key)
            ended.append(reply.json["data"]["reached"])

        async with anyio.create_task_group() as tasks:
            for _ in range(60):
                tasks.start_soon(wait, tired)
            await until(lambda: len(ended) == 56)
            assert not any(ended), "four of one caller wait; the others are told what there is"
            found = await gateway.call("crib:search_tools", {"query": "dear"}, key=other)
            assert found.status == 200
            tasks.cancel_scope.cancel()
