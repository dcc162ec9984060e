"""The lag of the event loop: what counts, for how long, and what a busy machine has to do with it."""

import threading
import time
from collections.abc import Callable
from contextlib import closing

import pytest

from tests.waiting import until
from toolcrib.observe.loop_lag import LAG_WINDOW_SECONDS, STALL_SECONDS, LoopLag, ThreadCpuWait

pytestmark = pytest.mark.anyio


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_the_largest_lag_of_a_minute_is_shown() -> None:
    clock = Clock()
    lag = LoopLag(clock)
    assert lag.seconds == 0.0
    for at, late in ((0.0, 0.2), (30.0, 0.1), (40.0, 0.05)):
        clock.now = at
        lag.note(late)
    assert lag.seconds == 0.2
    clock.now = LAG_WINDOW_SECONDS + 1
    assert lag.seconds == 0.1
    clock.now = LAG_WINDOW_SECONDS + 31
    assert lag.seconds == 0.05
    clock.now = 3 * LAG_WINDOW_SECONDS
    assert lag.seconds == 0.0


def test_lag_above_the_bound_is_a_stall() -> None:
    lag = LoopLag()
    for late in (0.0, STALL_SECONDS, STALL_SECONDS + 0.01):
        lag.note(late)
    assert lag.stalls == 1


class Noted(LoopLag):
    """Records every measurement."""

    def __init__(self, cpu_wait: Callable[[], float]) -> None:
        super().__init__(cpu_wait=cpu_wait)
        self.noted: list[float] = []

    def note(self, late: float) -> None:
        super().note(late)
        self.noted.append(late)


@pytest.mark.parametrize("waits_for_cpu, stalls", [(False, 1), (True, 0)])
async def test_a_stall_counts_unless_the_machine_was_busy(waits_for_cpu: bool, stalls: int) -> None:
    waited, own = Clock(), ThreadCpuWait()
    # What this machine itself takes away is no stall either.
    lag = Noted(lambda: waited.now + own())
    async with lag.measuring():
        await until(lambda: len(lag.noted) == 1)
        time.sleep(4 * STALL_SECONDS)  # noqa: ASYNC251 - what is measured
        waited.now += 4 * STALL_SECONDS * waits_for_cpu
        await until(lambda: len(lag.noted) == 2)
    own.close()
    assert (lag.noted[1] > STALL_SECONDS) == bool(stalls)


async def test_errors_in_the_block_are_raised_unchanged() -> None:
    with pytest.raises(ZeroDivisionError):
        async with LoopLag().measuring():
            raise ZeroDivisionError


def test_thread_wait_is_read_if_available() -> None:
    assert _cpu_wait() >= 0.0
    found: list[float] = []
    thread = threading.Thread(target=lambda: found.append(_cpu_wait()))
    thread.start()
    thread.join()
    assert found[0] >= 0.0


def _cpu_wait() -> float:
    with closing(ThreadCpuWait()) as cpu_wait:
        return cpu_wait()


def test_lag_metrics_have_their_names() -> None:
    names: list[str] = []

    def watch(suffix: str, kind: str, what: str, read: Callable[[], float]) -> None:
        names.append(suffix)

    LoopLag().show(watch)
    assert names == ["event_loop_lag_seconds", "event_loop_stalls_total", "event_loop_tasks"]
