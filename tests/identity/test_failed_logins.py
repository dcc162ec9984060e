"""Failed authentications are counted exactly, slowed down per address, and bounded in number."""

from collections.abc import AsyncGenerator
from typing import Any

import anyio
import pytest

from tests.contracts.stores import opened
from toolcrib.errors import Refused
from toolcrib.identity import failed_logins
from toolcrib.identity.failed_logins import OTHERS, FailedLogins, Failure, Untried
from toolcrib.interfaces import AuditEntry, AuditRecord, Store
from toolcrib.observe import Audit, Redactor

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("I8")]


class LoginTracker:
    """Failed logins with a manual clock, and the recorded delays."""

    def __init__(self, store: Store) -> None:
        self.store, self.now, self.delays = store, 0.0, list[float]()
        self.held: anyio.Event | None = None
        audit = Audit(store.audit, Redactor())
        self.logins = FailedLogins(audit, clock=lambda: self.now, sleep=self.sleep)

    async def sleep(self, seconds: float) -> None:
        self.delays.append(seconds)
        if self.held is not None:
            await self.held.wait()

    async def fail(self, address: str = "192.0.2.1", name: str = "", count: int = 1) -> None:
        for _ in range(count):
            await self.logins.failed(Failure("rest", address, "key", name))

    async def counts(self) -> list[tuple[str, str, int]]:
        found: list[Any] = list(await self.store.audit.recent(limit=10_000))
        return [(each.address, each.actor, each.after["count"]) for each in reversed(found)]


@pytest.fixture
async def tracker() -> AsyncGenerator[LoginTracker]:
    async with opened("sqlite://") as store:
        yield LoginTracker(store)


async def test_first_failure_is_recorded_at_once_others_by_the_minute(tracker: LoginTracker) -> None:
    await tracker.fail(count=7)
    assert await tracker.counts() == [("192.0.2.1", "", 1)]
    tracker.now = 59.0
    await tracker.logins.flush()
    assert len(await tracker.counts()) == 1
    tracker.now = 61.0
    await tracker.logins.flush()
    await tracker.fail(count=3)
    tracker.now = 122.0
    await tracker.logins.flush()
    assert [count for _, _, count in await tracker.counts()] == [1, 6, 3]
    tracker.now = 200.0
    await tracker.logins.flush()
    await tracker.fail()
    assert [count for _, _, count in await tracker.counts()] == [1, 6, 3, 1]


async def test_failures_are_counted_by_address_and_key_name(tracker: LoginTracker) -> None:
    for address, name in (("192.0.2.1", ""), ("192.0.2.1", "old"), ("192.0.2.2", "")):
        await tracker.fail(address, name, count=2)
    await tracker.logins.flush(everything=True)
    assert sorted(await tracker.counts()) == [
        ("192.0.2.1", "", 1),
        ("192.0.2.1", "", 1),
        ("192.0.2.1", "old", 1),
        ("192.0.2.1", "old", 1),
        ("192.0.2.2", "", 1),
        ("192.0.2.2", "", 1),
    ]
    (newest, *_) = await tracker.store.audit.recent(limit=1)
    assert (newest.action, newest.actor_kind, newest.outcome) == ("auth.failed", "unknown", "UNAUTHENTICATED")


async def test_delay_grows_and_is_capped_and_ends(tracker: LoginTracker) -> None:
    await tracker.fail(count=20)
    assert tracker.delays == [0.25, 0.5, 1.0, 2.0, *[3.0] * 6]
    await tracker.fail("192.0.2.2", count=10)
    assert len(tracker.delays) == 10, "another address starts anew"
    tracker.now = 61.0
    await tracker.fail(count=10)
    assert len(tracker.delays) == 10


async def test_addresses_of_one_ipv6_network_count_as_one(tracker: LoginTracker) -> None:
    for number in range(12):
        await tracker.fail(f"2001:db8:1:2::{number:x}")
    assert len(tracker.delays) == 2
    assert (await tracker.counts())[0][0] == "2001:db8:1:2::/64"
    await tracker.fail("no address")


async def test_too_many_held_back_are_refused_at_once(tracker: LoginTracker) -> None:
    await tracker.fail(count=10)
    tracker.held = anyio.Event()
    async with anyio.create_task_group() as tasks:
        for _ in range(failed_logins.MAX_DELAYED_PER_ADDRESS):
            tasks.start_soon(tracker.fail)
        await anyio.wait_all_tasks_blocked()
        with pytest.raises(Refused) as refused:
            await tracker.fail()
        assert refused.value.problem.code == "RATE_LIMITED"
        assert refused.value.problem.retry_after == 3.0
        tracker.held.set()
    await tracker.logins.flush(everything=True)
    assert sum(count for _, _, count in await tracker.counts()) == 19


async def test_a_new_key_is_not_tried_while_too_many_are_held_back(tracker: LoginTracker) -> None:
    await tracker.fail(count=10)
    tracker.logins.refuse_untried("192.0.2.1")
    tracker.held = anyio.Event()
    async with anyio.create_task_group() as tasks:
        for number in range(failed_logins.MAX_DELAYED_PER_ADDRESS):
            assert len(tracker.delays) == number
            tracker.logins.refuse_untried("192.0.2.1")
            tasks.start_soon(tracker.fail)
            await anyio.wait_all_tasks_blocked()
        with pytest.raises(Untried) as refused:
            tracker.logins.refuse_untried("192.0.2.1")
        problem = refused.value.problem
        assert (problem.code, problem.retry_after) == ("RATE_LIMITED", 3.0)
        tracker.logins.refuse_untried("192.0.2.2")
        tracker.now = failed_logins.WINDOW_SECONDS + 1
        tracker.logins.refuse_untried("192.0.2.1")
        tracker.held.set()


async def test_held_back_answers_are_bounded_over_all_addresses(
    tracker: LoginTracker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failed_logins, "MAX_DELAYED", 2)
    for address in "abc":
        await tracker.fail(address, count=10)
    tracker.held = anyio.Event()
    async with anyio.create_task_group() as tasks:
        for address in "ab":
            tasks.start_soon(tracker.fail, address)
        await anyio.wait_all_tasks_blocked()
        with pytest.raises(Untried):
            tracker.logins.refuse_untried("c")
        with pytest.raises(Refused):
            await tracker.fail("c")
        tracker.logins.refuse_untried("d")
        tracker.held.set()


async def test_number_of_addresses_is_bounded_and_none_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failed_logins, "MAX_ADDRESSES", 10)
    async with opened("sqlite://") as store:
        tracker = LoginTracker(store)
        for number in range(40):
            await tracker.fail(f"192.0.2.{number}")
        assert tracker.logins.addresses == 10
        await tracker.logins.flush(everything=True)
        found = await tracker.counts()
    assert len(found) == 11
    assert found[-1] == (OTHERS.address, "", 30)


async def test_counts_survive_a_store_that_fails(
    tracker: LoginTracker, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(_trail: object, entry: AuditEntry) -> AuditRecord:
        raise OSError(entry.action)

    with monkeypatch.context() as patched:
        patched.setattr(type(tracker.store.audit), "add", fails)
        await tracker.fail(count=3)
        tracker.now = 61.0
        await tracker.logins.flush()
    tracker.now = 130.0
    await tracker.logins.flush()
    assert [count for _, _, count in await tracker.counts()] == [3]


async def test_what_is_left_is_written_at_the_end(tracker: LoginTracker) -> None:
    await tracker.fail(count=5)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(tracker.logins.run)
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    assert [count for _, _, count in await tracker.counts()] == [1, 4]
