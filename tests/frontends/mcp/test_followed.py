"""Clients are notified of changed resources and prompts of servers of both eras."""

from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.frontends.mcp.resource_clients import ALL, Client, one_server
from tests.waiting import until
from toolcrib.frontends.mcp.engine import Engine
from toolcrib.gateway import Subscriber
from toolcrib.mcp.revisions import LEGACY, MODERN

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("era", ["old", "new"])
async def test_a_list_that_changes_has_another_mark(era: str, tmp_path: Path) -> None:
    async with one_server(tmp_path, era) as runtime:
        client = Client(runtime)
        materials = client.engine.resource_methods
        marks = materials.digest(ALL, "resources"), materials.digest(ALL, "prompts")
        await client.call("lib:acquire", resource="doc://late")
        await until(lambda: materials.digest(ALL, "resources") != marks[0])
        assert "doc://late" in await client.uris()
        assert materials.digest(ALL, "prompts") == marks[1]
        await client.call("lib:acquire", prompt="late")
        await until(lambda: materials.digest(ALL, "prompts") != marks[1])
        assert "mcp_lib_late" in await client.names()


@pytest.mark.parametrize("era", ["old", "new"])
async def test_subscription_survives_restarts_until_last_unsubscribe(era: str, tmp_path: Path) -> None:
    quickly = {"restart": {"enabled": True, "max_restarts": 5, "backoff_ms": 10}}
    async with one_server(tmp_path, era, **quickly) as runtime:
        engine = Engine(runtime.gateway)
        one, other = (Client(runtime, LEGACY, engine=engine) for _ in range(2))
        heard: list[tuple[Any, str]] = []
        engine.resource_methods.listen(lambda session, uri: heard.append((session, uri)))
        qualified = "toolcrib://lib/doc://a/one"
        assert await one.ask("resources/subscribe", uri="doc://a/one") == {
            "jsonrpc": "2.0",
            "id": 1,
            "result": {},
        }
        await other.result("resources/subscribe", uri=qualified)
        assert await one.call("lib:edit", uri="doc://a/one", text="two") == ["doc://a/one"]
        await until(lambda: len(heard) == 2)
        assert sorted(heard, key=lambda each: each[1]) == [
            (one.session, "doc://a/one"),
            (other.session, qualified),
        ]
        assert one.session is not None
        assert other.session is not None
        assert (one.session.subscribed_uris, other.session.subscribed_uris) == ({"doc://a/one"}, {qualified})
        heard.clear()
        assert await one.result("resources/unsubscribe", uri="doc://a/one") == {}
        await runtime.gateway.call("lib:crash", {}, ALL)
        await until(lambda: heard == [(other.session, qualified)])
        assert await one.call("lib:edit", uri="doc://a/one", text="three") == ["doc://a/one"]
        await until(lambda: len(heard) == 2)
        engine.resource_methods.drop_session(other.session)
        engine.resource_methods.drop_session(other.session)

        async def left() -> bool:
            return await one.call("lib:edit", uri="doc://a/one", text="four") == []

        with anyio.fail_after(10):
            while not await left():
                await anyio.lowlevel.checkpoint()
        assert len(heard) <= 3


async def test_subscriber_is_notified_of_its_resource(tmp_path: Path) -> None:
    async with one_server(tmp_path, "new") as runtime:
        client, heard = Client(runtime, MODERN), list[str]()
        follower: Subscriber = client.engine.resource_methods.subscriber(ALL, heard.append)
        await follower.add("doc://a/one")
        await client.call("lib:edit", uri="doc://a/one", text="two")
        await until(lambda: heard == ["doc://a/one"])
        follower.close()


async def test_down_server_is_reported(tmp_path: Path) -> None:
    off = {"restart": {"enabled": False, "max_restarts": 0, "backoff_ms": 10}}
    async with one_server(tmp_path, "old", **off) as runtime:
        client = Client(runtime)
        await runtime.gateway.call("lib:crash", {}, ALL)
        await until(lambda: not runtime.console.supervisor.is_up("lib"))
        assert "doc://shared" in await client.uris()
        for method, params in (
            ("resources/read", {"uri": "doc://shared"}),
            ("prompts/get", {"name": "greet"}),
            ("resources/subscribe", {"uri": "doc://shared"}),
        ):
            error = await client.error(method, **params)
            assert (error["code"], error["data"]["toolcrib/error"]["code"]) == (-32603, "SOURCE_DOWN"), method
