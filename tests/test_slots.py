"""Slots: the total and the share hold, waiting principals take turns, and no slot is lost."""

from collections import Counter
from random import Random

import anyio
import pytest
from anyio.abc import TaskGroup
from anyio.lowlevel import checkpoint
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.waiting import until
from toolcrib.slots import FairSlots, Slots

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("I10")]


def taken(slots: Slots, principal: str, tries: int) -> int:
    return sum(slots.take(principal) for _ in range(tries))


def test_one_principal_gets_three_quarters() -> None:
    slots = Slots(32)
    assert taken(slots, "a", 300) == 24
    assert taken(slots, "b", 300) == 8
    assert not slots.take("c")


def test_share_is_configurable() -> None:
    assert taken(Slots(10, share=1.0), "a", 20) == 10
    assert taken(Slots(10, share=0.25), "a", 20) == 2


@pytest.mark.parametrize("kind", [Slots, FairSlots])
@pytest.mark.parametrize("total, first", [(1, 1), (2, 1), (3, 2), (4, 3)])
def test_small_totals_leave_one_slot_to_others(kind: type[Slots], total: int, first: int) -> None:
    assert taken(kind(total), "a", 10) == first


def test_released_slots_leave_no_entry() -> None:
    slots = Slots(4)
    assert taken(slots, "a", 4) == 3
    for _ in range(3):
        slots.release("a")
    assert (slots.used, slots.by_principal) == (0, {})


async def settle() -> None:
    """Let every task run until it waits, which takes a few turns of the loop."""
    for _ in range(8):
        await checkpoint()


class Crowd:
    """Requests for fair slots, each a task, with a record of what was granted and refused."""

    def __init__(self, tasks: TaskGroup, slots: FairSlots) -> None:
        self._tasks, self.slots = tasks, slots
        self.scopes: dict[int, anyio.CancelScope] = {}
        self.running: dict[int, str] = {}
        self.paused: dict[int, str] = {}
        self.granted: list[str] = []
        self.refused: list[str] = []
        self.ends: dict[int, anyio.Event] = {}
        self._numbered = 0

    async def arrive(self, principal: str, user: str = "", seconds: float = 60.0) -> int:
        self._numbered += 1
        self._tasks.start_soon(self._request, self._numbered, principal, user, seconds)
        await settle()
        return self._numbered

    async def _request(self, number: int, principal: str, user: str, seconds: float) -> None:
        slots = self.slots
        with anyio.CancelScope() as self.scopes[number]:
            if not slots.take(principal) and not await slots.wait(principal, user, seconds):
                self.refused.append(f"{principal}{user}")
                return
            self.running[number] = principal
            self.granted.append(f"{principal}{user}")
            self.ends[number] = anyio.Event()
            try:
                await self.ends[number].wait()
            finally:
                if number in self.paused:
                    slots.retake(self.paused.pop(number))
                else:
                    del self.running[number]
                slots.release(principal)

    async def finish(self, number: int) -> None:
        self.ends[number].set()
        await settle()

    async def cancel(self, number: int) -> None:
        self.scopes[number].cancel()
        await settle()

    async def pause(self, number: int) -> None:
        self.paused[number] = self.running.pop(number)
        self.slots.release(self.paused[number])
        await settle()

    async def serve(self, times: int) -> None:
        """Finish the one that has run longest, so many times."""
        for _ in range(times):
            await self.finish(next(iter(self.running)))

    async def leave(self) -> None:
        for scope in self.scopes.values():
            scope.cancel()
        await settle()


async def test_queue_is_fair_by_principal_then_user_then_arrival() -> None:
    slots = FairSlots(1, max_waiting=20)
    async with anyio.create_task_group() as tasks:
        crowd = Crowd(tasks, slots)
        for who in ("a0", "a1", "a1", "a1", "a2", "b1", "b1", "c1"):
            await crowd.arrive(who[0], who[1])
        await crowd.serve(7)
        assert crowd.granted == ["a0", "a1", "b1", "c1", "a2", "b1", "a1", "a1"]
        await crowd.leave()
    assert (slots.used, slots.waiting) == (0, {})


async def test_half_is_the_limit_while_others_wait() -> None:
    slots = FairSlots(8, max_waiting=100)
    async with anyio.create_task_group() as tasks:
        crowd = Crowd(tasks, slots)
        for who in "a" * 20 + "b" * 20:
            await crowd.arrive(who)
        assert Counter(crowd.running.values()) == {"a": 6, "b": 2}
        await crowd.serve(2)
        assert Counter(crowd.running.values()) == {"a": 4, "b": 4}
        await crowd.serve(10)
        assert Counter(crowd.running.values()) == {"a": 4, "b": 4}
        await crowd.leave()


async def test_share_returns_when_the_last_other_gives_up() -> None:
    slots = FairSlots(4)
    async with anyio.create_task_group() as tasks:
        crowd = Crowd(tasks, slots)
        last = [await crowd.arrive(who) for who in "aabbaab"][-1]
        await crowd.finish(3)
        assert Counter(crowd.running.values()) == {"a": 2, "b": 2}
        await crowd.finish(4)
        assert Counter(crowd.running.values()) == {"a": 3, "b": 1}
        assert last in crowd.running
        await crowd.leave()


async def test_cancelled_waiter_frees_its_slot() -> None:
    slots = FairSlots(8)
    async with anyio.create_task_group() as tasks:
        crowd = Crowd(tasks, slots)
        last = [await crowd.arrive(who) for who in "c" * 4 + "a" * 4 + "c" + "a" * 2][-1]
        await crowd.finish(2)
        assert Counter(crowd.running.values()) == {"c": 4, "a": 4}
        await crowd.finish(3)
        assert Counter(crowd.running.values()) == {"c": 3, "a": 5}
        assert crowd.slots.waiting == {"a": 1}
        await crowd.cancel(last)
        assert crowd.slots.waiting == {}
        await crowd.leave()


async def test_full_queue_drops_the_newest_of_the_longest() -> None:
    slots = FairSlots(1, max_waiting=4)
    async with anyio.create_task_group() as tasks:
        crowd = Crowd(tasks, slots)
        for who in ("a0", "a1", "a2", "a2", "b1"):
            await crowd.arrive(who[0], who[1])
        assert crowd.slots.waiting == {"a": 3, "b": 1}
        await crowd.arrive("c", "1")
        assert (crowd.refused, crowd.slots.waiting) == (["a2"], {"a": 2, "b": 1, "c": 1})
        await crowd.arrive("c", "2")
        assert (crowd.refused, crowd.slots.waiting) == (["a2", "c2"], {"a": 2, "b": 1, "c": 1})
        await crowd.arrive("d", "1")
        assert crowd.slots.waiting == {"a": 1, "b": 1, "c": 1, "d": 1}
        await crowd.arrive("e", "1")
        assert crowd.refused == ["a2", "c2", "a1", "e1"]
        await crowd.leave()
    assert (slots.used, slots.waiting) == (0, {})


async def test_one_principal_fills_only_its_share_of_the_queue() -> None:
    slots = FairSlots(1, max_waiting=8)
    async with anyio.create_task_group() as tasks:
        crowd = Crowd(tasks, slots)
        for _ in range(10):
            await crowd.arrive("a")
        assert (crowd.slots.waiting, len(crowd.refused)) == ({"a": 6}, 3)
        await crowd.leave()


async def test_without_queue_excess_is_refused() -> None:
    slots = FairSlots(1, max_waiting=0)
    assert slots.take("a")
    assert not await slots.wait("b", "", 60.0)


async def test_timed_out_waiter_is_removed() -> None:
    slots = FairSlots(1)
    assert slots.take("a")
    assert not await slots.wait("b", "", 0.01)
    slots.release("a")
    assert (slots.used, slots.by_principal, slots.waiting) == (0, {}, {})


async def test_slot_of_cancelled_waiter_is_passed_on() -> None:
    slots = FairSlots(1)
    async with anyio.create_task_group() as tasks:
        crowd = Crowd(tasks, slots)
        first, second, third = [await crowd.arrive(who) for who in "abc"]
        crowd.scopes[second].cancel()
        crowd.ends[first].set()
        await settle()
        assert list(crowd.running) == [third]
        await crowd.finish(third)
    assert slots.used == 0


EVENT = st.tuples(
    st.sampled_from(["arrive", "arrive", "arrive", "finish", "cancel", "pause"]),
    st.sampled_from("abc"),
    st.sampled_from("12"),
    st.integers(0, 20),
)


def check(crowd: Crowd) -> None:
    """Nothing is over a limit, nobody waits who could run, and the counts are those of the crowd."""
    slots = crowd.slots
    assert slots.by_principal == Counter(crowd.running.values())
    assert slots.used == len(crowd.running) <= slots.total
    assert max(slots.by_principal.values(), default=0) <= slots.per_principal
    assert sum(slots.waiting.values()) <= slots.max_waiting
    assert max(slots.waiting.values(), default=0) <= slots.waiting_per_principal
    for principal in slots.waiting:
        limit = slots.per_principal if set(slots.waiting) == {principal} else slots.half
        assert slots.used == slots.total or slots.by_principal.get(principal, 0) >= limit


@settings(max_examples=100, deadline=None)
@given(
    st.integers(1, 7), st.integers(0, 8), st.sampled_from([0.0, 0.5, 0.75, 1.0]), st.lists(EVENT, max_size=40)
)
def test_limits_hold_and_no_slot_is_lost(
    total: int, max_waiting: int, share: float, events: list[tuple[str, str, str, int]]
) -> None:
    async def play() -> None:
        slots = FairSlots(total, share, max_waiting=max_waiting)
        async with anyio.create_task_group() as tasks:
            crowd = Crowd(tasks, slots)
            for kind, principal, user, pick in events:
                running = list(crowd.running)
                if kind == "arrive":
                    await crowd.arrive(principal, user)
                elif kind == "cancel" and crowd.scopes:
                    await crowd.cancel(list(crowd.scopes)[pick % len(crowd.scopes)])
                elif kind == "pause" and running:
                    await crowd.pause(running[pick % len(running)])
                elif kind == "finish" and running:
                    await crowd.finish(running[pick % len(running)])
                check(crowd)
            await crowd.leave()
        assert (slots.used, slots.by_principal, slots.waiting) == (0, {}, {})

    anyio.run(play)


@pytest.mark.parametrize("seed", range(5))
async def test_no_waiting_principal_starves(seed: int) -> None:
    random = Random(seed)  # noqa: S311 - a simulation that can be repeated
    slots = FairSlots(4, max_waiting=64)
    async with anyio.create_task_group() as tasks:
        crowd = Crowd(tasks, slots)
        for who in "a" * 19 + "b" * 15 + "c" * 15 + "d" * 15:
            await crowd.arrive(who)
        before = len(crowd.granted)
        for _ in range(40):
            await crowd.finish(random.choice(list(crowd.running)))
        served = Counter(crowd.granted[before:])
        assert min(served[each] for each in "abcd") >= 7, served
        await crowd.leave()


async def test_added_slots_are_granted_to_waiters() -> None:
    slots = FairSlots(1, 1.0)
    assert slots.take("a")
    granted: list[bool] = []

    async def wait() -> None:
        granted.append(await slots.wait("a", "", 30))

    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(wait)
        await until(lambda: slots.waiting == {"a": 3})
        slots.resize(3)
        await until(lambda: len(granted) == 2)
        slots.resize(1)
        slots.release("a")
        slots.release("a")
        assert (slots.used, slots.waiting) == (1, {"a": 1})
        slots.release("a")
    assert granted == [True] * 3
