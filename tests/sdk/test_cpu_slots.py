"""Functions that use the CPU: how many run at once while the interpreter lock is contended, and while not."""

import threading
import time
from functools import partial

import anyio
import pytest

from tests.waiting import until
from toolcrib.interfaces import is_not_begun
from toolcrib.sdk import threads as threads_module
from toolcrib.sdk.threads import LIGHT_SECONDS, MIN_RUNNING, SLOTS_PER_CHECK, CpuSlots, Threads

pytestmark = [pytest.mark.anyio, pytest.mark.check(34), pytest.mark.requirement("I5")]

CALLS = 20


class Lock:
    """A lock contention probe controlled by the test."""

    def __init__(self, *, contended: bool) -> None:
        self.contended, self.checks = contended, 0

    def __call__(self) -> bool:
        self.checks += 1
        return self.contended


class Blocking:
    """A function that blocks until the gate opens, and how many of its calls run."""

    def __init__(self) -> None:
        self.gate, self.count, self.running, self.most = threading.Event(), threading.Lock(), 0, 0

    def call(self) -> None:
        with self.count:
            self.running += 1
            self.most = max(self.most, self.running)
        self.gate.wait(30)
        with self.count:
            self.running -= 1


def with_lock(monkeypatch: pytest.MonkeyPatch, lock: Lock) -> Threads:
    monkeypatch.setattr(threads_module, "CpuSlots", partial(CpuSlots, contended=lock))
    return Threads(64)


async def test_contended_lock_limits_running_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    lock, blocking = Lock(contended=True), Blocking()
    threads = with_lock(monkeypatch, lock)
    async with anyio.create_task_group() as tasks:
        for _ in range(CALLS):
            tasks.start_soon(threads.run, "ada", blocking.call)
        await until(lambda: lock.checks > 3)
        assert blocking.running == MIN_RUNNING
        blocking.gate.set()
    assert blocking.running == 0


async def test_free_lock_lets_blocking_functions_run(monkeypatch: pytest.MonkeyPatch) -> None:
    lock, blocking = Lock(contended=False), Blocking()
    threads = with_lock(monkeypatch, lock)
    async with anyio.create_task_group() as tasks:
        for _ in range(CALLS):
            tasks.start_soon(threads.run, "ada", blocking.call)
        await until(lambda: blocking.running == CALLS)
        # No more than these begin at each check, so they cannot all have begun at the first one.
        assert lock.checks >= (CALLS - MIN_RUNNING) // SLOTS_PER_CHECK
        blocking.gate.set()


async def test_contention_stops_further_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    lock, first, second = Lock(contended=False), Blocking(), Blocking()
    threads = with_lock(monkeypatch, lock)
    async with anyio.create_task_group() as tasks:
        for _ in range(CALLS):
            tasks.start_soon(threads.run, "ada", first.call)
        await until(lambda: first.running == CALLS)
        lock.contended, checks = True, lock.checks
        await until(lambda: lock.checks > checks)
        for _ in range(CALLS):
            tasks.start_soon(threads.run, "ada", second.call)
        first.gate.set()
        await until(lambda: second.running == MIN_RUNNING)
        checks = lock.checks
        await until(lambda: lock.checks > checks + 1)
        assert second.most == MIN_RUNNING
        second.gate.set()


async def test_light_function_needs_no_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    # On a slow machine, with coverage, a call of a light function may use more than a millisecond.
    monkeypatch.setattr(threads_module, "LIGHT_SECONDS", 0.05)
    lock, hanging, light = Lock(contended=True), Blocking(), Blocking()
    threads = with_lock(monkeypatch, lock)
    call = light.call
    light.gate.set()
    for _ in range(30):  # the first call may use more CPU than later ones
        await threads.run("ada", call)
    light.gate.clear()
    async with anyio.create_task_group() as tasks:
        for _ in range(MIN_RUNNING):
            tasks.start_soon(threads.run, "ada", hanging.call)
        await until(lambda: hanging.running == MIN_RUNNING)
        for _ in range(CALLS):
            tasks.start_soon(threads.run, "ada", call)
        await until(lambda: light.running == CALLS)
        light.gate.set()
        hanging.gate.set()


async def test_function_that_uses_the_cpu_needs_a_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    threads = with_lock(monkeypatch, Lock(contended=True))
    most = running = 0
    count = threading.Lock()

    def burn() -> None:
        nonlocal most, running
        with count:
            running += 1
            most = max(most, running)
        end = time.thread_time() + 5 * LIGHT_SECONDS
        while time.thread_time() < end:
            pass
        with count:
            running -= 1

    for _ in range(2):
        async with anyio.create_task_group() as tasks:
            for _ in range(CALLS):
                tasks.start_soon(threads.run, "ada", burn)
    assert most <= MIN_RUNNING


async def test_cancelled_wait_notes_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    lock, blocking = Lock(contended=True), Blocking()
    threads = with_lock(monkeypatch, lock)
    errors: list[BaseException] = []

    async def late() -> None:
        try:
            await threads.run("ada", blocking.call)
        except BaseException as error:
            errors.append(error)
            raise

    async with anyio.create_task_group() as tasks:
        for _ in range(MIN_RUNNING):
            tasks.start_soon(threads.run, "ada", blocking.call)
        await until(lambda: blocking.running == MIN_RUNNING)
        async with anyio.create_task_group() as waiting:
            waiting.start_soon(late)
            await until(lambda: lock.checks > 0)
            waiting.cancel_scope.cancel()
        assert [is_not_begun(each) for each in errors] == [True]
        blocking.gate.set()
    with anyio.fail_after(5):
        await threads.run("ada", blocking.call)


def test_one_cheap_call_does_not_make_a_function_light() -> None:
    slots = CpuSlots(1)
    slots.note(print, 10 * LIGHT_SECONDS)
    slots.note(print, 0.0)
    assert not slots.is_light(print)
    for _ in range(30):
        slots.note(print, 0.0)
    assert slots.is_light(print)


def test_new_function_is_not_light() -> None:
    assert not CpuSlots(1).is_light(print)


def test_partials_of_a_function_share_its_cost() -> None:
    slots = CpuSlots(1)
    slots.note(partial(print, 1), 0.0)
    assert slots.is_light(partial(print, 2))
