"""A fault at every await of the background tasks: each is logged, the task goes on, and it can be stopped."""

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import anyio
import pytest

from tests.contracts.stores import a_definition
from tests.figures import figure
from tests.observe.samples import an_entry
from tests.waiting import until
from tests.walks.checks.fault_points import BACKGROUND, KINDS, Faults, Wrapped
from toolcrib import background_tasks
from toolcrib.background_tasks import keep_running
from toolcrib.frontends.mcp.sessions import McpSessionTable as McpSessions
from toolcrib.identity import KeyRing
from toolcrib.interfaces import Store
from toolcrib.observe import CallRecorder, Metrics, MutationRows, RecentCalls, UsageTally, recorder
from toolcrib.observe.call_entry import CallEntry, Sink
from toolcrib.quotas import BoundedReplays, ReplayQuota
from toolcrib.runtime import store_sync
from toolcrib.runtime.app_runtime import rereading
from toolcrib.runtime.identity import KeyReader, purge_keys
from toolcrib.runtime.store_sync import StoreWatch, StoreWriter, forget_replays, store_key_use
from toolcrib.sessions import SessionUse
from toolcrib.store import open_store
from toolcrib.testing import a_call, a_tool

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.slow,
    pytest.mark.check(23),
    pytest.mark.requirement("C4", "I5"),
]

PERIOD_SECONDS = 0.001
LAST_WRITE_SECONDS = 0.2
"""How long a last write may take here, in place of 3 s."""
TRIED = figure(("unavailable", "error", "hang"), KINDS)


@dataclass(frozen=True)
class Task:
    """A background task as the gateway starts it, and what gives it work."""

    run: Callable[[], Coroutine[Any, Any, object]]
    feed: Callable[[], object] = lambda: None


def replay_task(store: Store) -> Task:
    bounded = BoundedReplays(store.replays, ReplayQuota(), short_answer="{}", clock=store.clock.now)
    return Task(partial(keep_running, forget_replays, bounded, PERIOD_SECONDS))


def key_use_task(store: Store) -> Task:
    ring = KeyRing(now=store.clock.latest, deny=False)
    feed = partial(setattr, ring, "used", {"kept": 1.0})
    return Task(partial(keep_running, store_key_use, ring, store.keys, PERIOD_SECONDS), feed)


def key_purge_task(store: Store) -> Task:
    return Task(partial(keep_running, purge_keys, store, 90, PERIOD_SECONDS))


def key_change_task(store: Store) -> Task:
    reader = KeyReader(KeyRing(now=store.clock.latest, deny=False), store.keys)
    return Task(partial(keep_running, StoreWatch("keys", reader.read).run))


def app_change_task(store: Store) -> Task:
    async def refresh() -> None:
        await store.apps.all()

    return Task(partial(keep_running, StoreWatch("apps", rereading(store.apps.mark, refresh)).run))


def claim_task(store: Store) -> Task:
    keeper: StoreWriter[str] = StoreWriter("name claims", store.claims.put, store.claims.drop)
    return Task(partial(keep_running, keeper.run), partial(keeper.note, {"look": "a:look"}, ("gone",)))


def definition_task(store: Store) -> Task:
    async def put(fresh: Any) -> None:
        await store.definitions.put(tuple(fresh.values()))

    keeper: StoreWriter[Any] = StoreWriter("definitions", put, store.definitions.drop)
    definition = a_definition("a:look")
    return Task(partial(keep_running, keeper.run), partial(keeper.note, {"a:look": definition}, ("a:gone",)))


def mcp_session_task(store: Store) -> Task:
    sessions = McpSessions(b"key", store.mcp_sessions, store.clock.now)
    return Task(partial(keep_running, sessions.run, PERIOD_SECONDS))


class NoApps:
    """Sessions of users, none of whom has an app that runs."""

    def active(self, since: float) -> set[str]:
        return set()


def user_session_task(store: Store) -> Task:
    use = SessionUse(store.users, cast("Any", NoApps()), store.clock, idle=20 * PERIOD_SECONDS)

    async def end(user: str, since: float) -> None:
        raise AssertionError(user, since)

    return Task(partial(keep_running, use.run, end))


def sink_task(sink: Sink, entry: CallEntry) -> Task:
    """The recorder with one sink; it is not restarted, so a sink must not let an error through."""
    made = CallRecorder(Metrics(), (sink,))
    return Task(made.run, partial(sink.take, [entry]))


def watch_task(store: Store) -> Task:
    return Task(partial(keep_running, store.watch))


MUTATION = an_entry(a_call(a_tool("a:pay", category="mutation", declared_mutation=True)))
TASKS: dict[Callable[[Store], Task], Sequence[str]] = {
    replay_task: ("store.replays.prune", "store.replays.totals"),
    key_use_task: ("store.keys.used",),
    key_purge_task: ("store.keys.purge",),
    key_change_task: ("store.keys.changes",),
    app_change_task: ("store.apps.mark", "store.apps.all"),
    claim_task: ("store.claims.put", "store.claims.drop"),
    definition_task: ("store.definitions.put", "store.definitions.drop"),
    mcp_session_task: (
        "store.mcp_sessions.renew",
        "store.mcp_sessions.ended_since",
        "store.mcp_sessions.prune",
    ),
    user_session_task: ("store.users.used", "store.users.unused_since"),
    lambda store: sink_task(UsageTally(store.usage), an_entry()): ("store.usage.add",),
    lambda store: sink_task(RecentCalls(store.calls, kept=1), an_entry()): (
        "store.calls.add",
        "store.calls.prune",
    ),
    lambda store: sink_task(MutationRows(store.calls), MUTATION): ("store.calls.add",),
    watch_task: ("store.watch",),
}


async def fail_once(
    faults: Faults, task: Task, point: str, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Run a task with one fault: it is logged and the task awaits the same point again, or it is stopped."""
    caplog.clear()
    failed, before = faults.failed, faults.all_seen[point]
    faults.arm_method(point, kind, times=1)

    def has_failed() -> bool:
        task.feed()
        return faults.failed > failed

    def has_gone_on() -> bool:
        task.feed()
        is_logged = any(record.levelname in {"WARNING", "ERROR"} for record in caplog.records)
        return is_logged and faults.all_seen[point] > before + 1

    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            faults.cancel = tasks.cancel_scope.cancel
            tasks.start_soon(task.run)
            await until(has_failed)
            if kind not in {"cancelled", "hang"}:
                await until(has_gone_on)
            tasks.cancel_scope.cancel()


async def test_background_tasks_survive_a_fault_at_every_await(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(store_sync, "_POLL_SECONDS", PERIOD_SECONDS)
    monkeypatch.setattr(store_sync, "_LAST_WRITE_SECONDS", LAST_WRITE_SECONDS)
    monkeypatch.setattr(recorder, "FLUSH_INTERVAL_SECONDS", PERIOD_SECONDS)
    monkeypatch.setattr(recorder, "SINK_SHUTDOWN_SECONDS", LAST_WRITE_SECONDS)
    monkeypatch.setattr(background_tasks, "RESTART_SECONDS", PERIOD_SECONDS)
    faults, tried, opened = Faults(), set[str](), await open_store("sqlite://")
    store = cast("Store", Wrapped(opened, "store", faults))
    try:
        for make, points in TASKS.items():
            for point in points:
                for kind in TRIED:
                    if (point, kind) == ("store.watch", "lost"):
                        continue  # it has no end, so no error after it
                    await fail_once(faults, make(store), point, kind, caplog)
                tried.add(point)
    finally:
        await opened.close()
    print(f"{len(TASKS)} background tasks, {len(tried)} awaits, {faults.failed} faults: all survived")
    assert tried >= BACKGROUND
