"""The interpreter lock: a spinning thread is found, a blocked one is not, and the interval only shrinks."""

import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager

import pytest

from toolcrib.interpreter_lock import SWITCH_SECONDS, is_contended, shorten_switch_interval

pytestmark = [pytest.mark.check(34), pytest.mark.requirement("I5")]

CHECKS = 20


@pytest.fixture(autouse=True, params=[SWITCH_SECONDS, 0.005])
def interval(request: pytest.FixtureRequest) -> Generator[None]:
    """Set the interval of the gateway or of Python, and restore it."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(request.param)
    yield
    sys.setswitchinterval(before)


@contextmanager
def running(*, spins: bool) -> Generator[None]:
    ended = threading.Event()

    def run() -> None:
        while spins and not ended.is_set():
            pass
        ended.wait(30)

    started = [threading.Thread(target=run) for _ in range(4)]
    for each in started:
        each.start()
    try:
        yield
    finally:
        ended.set()
        for each in started:
            each.join()


def contended() -> int:
    return sum(is_contended() for _ in range(CHECKS))


def test_spinning_threads_contend_for_the_lock() -> None:
    with running(spins=True):
        assert contended() >= CHECKS // 2


def test_blocked_threads_do_not_contend_for_the_lock() -> None:
    with running(spins=False):
        assert contended() <= CHECKS // 2


def test_checks_leave_the_switch_interval() -> None:
    before = sys.getswitchinterval()
    contended()
    assert sys.getswitchinterval() == before


def test_switch_interval_only_shrinks() -> None:
    shorten_switch_interval()
    assert sys.getswitchinterval() == pytest.approx(SWITCH_SECONDS, abs=2e-6)
    sys.setswitchinterval(SWITCH_SECONDS / 2)
    before = sys.getswitchinterval()
    shorten_switch_interval()
    assert sys.getswitchinterval() == before
