"""Clients of both eras are notified of changes of their own list, and of nothing else."""

from typing import Any

import anyio
import httpx2
import pytest
from mcp import MCPError
from mcp.client.subscriptions import Subscription
from mcp.shared.subscriptions import ToolsListChanged
from mcp_types import InitializedNotification, ToolListChangedNotification

from tests.frontends.mcp.mcp_gateway import CALLERS, MODERN, McpGateway, serve_mcp
from tests.frontends.mcp.messages import open_session
from tests.texts import matches
from toolcrib.frontends.mcp import change_notifications

pytestmark = pytest.mark.anyio


class NotificationCounter:
    """Counts the notifications a handshake-era client gets."""

    def __init__(self) -> None:
        self.count = 0
        self._heard = anyio.Event()

    async def __call__(self, message: Any) -> None:
        if isinstance(message, ToolListChangedNotification):
            self.count += 1
            self._heard.set()
            self._heard = anyio.Event()

    async def next(self) -> None:
        with anyio.fail_after(10):
            await self._heard.wait()


async def stream_is_open(gateway: McpGateway, ear: NotificationCounter) -> None:
    """Change the list until the client is notified: it opens its stream asynchronously."""
    for number in range(100):
        gateway.offer("tools:echo", "tools:say-hello", *(["tools:count-up"] if number % 2 else []))
        with anyio.move_on_after(0.2):
            await ear.next()
            return
    pytest.fail("the client never opened its stream")


async def test_session_is_notified_of_changes_only() -> None:
    ear = NotificationCounter()
    async with serve_mcp() as gateway, gateway.client("legacy", message_handler=ear) as client:
        await client.list_tools()
        await stream_is_open(gateway, ear)
        before = ear.count
        gateway.offer("tools:echo", "tools:say-hello", "tools:count-up")
        gateway.offer("tools:echo", "tools:say-hello")
        offered = {"tools:echo", "tools:say-hello"}
        gateway.offer(*offered)
        gateway.offer("tools:echo")
        await ear.next()
        assert ear.count == before + 1
        gateway.offer("tools:echo")
        assert {tool.name for tool in (await client.list_tools()).tools} & {"echo", "say_hello"} == {"echo"}
        assert ear.count == before + 1


async def test_repeated_initialized_notifies_once() -> None:
    ear = NotificationCounter()
    async with serve_mcp() as gateway, gateway.client("legacy", message_handler=ear) as client:
        await client.session.send_notification(InitializedNotification())
        await client.list_tools()
        await stream_is_open(gateway, ear)
        before = ear.count
        gateway.offer("tools:echo")
        await ear.next()
        await client.list_tools()
        assert ear.count == before + 1


async def test_session_is_not_notified_of_invisible_changes() -> None:
    ear = NotificationCounter()
    async with serve_mcp() as gateway, gateway.client("legacy", "carol", message_handler=ear) as client:
        await client.list_tools()
        for number in range(100):
            gateway.offer("tools:echo", *(["tools:say-hello"] if number % 2 else []))
            with anyio.move_on_after(0.2):
                await ear.next()
                break
        before = ear.count
        now = {tool.name for tool in gateway.runtime.gateway.tools(CALLERS["carol"])}
        gateway.offer(*now, "tools:drop-all")
        gateway.offer(*now)
        await client.list_tools()
        assert ear.count == before


async def next_event(subscription: Subscription) -> Any:
    with anyio.fail_after(10):
        return await anext(aiter(subscription))


async def test_subscription_is_notified_of_changes_only() -> None:
    async with (
        serve_mcp() as gateway,
        gateway.client(MODERN) as client,
        client.listen(tools_list_changed=True, prompts_list_changed=True) as subscription,
    ):
        assert subscription.honored.tools_list_changed is True
        assert subscription.honored.prompts_list_changed is None
        every = [each.name for each in gateway.runtime.gateway.tools(CALLERS["bob"])]
        gateway.offer(*every)
        gateway.offer("tools:echo")
        assert await next_event(subscription) == ToolsListChanged()
        gateway.offer("tools:echo")
        with anyio.move_on_after(0.3) as patience:
            await anext(aiter(subscription))
        assert patience.cancelled_caught


async def test_unsupported_subscriptions_are_declined() -> None:
    async with (
        serve_mcp() as gateway,
        gateway.client(MODERN) as client,
        client.listen(prompts_list_changed=True) as subscription,
    ):
        assert subscription.honored.prompts_list_changed is None
        gateway.offer("tools:echo")
        with anyio.move_on_after(0.3) as patience:
            await anext(aiter(subscription))
        assert patience.cancelled_caught


async def test_listeners_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_notifications, "MAX_LISTENERS", 1)
    async with serve_mcp() as gateway, gateway.client(MODERN) as client, httpx2.AsyncClient() as http:
        session = await open_session(http, gateway.url())
        async with client.listen(tools_list_changed=True):
            with pytest.raises(MCPError) as raised:
                async with client.listen(tools_list_changed=True):
                    pass
            assert matches("mcp", "listeners are limited", str(raised.value))
            headers = {"accept": "text/event-stream", "mcp-session-id": session}
            refused = await http.get(gateway.url(), headers=headers)
            assert (refused.status_code, refused.json()["error"]["code"]) == (503, -32600)
        async with client.listen(tools_list_changed=True) as again:
            assert again.honored.tools_list_changed is True
