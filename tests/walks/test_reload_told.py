"""Clients that are connected over MCP are told when a reload brings or takes tools, and can call them."""

from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.shared.subscriptions import ToolsListChanged
from mcp_types import ToolListChangedNotification

from tests.gateway_process import gateway_process
from tests.servers import client as callers
from tests.servers.settings import config, ledger

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.requirement("C5")]

OPEN = {"auth": {"anonymous": {"context": "default"}}}
PATIENCE = 60.0
ADDED = "mcp_more_append"


async def names(client: Client) -> set[str]:
    return {tool.name for tool in (await client.list_tools()).tools}


async def call(client: Client) -> None:
    answer = await client.call_tool(ADDED, {"op_id": "told"})
    assert not answer.is_error, answer


async def test_modern_client_is_notified(tmp_path: Path) -> None:
    one, two = (ledger(tmp_path / each) for each in ("one", "two"))
    async with (
        gateway_process(tmp_path, config({"one": one}, **OPEN)) as gateway,
        callers.client(gateway) as operator,
        Client(f"{gateway.url}/mcp", mode="2026-07-28") as client,
        client.listen(tools_list_changed=True) as subscription,
    ):
        await operator.answering("one:pid")
        events = aiter(subscription)
        for servers, there in (({"one": one, "more": two}, True), ({"one": one}, False)):
            await anyio.Path(tmp_path / "toolcrib.yaml").write_text(config(servers, **OPEN))
            assert (await operator.post("/reload"))[0] == 200
            with anyio.fail_after(PATIENCE):
                while (ADDED in await names(client)) != there:
                    assert isinstance(await anext(events), ToolsListChanged)
            if there:
                await call(client)


async def test_session_client_is_notified(tmp_path: Path) -> None:
    one, two = (ledger(tmp_path / each) for each in ("one", "two"))
    send, told = anyio.create_memory_object_stream[None](100)

    async def hear(message: Any) -> None:
        if isinstance(message, ToolListChangedNotification):
            send.send_nowait(None)

    async with (
        send,
        told,
        gateway_process(tmp_path, config({"one": one}, **OPEN)) as gateway,
        callers.client(gateway) as operator,
        Client(f"{gateway.url}/mcp", mode="legacy", message_handler=hear) as client,
    ):
        await operator.answering("one:pid")
        await client.list_tools()
        servers = [{"one": one, "more": two}, {"one": one}]
        with anyio.fail_after(PATIENCE):
            # A client opens the stream it hears by in its own time, so the first words may be lost on it.
            for turn in range(100):
                text = config(servers[turn % 2], **OPEN)
                await anyio.Path(tmp_path / "toolcrib.yaml").write_text(text)
                assert (await operator.post("/reload"))[0] == 200
                with anyio.move_on_after(1):
                    await told.receive()
                    break
        await anyio.Path(tmp_path / "toolcrib.yaml").write_text(config(servers[0], **OPEN))
        assert (await operator.post("/reload"))[0] == 200
        assert ADDED in await names(client)
        await call(client)
