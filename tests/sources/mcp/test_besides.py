"""What a server has besides tools: listed with them, followed when it changes, and never at their cost."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from tests.simulated_clock import simulated_clock
from tests.sources.mcp.scripted_connection import RecordingLink, ScriptedConnection, legacy, listed, modern
from tests.texts import matches
from tests.waiting import until
from toolcrib.errors import Failed, Refused, Unavailable
from toolcrib.interfaces import SourceResources, SubscribableSource
from toolcrib.model import Call
from toolcrib.sources.mcp import list_watch
from toolcrib.sources.mcp import source as connected_server
from toolcrib.sources.mcp.connection import (
    ConnectionLost,
    InvalidResponse,
    JsonRpcError,
    McpSettings,
    ToolSettings,
)
from toolcrib.sources.mcp.source import McpSource
from toolcrib.testing import a_call, a_tool

pytestmark = [pytest.mark.anyio, simulated_clock]


ABLE: Any = {
    "tools": {},
    "resources": {"subscribe": True, "listChanged": True},
    "prompts": {"listChanged": True},
    "completions": {},
}
LISTS: dict[str, Any] = {
    "tools__list": listed("read"),
    "resources__list": {"resources": [{"uri": "x://1", "name": "one"}, {"uri": 7}]},
    "resources__templates__list": {"resourceTemplates": [{"uriTemplate": "x://{n}", "name": "any"}]},
    "prompts__list": {"prompts": [{"name": "greet"}]},
}
HAD = SourceResources(
    resources=({"uri": "x://1", "name": "one"},),
    templates=({"uriTemplate": "x://{n}", "name": "any"},),
    prompts=({"name": "greet"},),
    has_resources=True,
    has_prompts=True,
    tells=True,
    completes=True,
)


def old(**script: Any) -> ScriptedConnection:
    return ScriptedConnection(**{"initialize": legacy(**ABLE), **LISTS, **script})


def new(**script: Any) -> ScriptedConnection:
    return ScriptedConnection(
        **{"server__discover": modern(**ABLE), "subscriptions__listen": None, **LISTS, **script}
    )


def of(server: ScriptedConnection, **settings: Any) -> McpSource:
    return McpSource(McpSettings(id="fs", **settings), server.dial)


def redact(text: str) -> str:
    return text.replace("s3cret", "***")


@asynccontextmanager
async def running(source: McpSource) -> AsyncGenerator[RecordingLink]:
    link = RecordingLink()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(source.run, link)
        await until(lambda: bool(link.offers))
        yield link
        tasks.cancel_scope.cancel()


def through(door: str, **arguments: Any) -> Call:
    return a_call(a_tool(f"fs:{door}", family="mcp", idempotent=True), arguments=arguments)


@pytest.fixture
def brisk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a second pass in no time."""
    monkeypatch.setattr(connected_server, "RESOURCE_WAIT_SECONDS", 0.01)
    monkeypatch.setattr(list_watch, "MIN_DEBOUNCE_SECONDS", 0.001)
    monkeypatch.setattr(list_watch, "RETRY_DELAY_SECONDS", 0.001)


@pytest.mark.parametrize("server", [old(), new()])
async def test_it_comes_up_with_all_it_has_at_once(
    server: ScriptedConnection, caplog: pytest.LogCaptureFixture
) -> None:
    source = of(server)
    async with running(source) as link:
        assert [offer.materials for offer in link.offers] == [HAD]
        assert link.names() == ["fs:read"]
    details = source.details()
    assert {key: details[key] for key in ("resources", "templates", "prompts", "withheld_materials")} == {
        "resources": 1,
        "templates": 1,
        "prompts": 1,
        "withheld_materials": 1,
    }
    assert "fs lists 1 resources that cannot be used: number 2: it has no uri" in caplog.text


async def test_tools_only_server_gets_no_other_lists() -> None:
    server = ScriptedConnection(initialize=legacy(), **LISTS)
    source = of(server)
    async with running(source) as link:
        assert link.offers[0].materials == SourceResources()
    assert not [method for method, _ in server.asked if method.startswith(("resources", "prompts"))]
    assert "resources" not in source.details()


@pytest.mark.usefixtures("brisk")
@pytest.mark.parametrize(
    "answer",
    [
        None,
        JsonRpcError(-32603, "s3cret"),
        InvalidResponse("what?"),
        {"resources": "none"},
        JsonRpcError(-32601, "no"),
    ],
)
async def test_resource_list_failure_keeps_tools(answer: Any, caplog: pytest.LogCaptureFixture) -> None:
    server = old(resources__list=answer)
    source = of(server, redact=redact, start_timeout=1.0)
    async with running(source) as link:
        assert link.names() == ["fs:read"]
        await source.check()
        has = link.offers[-1].materials
        assert has is not None
        assert (has.resources, has.has_resources) == ((), True)
    assert not link.downs
    assert "s3cret" not in caplog.text


@pytest.mark.usefixtures("brisk")
async def test_slow_resource_list_is_published_later() -> None:
    come = anyio.Event()

    class Slow(ScriptedConnection):
        async def request(self, method: str, params: bytes, **more: Any) -> Any:
            if method == "prompts/list":
                await come.wait()
            return await super().request(method, params, **more)

    server = Slow(initialize=legacy(**ABLE), **LISTS)
    async with running(of(server)) as link:
        has = link.offers[0].materials
        assert has is not None
        assert (len(has.resources), has.prompts) == (1, ())
        come.set()
        await until(lambda: link.offers[-1].materials == HAD)


@pytest.mark.usefixtures("brisk")
async def test_failed_list_is_retried() -> None:
    server = old(prompts__list=[ConnectionLost("gone"), JsonRpcError(-1, "no"), LISTS["prompts__list"]])
    async with running(of(server)) as link:
        await until(lambda: link.offers[-1].materials == HAD)
    assert (server.count("resources/list"), server.count("prompts/list")) == (1, 3)


@pytest.mark.usefixtures("brisk")
@pytest.mark.parametrize("make", [old, new])
async def test_list_changed_refreshes_that_list(make: Any) -> None:
    server = make()
    async with running(of(server)) as link:
        await until(lambda: len(link.offers) == 1)
        server.script["prompts/list"] = {"prompts": [{"name": "greet"}, {"name": "part"}]}
        server.heard("notifications/prompts/list_changed", {})
        await until(lambda: len(link.offers) == 2)
        has = link.offers[-1].materials
        assert has is not None
        assert [prompt["name"] for prompt in has.prompts] == ["greet", "part"]
        assert (server.count("resources/list"), server.count("tools/list")) == (1, 1)
        server.heard("notifications/resources/list_changed", {})
        await until(lambda: server.count("resources/templates/list") == 2)
        await anyio.wait_all_tasks_blocked()
        assert len(link.offers) == 2, "the same list is no news"


async def test_modern_subscription_covers_all_supported_changes() -> None:
    server = new()
    async with running(of(server)):
        await until(lambda: server.count("subscriptions/listen") == 1)
    (asked,) = [
        params["notifications"] for method, params in server.asked if method == "subscriptions/listen"
    ]
    assert asked == {"resourcesListChanged": True, "promptsListChanged": True}


async def test_a_restart_does_not_make_them_blink(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connected_server, "RESOURCE_WAIT_SECONDS", 0.01)
    server = old()
    source = of(server)
    async with running(source):
        pass
    server.script["resources/list"] = server.script["prompts/list"] = None
    async with running(source) as link:
        assert link.offers[0].materials == HAD


async def test_tool_filter_covers_pseudo_tools() -> None:
    for tools, reads in ((("read",), False), (("read", "resources/read"), True)):
        source = of(old(), tools={name: ToolSettings() for name in tools})
        async with running(source) as link:
            has = link.offers[0].materials
            assert has is not None
            assert (has.has_resources, has.has_prompts) == (reads, False)
        assert source.details()["missing_tools"] == ()


async def test_tool_with_pseudo_tool_name_is_refused() -> None:
    async with running(of(old(tools__list=listed("read", "resources/read")))) as link:
        assert link.names() == ["fs:read"]
        (lost,) = link.offers[0].withheld
        assert lost.name == "fs:resources/read"


# --- requests ---


@pytest.mark.parametrize("make", [old, new])
async def test_requests_are_sent_as_they_are(make: Any) -> None:
    answers: dict[str, Any] = {"resources__read": {"contents": []}, "prompts__get": {"messages": []}}
    server = make(**answers, completion__complete={"completion": {"values": []}})
    source = of(server)
    async with running(source):
        assert (await source.call(through("resources/read", uri="x://1"))).data == {"contents": []}
        assert server.sent[-1]["name"] == "x://1"
        await source.call(through("prompts/get", name="greet", arguments={"a": "b"}))
        assert server.sent[-1]["name"] == "greet"
        for door in ("prompts/complete", "resources/complete"):
            await source.call(through(door, ref={}, argument={}))
        assert server.sent[-1]["name"] is None
    sent = [
        (method, {k: v for k, v in params.items() if k != "_meta"}) for method, params in server.asked[-4:]
    ]
    assert sent == [
        ("resources/read", {"uri": "x://1"}),
        ("prompts/get", {"name": "greet", "arguments": {"a": "b"}}),
        ("completion/complete", {"ref": {}, "argument": {}}),
        ("completion/complete", {"ref": {}, "argument": {}}),
    ]


# --- resources that are followed ---


async def test_legacy_resource_subscription() -> None:
    server = old(resources__subscribe={}, resources__unsubscribe={})
    source = of(server)
    async with running(source) as link:
        assert isinstance(source, SubscribableSource)
        for _ in range(2):
            assert (await source.call(through("resources/subscribe", uri="x://1"))).data == {}
        server.heard("notifications/resources/updated", {"uri": "x://1"})
        server.heard("notifications/resources/updated", {"uri": 7})
        assert link.updates == ["x://1"]
        assert await source.follow(frozenset({"x://2"})) == {}
        assert link.updates == ["x://1", "x://2"], "what is followed anew may have changed meanwhile"
    asked = [(method, params["uri"]) for method, params in server.asked if "subscribe" in method]
    assert asked == [
        ("resources/subscribe", "x://1"),
        ("resources/subscribe", "x://2"),
        ("resources/unsubscribe", "x://1"),
    ]


async def test_refused_subscription_is_reported() -> None:
    server = old(
        resources__subscribe=JsonRpcError(-32002, "no such s3cret"),
        resources__unsubscribe=JsonRpcError(-1, "?"),
    )
    source = of(server, redact=redact)
    async with running(source) as link:
        with pytest.raises(Failed) as raised:
            await source.call(through("resources/subscribe", uri="x://1"))
        assert matches("sources", "refused subscription is reported", str(raised.value))
        assert list(await source.follow(frozenset({"x://1"}))) == ["x://1"]
        assert link.updates == []
        server.script["resources/subscribe"] = {}
        assert await source.follow(frozenset({"x://1"})) == {}
        assert await source.follow(frozenset()) == {}
        server.script["resources/subscribe"] = ConnectionLost("gone")
        with pytest.raises(ConnectionError, match="gone"):
            await source.follow(frozenset({"x://1"}))
    with pytest.raises(Unavailable):
        await source.follow(frozenset())


def agree(server: ScriptedConnection, *uris: Any) -> None:
    server.heard(
        "notifications/subscriptions/acknowledged", {"notifications": {"resourceSubscriptions": [*uris]}}
    )


def streams(server: ScriptedConnection) -> list[Any]:
    asked = (params["notifications"] for method, params in server.asked if method == "subscriptions/listen")
    return [each["resourceSubscriptions"] for each in asked if "resourceSubscriptions" in each]


async def test_a_resource_is_followed_on_a_stream() -> None:
    source = of(server := new())
    async with running(source) as link, anyio.create_task_group() as tasks:
        tasks.start_soon(source.call, through("resources/subscribe", uri="x://1"))
        await until(lambda: streams(server) == [["x://1"]])
        agree(server, "x://1")
        await source.call(through("resources/subscribe", uri="x://1"))
        server.heard("notifications/resources/updated", {"uri": "x://1"})
        agree(server, "x://1")  # unasked, which says nothing new
        assert link.updates == ["x://1"]
        tasks.start_soon(source.follow, frozenset({"x://1", "x://2"}))
        await until(lambda: streams(server) == [["x://1"], ["x://1", "x://2"]])
        agree(server, "x://1", "x://2", 7)
        await until(lambda: link.updates == ["x://1", "x://2"])
        assert await source.follow(frozenset()) == {}
        server.heard("notifications/resources/updated", {"uri": "x://1"})
        assert link.updates == ["x://1", "x://2"]


async def test_unsupported_subscription_is_refused() -> None:
    source = of(server := new())
    async with running(source):
        refused: list[Exception] = []

        async def add() -> None:
            try:
                await source.call(through("resources/subscribe", uri="x://1"))
            except Failed as failed:
                refused.append(failed)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(add)
            await until(lambda: len(streams(server)) == 1)
            agree(server)
        assert "does not tell" in str(refused[0])
        server.script["subscriptions/listen"] = JsonRpcError(-32601, "no streams")
        await add()
        assert "no streams" in str(refused[1])


async def test_broken_stream_reconnects_and_refreshes_all_lists(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("toolcrib.sources.mcp.resource_lists.RECONNECT_DELAY_SECONDS", 0.001)
    source = of(server := new())
    async with running(source) as link:
        await until(lambda: server.count("subscriptions/listen") == 1)
        server.script["subscriptions/listen"] = [ConnectionLost("broken"), {}, None]
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(source.call, through("resources/subscribe", uri="x://1"))
            await until(lambda: bool(streams(server)))
            agree(server, "x://1")
        await until(lambda: len(streams(server)) == 3)
        agree(server, "x://1")
        assert link.updates == ["x://1"]


async def test_cancelled_subscription_keeps_the_old_stream() -> None:
    source = of(server := new())
    async with running(source):
        with anyio.move_on_after(0.01):
            await source.call(through("resources/subscribe", uri="x://1"))
        assert len(streams(server)) == 1
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(source.call, through("resources/subscribe", uri="x://1"))
            await until(lambda: len(streams(server)) == 2)
            agree(server, "x://1")


async def test_nothing_else_is_carried_out_aside() -> None:
    source = of(old())
    async with running(source):
        with pytest.raises(Refused) as raised:
            await source.call(through("nothing"))
        assert matches("sources", "nothing else is carried out aside", str(raised.value))
