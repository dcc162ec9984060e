"""Changes are noticed however the server tells of them, and a server that is gone is noticed too."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from tests.simulated_clock import simulated_clock
from tests.sources.mcp.scripted_connection import ScriptedConnection, listed
from tests.texts import matches
from tests.waiting import until
from toolcrib.sources.mcp import list_watch as module
from toolcrib.sources.mcp.connection import (
    ConnectionLost,
    HttpStatusError,
    InvalidResponse,
    JsonRpcError,
    McpSettings,
    NotSent,
    ServerError,
)
from toolcrib.sources.mcp.handshake import ServerIntroduction
from toolcrib.sources.mcp.list_watch import ServerWatch
from toolcrib.sources.mcp.resource_lists import Part, ServerSubscriptions

pytestmark = [pytest.mark.anyio, simulated_clock]


LEGACY = ServerIntroduction(era="legacy", revision="2025-06-18", has_tools=True, notifies_tools=True)
MODERN = ServerIntroduction(era="modern", revision="2026-07-28", has_tools=True, notifies_tools=True)
SILENT = ServerIntroduction(era="modern", revision="2026-07-28", has_tools=True)

Refresh = Callable[[], Awaitable[None]]

ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
CHANGED = "notifications/tools/list_changed"


class Refreshes:
    """Counts lists, and fails as told."""

    def __init__(self, *faults: Exception | None) -> None:
        self.faults, self.count = list(faults), 0

    async def __call__(self) -> None:
        self.count += 1
        fault = self.faults.pop(0) if self.faults else None
        if fault is not None:
            raise fault


class CountingRunner:
    """A life that counts what it is asked to do."""

    def __init__(
        self,
        server: ScriptedConnection,
        introduction: ServerIntroduction,
        refresh: Refresh,
        unread: Collection[Part] = (),
    ) -> None:
        self.refresh, self.unread = refresh, unread
        self.updates: list[str] = []
        self.subscriptions = ServerSubscriptions(server, introduction.era, self.updates.append)
        self.listed: list[set[Part]] = []
        self.failing: list[Collection[Part]] = []
        """What cannot be listed, time after time."""

    async def refresh_resources(self, parts: Collection[Part]) -> Collection[Part]:
        self.listed.append(set(parts))
        return self.failing.pop(0) if self.failing else ()


@asynccontextmanager
async def watched(
    server: ScriptedConnection,
    introduction: ServerIntroduction,
    refresh: Refresh | CountingRunner,
    **settings: Any,
) -> AsyncGenerator[ServerWatch]:
    kept = refresh if isinstance(refresh, CountingRunner) else CountingRunner(server, introduction, refresh)
    watch = ServerWatch(McpSettings(id="fs", **settings))
    server.heard = watch.handle_notification
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watch.run, server, introduction, kept)
        yield watch
        tasks.cancel_scope.cancel()


async def death(
    server: ScriptedConnection, introduction: ServerIntroduction, refresh: Refresh, **settings: Any
) -> str:
    """Wait until the watch ends; return what it says of that."""
    watch = ServerWatch(McpSettings(id="fs", **settings))
    watch.probe_now()
    with pytest.RaisesGroup(ConnectionError) as caught, anyio.fail_after(5):
        await watch.run(server, introduction, CountingRunner(server, introduction, refresh))
    return str(caught.value.exceptions[0])


@pytest.fixture
def brisk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a minute pass in no time."""
    monkeypatch.setattr(module, "POLL_SECONDS", 0.005)
    monkeypatch.setattr(module, "MIN_DEBOUNCE_SECONDS", 0.001)
    monkeypatch.setattr(module, "RETRY_DELAY_SECONDS", 0.001)


@pytest.mark.requirement("B2")
@pytest.mark.parametrize("introduction", [LEGACY, MODERN])
async def test_list_changed_triggers_refresh(introduction: ServerIntroduction) -> None:
    refresh = Refreshes()
    async with watched(server := ScriptedConnection(subscriptions__listen=None), introduction, refresh):
        server.heard(CHANGED, {})
        await until(lambda: refresh.count == 1)
        server.heard("notifications/prompts/list_changed", {})
        server.heard(CHANGED, {})
        await until(lambda: refresh.count == 2)


async def test_a_thousand_changes_at_once_bring_one_list_at_a_time() -> None:
    running = most = count = 0

    async def refresh() -> None:
        nonlocal running, most, count
        running, count = running + 1, count + 1
        most = max(most, running)
        await anyio.sleep(0.01)
        running -= 1

    async with watched(server := ScriptedConnection(), LEGACY, refresh):
        for _ in range(1_000):
            server.heard(CHANGED, {})
        await until(lambda: count == 1)
        for _ in range(1_000):
            server.heard(CHANGED, {})
            await anyio.lowlevel.checkpoint()
        await until(lambda: count == 2)
        await anyio.wait_all_tasks_blocked()
    assert (count, most) == (2, 1)


@pytest.mark.requirement("B2")
async def test_a_modern_server_is_subscribed_to() -> None:
    refresh = Refreshes()
    async with watched(server := ScriptedConnection(subscriptions__listen=None), MODERN, refresh):
        await until(lambda: server.count("subscriptions/listen") == 1)
        params = server.asked[0][1]
        assert params["notifications"] == {"toolsListChanged": True}
        assert "io.modelcontextprotocol/protocolVersion" in params["_meta"]
        server.heard(ACKNOWLEDGED, {})
        await until(lambda: refresh.count == 1)


@pytest.mark.usefixtures("brisk")
@pytest.mark.parametrize("end", [{}, ConnectionLost("the stream broke"), InvalidResponse("what?")])
async def test_a_subscription_that_ends_is_made_again(end: Any) -> None:
    server = ScriptedConnection(subscriptions__listen=[end, end, None])
    async with watched(server, MODERN, Refreshes()):
        await until(lambda: server.count("subscriptions/listen") == 3)


@pytest.mark.usefixtures("brisk")
async def test_a_server_that_has_no_subscriptions_after_all_is_polled() -> None:
    refresh, server = Refreshes(), ScriptedConnection(subscriptions__listen=JsonRpcError(-32601, "what?"))
    async with watched(server, MODERN, refresh):
        await until(lambda: refresh.count > 2)
    assert server.count("subscriptions/listen") == 1


@pytest.mark.usefixtures("brisk")
@pytest.mark.parametrize(
    "introduction, transport",
    [(SILENT, "stdio"), (SILENT, "http"), (MODERN, "http"), (LEGACY, "http")],
)
async def test_server_without_notifications_is_polled(
    introduction: ServerIntroduction, transport: str
) -> None:
    refresh = Refreshes()
    async with watched(
        ScriptedConnection(subscriptions__listen=None), introduction, refresh, transport=transport
    ):
        await until(lambda: refresh.count > 2)


@pytest.mark.usefixtures("brisk")
async def test_server_with_list_changed_is_not_polled_by_default() -> None:
    polled, told = Refreshes(), Refreshes()
    silent, server = ScriptedConnection(), ScriptedConnection(subscriptions__listen=None)
    async with (
        watched(server, MODERN, told, poll=0),
        watched(silent, LEGACY, told, transport="sse"),
        watched(ScriptedConnection(), LEGACY, polled, poll=0.005),
    ):
        await until(lambda: server.count("subscriptions/listen") == 1)
        server.heard(ACKNOWLEDGED, {})
        await until(lambda: polled.count > 5)
    assert told.count == 1


@pytest.mark.usefixtures("brisk")
async def test_a_transport_that_stops_hearing_is_no_disaster() -> None:
    class Deaf(ScriptedConnection):
        async def receive(self) -> None:
            raise ConnectionLost("the stream broke")

    refresh = Refreshes()
    async with watched(server := Deaf(), LEGACY, refresh):
        server.heard(CHANGED, {})
        await until(lambda: refresh.count == 1)


@pytest.mark.usefixtures("brisk")
async def test_a_list_that_failed_is_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    refresh = Refreshes(
        ConnectionLost("s3cret"), JsonRpcError(-1, "no"), TimeoutError(), ConnectionLost("4"), None
    )

    def redact(text: str) -> str:
        return text.replace("s3cret", "***")

    async with watched(server := ScriptedConnection(), LEGACY, refresh, redact=redact):
        server.heard(CHANGED, {})
        await until(lambda: refresh.count == 5)
    assert "so the last ones stay: ***" in caplog.text
    assert "s3cret" not in caplog.text


@pytest.mark.usefixtures("brisk")
async def test_a_web_server_that_fails_to_list_three_times_is_dead() -> None:
    refresh = Refreshes(NotSent("1"), None, NotSent("2"), HttpStatusError(500, "3"), TimeoutError())
    reason = await death(
        ScriptedConnection(tools__list=listed()), SILENT, refresh, transport="http", start_timeout=9.0
    )
    assert matches("sources", "a web server that fails to list three times is dead", reason)
    assert refresh.count == 5


@pytest.mark.usefixtures("brisk")
@pytest.mark.requirement("C4")
async def test_a_list_has_a_time_limit() -> None:
    tries = 0

    async def refresh() -> None:
        nonlocal tries
        tries += 1
        await anyio.sleep_forever()

    async with watched(server := ScriptedConnection(), LEGACY, refresh, start_timeout=0.01):
        server.heard(CHANGED, {})
        await until(lambda: tries == 2)


async def test_a_lost_connection_ends_the_watch() -> None:
    server = ScriptedConnection()
    server.lose("it exited with status 3")
    assert matches("sources", "a lost connection ends the watch", await death(server, LEGACY, Refreshes()))


@pytest.mark.parametrize(
    "fault",
    [
        NotSent("no route"),
        ConnectionLost("reset"),
        HttpStatusError(503, "gone"),
        InvalidResponse("a login page"),
    ],
)
async def test_a_web_server_in_doubt_that_does_not_answer_is_dead(fault: ServerError) -> None:
    reason = await death(ScriptedConnection(tools__list=fault), SILENT, Refreshes(), transport="http")
    assert reason.endswith(f": {fault}")


async def test_unresponsive_web_server_counts_as_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PROBE_TIMEOUT_SECONDS", 0.01)
    reason = await death(ScriptedConnection(tools__list=None), SILENT, Refreshes(), transport="http")
    assert matches("sources", "unresponsive web server counts as dead", reason)


@pytest.mark.usefixtures("brisk")
@pytest.mark.parametrize("answer", [listed("a"), JsonRpcError(-1, "not now")])
async def test_responding_web_server_counts_as_alive(answer: Any) -> None:
    server = ScriptedConnection(tools__list=answer)
    async with watched(server, SILENT, Refreshes(), transport="http") as watch:
        for count in (1, 2):
            watch.probe_now()
            await until(lambda count=count: server.count("tools/list") == count)


async def test_a_server_behind_a_pipe_needs_no_probe() -> None:
    server = ScriptedConnection(tools__list=ConnectionLost("gone"))
    async with watched(server, LEGACY, Refreshes()) as watch:
        watch.probe_now()
        await anyio.wait_all_tasks_blocked()
    assert not server.asked


# --- what is no tool ---

ALL = ServerIntroduction(
    era="legacy",
    revision="2025-06-18",
    has_tools=True,
    notifies_tools=True,
    has_resources=True,
    notifies_resources=True,
    has_prompts=True,
)


@pytest.mark.usefixtures("brisk")
async def test_lists_without_notifications_are_polled() -> None:
    server = ScriptedConnection()
    kept = CountingRunner(server, ALL, refresh := Refreshes())
    async with watched(server, ALL, kept):
        await until(lambda: len(kept.listed) > 2)
    assert kept.listed[0] == {"prompts"}
    assert refresh.count == 0


@pytest.mark.usefixtures("brisk")
async def test_operator_can_poll_all_lists() -> None:
    server = ScriptedConnection()
    kept = CountingRunner(server, ALL, Refreshes())
    async with watched(server, ALL, kept, poll=0.005):
        await until(lambda: {"resources", "prompts"} in kept.listed)


async def test_list_late_at_start_is_requested_again() -> None:
    server = ScriptedConnection()
    kept = CountingRunner(server, ALL, Refreshes(), unread=("prompts",))
    async with watched(server, ALL, kept):
        await until(lambda: kept.listed == [{"prompts"}])


@pytest.mark.usefixtures("brisk")
async def test_failed_refresh_is_retried_without_ending_web_server() -> None:
    server = ScriptedConnection(tools__list=listed())
    kept = CountingRunner(server, ALL, Refreshes())
    kept.failing = [("resources",)] * 5
    async with watched(server, ALL, kept, transport="http", poll=600):
        server.heard("notifications/resources/list_changed", {})
        await until(lambda: len(kept.listed) == 6)
    assert kept.listed == [{"resources"}] * 6


@pytest.mark.usefixtures("brisk")
async def test_hanging_list_times_out_and_is_retried() -> None:
    class Hanging(CountingRunner):
        async def refresh_resources(self, parts: Collection[Part]) -> Collection[Part]:
            self.listed.append(set(parts))
            await anyio.sleep_forever()
            raise AssertionError

    server = ScriptedConnection()
    kept = Hanging(server, ALL, Refreshes())
    async with watched(server, ALL, kept, start_timeout=0.005, poll=600):
        server.heard("notifications/prompts/list_changed", {})
        await until(lambda: kept.listed[:2] == [{"prompts"}] * 2)


async def test_update_of_unsubscribed_resource_is_dropped() -> None:
    server = ScriptedConnection()
    kept = CountingRunner(server, ALL, Refreshes())
    server.heard("notifications/resources/updated", {"uri": "x://1"})
    async with watched(server, ALL, kept) as watch:
        watch.handle_notification("notifications/resources/updated", {"uri": "x://1"})
        watch.handle_notification(ACKNOWLEDGED, {"notifications": {"resourceSubscriptions": []}})
        watch.handle_notification("notifications/unheard/of", {})
        await anyio.wait_all_tasks_blocked()
    assert (kept.updates, kept.listed) == ([], [])
