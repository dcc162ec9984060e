"""Lists for providers: in their own shape, within their bounds, and what is left out by name."""

import json
from itertools import count
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint

from tests.frontends.rest.tools import TOOLS
from tests.gateways import InProcessGateway, open_gateway
from tests.texts import matches
from toolcrib import Registry, cooperative
from toolcrib.formats import PROVIDERS
from toolcrib.model import Tool

pytestmark = pytest.mark.anyio


async def names(gateway: InProcessGateway, query: str) -> list[str]:
    return [each["name"] for each in (await gateway.request("GET", f"/api/tools{query}")).json["tools"]]


@pytest.mark.requirement("F2")
@pytest.mark.parametrize("format", PROVIDERS)
async def test_lists_for_providers(gateway: InProcessGateway, format: str) -> None:
    target = f"/api/tools?format={format}"
    first = await gateway.request("GET", target)
    spelled = json.dumps(first.json["tools"])
    assert '"get_datetime"' in spelled
    assert "tools:add" not in spelled
    assert set(first.json) == {"tools", "total"}
    assert (await gateway.request("GET", target)).body == first.body
    found = (await gateway.request("GET", f"{target}&q=add&limit=1")).json
    assert '"add"' in json.dumps(found["tools"])
    assert '"get_datetime"' not in json.dumps(found["tools"])


@pytest.mark.requirement("F8", "F4")
async def test_a_list_that_is_too_long_is_cut_by_pins_talk_and_use() -> None:
    config = 'contexts: {short: {tools: ["tools:*"], max_tools: 3, pinned: ["tools:who"]}}'
    async with open_gateway(config, tools=TOOLS) as gateway:
        short = "?context=short&style=flat"
        target = f"/api/tools{short}"
        assert await names(gateway, short) == ["add", "secret", "who"]
        await gateway.call("echo", {"value": {}})
        assert await names(gateway, short) == ["add", "echo", "who"]
        talk = await gateway.request("GET", f"{target}&text=could+you+count+how+far+it+is")
        assert [each["name"] for each in talk.json["tools"]] == ["count", "echo", "who"]
        assert talk.json["cut"] == talk.json["total"] - 3
        chat = (await gateway.request("GET", f"{target}&format=openai_chat")).json
        assert [each["function"]["name"] for each in chat["tools"]] == ["add", "echo", "who"]
        assert chat["cut"] == talk.json["cut"]
        body = {"name": "nothing", "context": "short"}
        assert (await gateway.request("POST", "/api/tools/execute", body=body)).code != "TOOL_NOT_FOUND"
        why = (await gateway.request("GET", "/api/explain?name=flood&context=short")).json
        assert why["visible"]
        assert why["cut"].startswith("tools:flood exceeds the limit of 3 tools in lists of short")
        assert (await gateway.request("GET", "/api/explain?name=who&context=short")).json["cut"] is None


@pytest.mark.requirement("F2")
async def test_tool_unsupported_by_provider_is_named() -> None:
    async def run(arguments: dict[str, Any]) -> str:
        return "done"

    schema = {"type": "object", "properties": {"what for?": {"type": "string"}}, "required": ["what for?"]}
    definition = {"name": "odd", "description": "Takes what is odd.", "parameters": schema}
    async with open_gateway(tools=[Registry().register_tool(definition, run)]) as gateway:
        lost = (await gateway.request("GET", "/api/tools?format=gemini")).json["withheld"]
        assert [each["name"] for each in lost] == ["tools:odd"]
        assert matches("rest", "tool unsupported by provider is named", lost[0]["reason"])
        assert "withheld" not in (await gateway.request("GET", "/api/tools?format=openai_chat")).json


@pytest.mark.parametrize("format", PROVIDERS)
async def test_tool_is_rendered_once_for_all_lists(
    gateway: InProcessGateway, format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    spelled: list[str] = []
    kind = type(PROVIDERS[format])
    spell = kind.tool

    def counting(self: Any, tool: Tool, name: str) -> Any:
        spelled.append(tool.name)
        return spell(self, tool, name)

    monkeypatch.setattr(kind, "tool", counting)
    total = (await gateway.request("GET", f"/api/tools?format={format}")).json["total"]
    for more in ("", "&q=add", "&limit=2", "&text=two+numbers", "&style=safe", "&context=few"):
        assert (await gateway.request("GET", f"/api/tools?format={format}{more}")).status == 200
    assert len(spelled) == len(set(spelled)) == total


async def test_long_list_rendering_yields_to_the_loop(
    gateway: InProcessGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cooperative, "perf_counter", count().__next__)
    turns = total = 0

    async def beside() -> None:
        nonlocal turns
        while True:
            turns += 1
            await checkpoint()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(beside)
        total = (await gateway.request("GET", "/api/tools?format=gemini")).json["total"]
        tasks.cancel_scope.cancel()
    # Each tool is checked by the policy, converted and rendered.
    assert turns >= 3 * (total // cooperative.ITEMS_PER_CLOCK_CHECK)
