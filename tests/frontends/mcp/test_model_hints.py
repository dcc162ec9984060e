"""Hints for the models behind MCP clients: one last text block, and `_meta`, by the context's setting."""

import json
from typing import Annotated, Any, get_args

import pytest
from mcp import Client, MCPError
from mcp_types import CallToolResult, TextContent
from pydantic import Field

from tests.frontends.mcp import mcp_gateway
from tests.frontends.mcp.mcp_gateway import CALLERS, CONTEXTS, ERAS, serve_mcp
from toolcrib import BusinessRuleError, ToolResult, create_tool, hints
from toolcrib.config.sections import ContextSection
from toolcrib.model import Caller, HintSetting

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("E6", "F10")]

SETTINGS: tuple[HintSetting, ...] = get_args(HintSetting)
KEPT = {"toolcrib/metadata", "toolcrib/message"}


def suggested(card_id: str, **more: Any) -> hints.Hints:
    action = {
        "action": "get-card",
        "priority": "high",
        "data": {"tool": "tools:get-card", "arguments": {"card_id": card_id}, **more},
    }
    return hints.read({"confidence": 0.5, "suggestedNextActions": [action]})


@create_tool(category="query")
def find_card(
    words: Annotated[str, Field(description="What to look for.")],
) -> ToolResult[dict[str, str]]:
    """Find a card by words of its question."""
    if words == "refuse":
        raise BusinessRuleError("TOO_MANY", "Too many cards match.", hints=suggested("card_9", repair=True))
    if words == "hidden":
        found = hints.read({"confidence": 1, "suggestedNextActions": [_hidden_call()]})
        return ToolResult(data={"words": words}, hints=found)
    if words == "plain":
        return ToolResult(data={"words": words}, hints=hints.found([words]))
    return ToolResult(data={"id": "card_7"}, hints=suggested("card_7"))


def _hidden_call() -> dict[str, Any]:
    return {"action": "x", "priority": "high", "data": {"tool": "tools:read-card", "arguments": {}}}


@create_tool(category="query")
def get_card(card_id: Annotated[str, Field(description="The id of the card.")]) -> dict[str, str]:
    """Return a card by its id."""
    return {"id": card_id}


@create_tool(category="query", permissions=["cards:read"])
def read_card() -> dict[str, str]:
    """Return a card that not everybody may read."""
    return {"id": "card_8"}


@pytest.fixture(autouse=True)
def callers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A caller for each setting, one with flat names, and one that has to search."""
    contexts = {each: ContextSection(hints=each) for each in SETTINGS}
    contexts["flat"] = ContextSection(hints="brief", style="flat")
    contexts["seeker"] = ContextSection(hints="brief", search=True, pinned=("find_card",))
    for name, context in contexts.items():
        monkeypatch.setitem(CONTEXTS, f"hints-{name}", context)
        monkeypatch.setitem(CALLERS, name, Caller(id=f"key:{name}", key=name, context=f"hints-{name}"))

    def tools(_: Any) -> list[Any]:
        return [find_card, get_card, read_card]

    monkeypatch.setattr(mcp_gateway, "make_tools", tools)


async def find(client: Client, words: str = "capital") -> CallToolResult:
    result = await client.call_tool("find_card", {"words": words})
    assert isinstance(result, CallToolResult)
    return result


def hint_text(result: CallToolResult) -> str | None:
    """The text of the hints, which is the last block and the only one with an audience."""
    *others, last = result.content
    assert not any(each.annotations for each in others)
    if last.annotations is None:
        return None
    assert isinstance(last, TextContent)
    assert last.annotations.audience == ["assistant"]
    return last.text


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("setting", SETTINGS)
async def test_results_carry_what_the_context_says(era: str, setting: HintSetting) -> None:
    async with serve_mcp() as gateway, gateway.client(era, setting) as client:
        good, plain, failed = [await find(client, each) for each in ("capital", "plain", "refuse")]
    on_success, on_failure = setting in ("brief", "full"), setting != "off"
    for result, shown in ((good, on_success), (plain, on_success), (failed, on_failure)):
        meta = result.meta or {}
        assert ("toolcrib/agentHints" in meta) is shown
        assert meta.keys() >= KEPT
        assert ("toolcrib/error" in meta) is bool(result.is_error)
    for result, shown, card in ((good, on_success, "card_7"), (failed, on_failure, "card_9")):
        text = hint_text(result)
        assert (text is not None) is shown
        if text is not None and setting == "full":
            (action,) = json.loads(text)["suggestedNextActions"]
            assert action["data"]["tool"] == "get_card"
        elif text is not None:
            assert text.endswith(f'get_card {{"card_id":"{card}"}}')
    assert hint_text(plain) is None


@pytest.mark.parametrize("era", ERAS)
async def test_structured_results_stay_as_they_are(era: str) -> None:
    async with serve_mcp() as gateway:
        async with gateway.client(era, "off") as client:
            without = await find(client)
        async with gateway.client(era, "brief") as client:
            with_hints = await find(client)
    assert with_hints.structured_content == without.structured_content == {"id": "card_7"}
    assert with_hints.content[:-1] == without.content
    assert len(with_hints.content) == 2


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("caller, name", [("brief", "get_card"), ("flat", "get-card")])
async def test_the_suggested_call_can_be_made(era: str, caller: str, name: str) -> None:
    async with serve_mcp() as gateway, gateway.client(era, caller) as client:
        listed = {tool.name for tool in (await client.list_tools()).tools}
        text = hint_text(await find(client))
        assert text is not None
        called, arguments = text.split()[-2:]
        assert called == name
        assert called in listed
        followed = await client.call_tool(called, json.loads(arguments))
        assert followed.structured_content == {"id": "card_7"}


@pytest.mark.parametrize("era", ERAS)
async def test_tools_of_others_are_not_named(era: str) -> None:
    async with serve_mcp() as gateway, gateway.client(era, "brief") as client:
        assert hint_text(await find(client, "hidden")) is None


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.requirement("F8")
async def test_a_searching_client_is_told_of_listed_tools(era: str) -> None:
    async with serve_mcp() as gateway, gateway.client(era, "seeker") as client:
        assert hint_text(await find(client)) is None
        await client.call_tool("search_tools", {"query": "get card", "limit": 1})
        assert (hint_text(await find(client)) or "").endswith('get_card {"card_id":"card_7"}')


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("setting", SETTINGS)
async def test_protocol_errors_follow_the_setting(era: str, setting: HintSetting) -> None:
    async with serve_mcp() as gateway, gateway.client(era, setting) as client:
        with pytest.raises(MCPError) as unknown:
            await client.call_tool("fetch_card", {})
        with pytest.raises(MCPError) as unread:
            await client.read_resource("cards://none")
    for raised in (unknown, unread):
        data = raised.value.error.data
        assert ("toolcrib/agentHints" in data) is (setting != "off")
        assert "toolcrib/error" in data


@pytest.mark.parametrize("era", ERAS)
async def test_a_reload_changes_the_setting_at_once(era: str) -> None:
    async with serve_mcp() as gateway, gateway.client(era, "errors") as client:
        assert hint_text(await find(client)) is None
        console = gateway.runtime.console
        contexts = dict(console.contexts.contexts)
        console.contexts.contexts = {**contexts, "hints-errors": contexts["hints-brief"]}
        assert hint_text(await find(client)) is not None
