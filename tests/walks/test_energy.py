"""Energy from the outside: spent by calls, it closes tools on every face, and opens them as it comes back."""

import pytest

from tests.doors import Doors, doors
from toolcrib.sdk import create_tool

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("F5")]
CONFIG = """
energy: {{start: 100, recover_per_s: {rate}, default_cost: 1}}
contexts: {{small: {{tools: ["*"], max_energy_cost: 60}}}}
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


async def _names(crib: Doors, key: str) -> set[str]:
    reply = await crib.ask("GET", "/api/tools", key=key)
    return {tool["name"] for tool in reply.json["tools"] if tool["source"] in ("tools", "crib")}


async def test_spending_closes_tools_in_list_and_call() -> None:
    async with doors(CONFIG.format(rate=0), tools=[dear, dearest, cheap]) as crib:
        key = await crib.key("small", home="small")
        listed = await _names(crib, key)
        assert {"tools:dear", "tools:cheap", "crib:await_energy"} <= listed
        assert "tools:dearest" not in listed, "the context shows nothing so dear"
        assert (await crib.call("tools:dearest", key=key)).code == "TOOL_NOT_FOUND"
        for _ in range(2):
            assert (await crib.call("tools:dear", key=key)).status == 200
        assert "tools:dear" not in await _names(crib, key)
        assert (await crib.call("tools:dear", key=key)).code == "TOOL_NOT_FOUND"
        assert (await crib.call("tools:cheap", key=key)).status == 200
        why = await crib.ask("GET", "/api/explain?name=tools:dear&context=small")
        assert why.json["visible"] is True, "the operator has energy of its own"
        other = await crib.key("other", home="small")
        assert "tools:dear" in await _names(crib, other), "each caller has its own"


async def test_waiting_brings_it_back() -> None:
    async with doors(CONFIG.format(rate=1000), tools=[dear, dearest, cheap]) as crib:
        key = await crib.key("small", home="small")
        assert (await crib.call("tools:dear", key=key)).status == 200
        waited = await crib.call("crib:await_energy", {"level": 99}, key=key)
        assert waited.json["data"]["reached"] is True
        assert waited.json["data"]["band"] == "high"


async def test_where_nobody_counts_it_is_not_there() -> None:
    async with doors(CONFIG.format(rate=0), tools=[dear, dearest, cheap]) as crib:
        key = await crib.key("plain")
        for _ in range(4):
            assert (await crib.call("tools:dear", key=key)).status == 200
        listed = await _names(crib, key)
        assert {"tools:dear", "tools:dearest"} <= listed
        assert "crib:await_energy" not in listed
