"""Where tools are searched for, clients are shown what is pinned, what searches, and what they found."""

from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.shared.subscriptions import ToolsListChanged
from mcp_types import ToolListChangedNotification

from tests.frontends.mcp.mcp_gateway import CALLERS, ERAS, MODERN, serve_mcp
from tests.frontends.mcp.messages import ENVELOPE, LEGACY_HEADERS, answer_of, ask, call, message, open_session
from tests.waiting import until
from toolcrib.frontends.mcp import tool_list
from toolcrib.frontends.mcp.request import Peer
from toolcrib.frontends.mcp.tool_list import SearchResults
from toolcrib.model import Result

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.requirement("F8")]


async def names(client: Client) -> list[str]:
    return [tool.name for tool in (await client.list_tools()).tools]


async def search(client: Client, query: str, limit: int = 1) -> list[str]:
    result = await client.call_tool("search_tools", {"query": query, "limit": limit})
    assert result.structured_content is not None
    return [each["name"] for each in result.structured_content["tools"]]


@pytest.mark.parametrize("era", ERAS)
async def test_search_results_are_added_to_the_list(era: str) -> None:
    async with serve_mcp() as gateway, gateway.client(era, "frank") as frank:
        assert await names(frank) == ["echo", "search_tools"]
        assert await search(frank, "say hello") == ["say_hello"]
        assert await names(frank) == ["echo", "search_tools", "say_hello"]
        assert await search(frank, "count as a list") == ["count_up"]
        assert await search(frank, "hello") == ["say_hello"]
        assert await names(frank) == ["echo", "search_tools", "say_hello", "count_up"]
        await search(frank, "echo a text")
        assert (await names(frank)).count("echo") == 1


async def test_clients_are_told_about_search() -> None:
    async with serve_mcp() as gateway, httpx2.AsyncClient() as http:
        for caller, told in (("frank", True), ("bob", False)):
            url = gateway.url(caller)
            client = {"name": "raw", "version": "1"}
            opening = message("initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo=client)
            met = await http.post(url, json=opening, headers=LEGACY_HEADERS)
            discovered = await ask(http, url, message("server/discover", _meta=ENVELOPE))
            for reply in (met, discovered):
                assert ("`search_tools`" in answer_of(reply)["result"]["instructions"]) is told


@pytest.mark.parametrize("era", ERAS)
async def test_unlisted_tools_remain_callable(era: str) -> None:
    async with serve_mcp() as gateway, gateway.client(era, "frank") as frank:
        called = await frank.call_tool("say_hello", {})
        assert called.is_error is False
        assert await names(frank) == ["echo", "search_tools"], "a call is no search"
        assert await search(frank, "read secret", 50) != []
        assert "read_secret" not in await names(frank)


async def test_search_results_are_per_session_else_per_caller() -> None:
    async with (
        serve_mcp() as gateway,
        gateway.client("legacy", "frank") as one,
        gateway.client("legacy", "frank") as two,
    ):
        await search(one, "say hello")
        assert "say_hello" in await names(one)
        assert "say_hello" not in await names(two)
        async with gateway.client(MODERN, "frank") as three, gateway.client(MODERN, "frank") as four:
            assert "say_hello" not in await names(three)
            await search(three, "count as a list")
            assert "count_up" in await names(four)
            async with gateway.client(MODERN, "gina") as other:
                assert "count_up" not in await names(other)
        assert "count_up" not in await names(one)


async def test_session_is_notified_of_longer_list() -> None:
    heard = anyio.Event()

    async def ear(told: Any) -> None:
        if isinstance(told, ToolListChangedNotification):
            heard.set()

    async with serve_mcp() as gateway, gateway.client("legacy", "frank", message_handler=ear) as frank:
        await search(frank, "say hello")
        with anyio.fail_after(10):
            await heard.wait()


async def test_session_without_stream_is_notified_on_the_call() -> None:
    async with serve_mcp() as gateway, httpx2.AsyncClient() as http:
        url = gateway.url("frank")
        session = await open_session(http, url)
        first = await call(http, url, session, "search_tools", query="say hello", limit=1)
        assert "notifications/tools/list_changed" in first.text
        again = await call(http, url, session, "search_tools", query="say hello", limit=1)
        assert "list_changed" not in again.text
        plain = {**LEGACY_HEADERS, "accept": "application/json", "mcp-session-id": session}
        sent = message("tools/call", name="search_tools", arguments={"query": "count as a list", "limit": 1})
        quiet = await http.post(url, json=sent, headers=plain)
        assert quiet.headers["content-type"] == "application/json"


async def test_subscription_is_notified_of_own_searches() -> None:
    async with (
        serve_mcp() as gateway,
        gateway.client(MODERN, "frank") as frank,
        gateway.client(MODERN, "gina") as gina,
        frank.listen(tools_list_changed=True) as subscription,
    ):
        await search(gina, "count as a list")
        await search(frank, "say hello")
        with anyio.fail_after(10):
            assert await anext(aiter(subscription)) == ToolsListChanged()
        await search(frank, "say hello")
        await search(gina, "take steps")
        with anyio.move_on_after(0.2) as patience:
            await anext(aiter(subscription))
        assert patience.cancelled_caught


async def test_search_is_limited_to_context_tools_and_max_tools() -> None:
    async with serve_mcp() as gateway, gateway.client("legacy", "harry") as harry:
        assert await names(harry) == ["search_tools"]
        assert await search(harry, "echo hello count", 50) == ["say_hello", "echo"]
        assert await names(harry) == ["search_tools", "echo"], "there is room for two"


async def test_truncated_list_keeps_pinned_and_cut_tools_are_callable() -> None:
    async with serve_mcp() as gateway, gateway.client("legacy", "ivan") as ivan:
        listed = await names(ivan)
        assert len(listed) == 3
        assert "say_hello" in listed
        assert "count_up" not in listed
        assert (await ivan.call_tool("count_up", {"to": 1})).is_error is False


async def test_removed_tools_are_not_listed() -> None:
    async with serve_mcp() as gateway, gateway.client("legacy", "frank") as frank:
        await search(frank, "say hello")
        gateway.offer("tools:echo")
        assert await names(frank) == ["echo", "search_tools"]
        gateway.offer("tools:echo", "tools:say-hello")
        await until(
            lambda: "tools:say-hello" in [t.name for t in gateway.runtime.gateway.tools(CALLERS["frank"])]
        )
        assert await names(frank) == ["echo", "search_tools", "say_hello"]


async def test_only_so_much_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool_list, "MAX_FOUND_TOOLS", 2)
    monkeypatch.setattr(tool_list, "MAX_SEARCHING_CALLERS", 1)
    async with serve_mcp() as gateway:
        finds = SearchResults(gateway.runtime.gateway)
        frank, gina = (Peer(CALLERS[name], MODERN, {}) for name in ("frank", "gina"))

        def note(peer: Peer, *found: str) -> bool:
            return finds.record(
                peer, "search_tools", Result(data={"tools": [{"name": name} for name in found]})
            )

        def shown(peer: Peer) -> list[str]:
            return [tool.exposed for tool in finds.listed(peer.caller, None)][2:]

        assert note(frank, "say_hello", "count_up")
        assert not note(frank, "say_hello")
        assert note(frank, "say_hello", "drop_all")
        assert shown(frank) == ["say_hello", "drop_all"], "what was just found stays"
        assert not finds.record(frank, "echo", Result(data={"tools": [{"name": "count_up"}]}))
        assert not finds.record(frank, "nowhere", Result())
        assert note(gina, "take_steps")
        assert shown(gina) == ["take_steps"]
        assert shown(frank) == [], "the caller that searched longest ago is forgotten"
