"""Lists are kept, and never stale: after every change both faces show what is there now, also to searches."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from tests.frontends.mcp.messages import ENVELOPE, message, modern_headers
from tests.gateways import InProcessGateway, open_gateway
from toolcrib import Crib, create_tool
from toolcrib.interfaces import Offer
from toolcrib.model import Tool
from toolcrib.testing import FakeSource, a_tool

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("F9")]

STEPS = 40


async def over_rest(crib: InProcessGateway, query: str = "", **more: Any) -> dict[str, str]:
    listed = (await crib.request("GET", f"/api/tools?style=safe{query}", **more)).json["tools"]
    return {each["name"]: each["description"] for each in listed}


async def over_mcp(crib: InProcessGateway, **more: Any) -> dict[str, str]:
    headers = modern_headers("tools/list")
    reply = await crib.request(
        "POST", "/mcp", body=message("tools/list", _meta=ENVELOPE), headers=headers, **more
    )
    return {each["name"]: each["description"] for each in reply.json["result"]["tools"]}


def stock(random: Random) -> list[Tool]:
    """Some of the tools there may be, in any order, each said in one of several ways."""
    some = random.sample(range(12), random.randint(0, 12))
    return [
        a_tool(f"shelf:tool_{number}", family="mcp", description=f"Wares {random.choice('abc')}", exposed="")
        for number in some
    ]


async def test_both_frontends_show_every_change() -> None:
    random = Random(9)  # noqa: S311 - a walk to be walked again, not a secret
    async with open_gateway() as crib:
        catalog, gateway = crib.runtime.console.catalog, crib.runtime.gateway
        for _ in range(STEPS):
            offered = stock(random)
            before = gateway.version
            catalog.replace("shelf", Offer(tools=tuple(offered)))
            wanted = {f"mcp_shelf_{tool.local}": tool.description for tool in offered}
            rest, mcp = await over_rest(crib), await over_mcp(crib)
            assert [each for each in mcp.items() if each[0].startswith("mcp_shelf")] == [*wanted.items()]
            told = {name: text for name, text in rest.items() if name.startswith("mcp_shelf")}
            assert told == {name: f"[MCP:shelf] {text}" for name, text in wanted.items()}
            assert set(await over_rest(crib, "&q=wares")) == set(wanted)
            assert gateway.version >= before
            assert (await over_rest(crib), await over_mcp(crib)) == (rest, mcp), "kept as it is"


async def test_visibility_changes_apply_at_once() -> None:
    @create_tool
    async def water_plants() -> str:
        """Water the plants."""
        return "done"

    async with open_gateway(tools=[water_plants]) as crib:
        await crib.begin("ann")
        ann = {"x-user-id": "ann"}
        assert "water_plants" in await over_rest(crib, headers=ann)
        for method, there in (("PUT", False), ("DELETE", True)):
            done = await crib.request(method, "/api/users/ann/tools/tools:water-plants/disabled")
            assert done.status < 300, done.body
            assert ("water_plants" in await over_rest(crib, headers=ann)) is there
            assert ("water_plants" in await over_rest(crib, "&q=plants", headers=ann)) is there


def differing(tools: Sequence[Tool]) -> Sequence[Callable[[], Sequence[Tool]]]:
    first = tools[0]
    return (
        lambda: [replace(first, description="Other words."), *tools[1:]],
        lambda: [replace(first, input_schema={"type": "object", "properties": {"more": {}}}), *tools[1:]],
        lambda: list(reversed(tools)),
        lambda: tools[1:],
    )


@pytest.mark.parametrize("change", range(4))
async def test_catalog_version_counts_only_changes(change: int) -> None:
    tools = [a_tool(f"fake:tool_{number}", family="mcp", exposed="") for number in range(3)]
    source = FakeSource(tools)
    async with open_gateway() as crib:
        gateway, catalog = crib.runtime.gateway, crib.runtime.console.catalog
        catalog.replace(source.id, Offer(tools=tuple(tools)))
        version, first = gateway.version, await over_mcp(crib)
        catalog.replace(source.id, Offer(tools=tuple(tools)))
        assert (gateway.version, await over_mcp(crib)) == (version, first)
        catalog.replace(source.id, Offer(tools=tuple(differing(tools)[change]())))
        assert gateway.version == version + 1


async def test_usage_reaches_the_library() -> None:
    @create_tool(category="query")
    async def halve_number(number: int) -> float:
        """Halve a number."""
        return number / 2

    async with Crib(tools=[halve_number]) as crib:
        assert await crib.usage() == {}
        for number in (2, 4, "six"):
            await crib.call("halve-number", {"number": number})
        await crib.call("halve-number", {"number": 8}, user="ann")
        used = (await crib.usage())["tools:halve-number"]
        assert (used["calls"], used["errors"]) == (4, 1)
        assert 0 <= used["p50"] <= used["p95"] < 60_000
        assert used["lastUsed"] > 1_700_000_000
        assert (await crib.usage(user="ann"))["tools:halve-number"]["calls"] == 1
        assert await crib.usage(tool="tools:other") == {}
        assert await crib.usage(since="2999-01-01") == {}
