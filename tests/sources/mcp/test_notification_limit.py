"""What a server says unasked is counted by the second: passed on, dropped, and at last too much."""

import pytest

from toolcrib.mcp.sse import BYTES_PER_MESSAGE
from toolcrib.sources.mcp.request_multiplexer import (
    FLOOD_SECONDS,
    FLOODED,
    MAX_MESSAGES_PER_SECOND,
    MESSAGES_PER_CALL,
    NEVER_DROPPED,
    THROTTLE_PAUSE_SECONDS,
    NotificationLimit,
)

pytestmark = pytest.mark.requirement("I5")

LOG = "notifications/message"


class Limited:
    """A limit whose time stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 100.0
        self.cuts: list[str] = []
        self.limit = NotificationLimit(self.cuts.append, lambda: self.now)

    def say(self, count: int, method: str = LOG, size: int = 100) -> int:
        """Count so many messages; return how many are passed on."""
        return sum(self.limit.admit(method, size) for _ in range(count))


def test_rate_above_limit_is_counted_and_dropped() -> None:
    it = Limited()
    assert it.say(MAX_MESSAGES_PER_SECOND) == MAX_MESSAGES_PER_SECOND
    assert (it.limit.over, it.limit.pause(), it.limit.dropped) == (False, 0.0, 0)
    assert it.say(50) == 0
    assert (it.limit.over, it.limit.pause(), it.limit.dropped) == (True, THROTTLE_PAUSE_SECONDS, 50)
    it.now += 1.0
    assert it.say(10) == 10
    assert (it.limit.over, it.limit.dropped) == (False, 50)


def test_every_call_allows_a_few_more() -> None:
    it = Limited()
    for _ in range(3 * MAX_MESSAGES_PER_SECOND):
        it.limit.allow_for_call()
        assert it.say(2, "notifications/progress") == 2
    assert it.limit.over is False
    it.limit.allow_for_call()
    # What is left over from quiet calls is at most a second's worth.
    assert it.say(5 * MAX_MESSAGES_PER_SECOND) == 2 * MAX_MESSAGES_PER_SECOND


def test_long_messages_use_up_the_allowance_of_a_call() -> None:
    it = Limited()
    it.say(MAX_MESSAGES_PER_SECOND)
    it.limit.allow_for_call()
    assert it.say(1, size=MESSAGES_PER_CALL * BYTES_PER_MESSAGE) == 0
    assert it.say(1, size=(MESSAGES_PER_CALL - 1) * BYTES_PER_MESSAGE) == 1
    assert it.say(1) == 0


def test_change_notifications_are_never_dropped() -> None:
    it = Limited()
    it.say(MAX_MESSAGES_PER_SECOND + 1)
    for method in NEVER_DROPPED:
        assert it.say(10, method) == 10


def test_long_messages_count_as_several() -> None:
    it = Limited()
    assert it.say(30, size=99 * BYTES_PER_MESSAGE) == 10


def test_only_seconds_in_a_row_end_it() -> None:
    it = Limited()
    for _ in range(FLOOD_SECONDS - 1):
        it.say(2 * MAX_MESSAGES_PER_SECOND)
        it.now += 1.0
    it.say(1)
    it.now += 1.0
    for _ in range(FLOOD_SECONDS):
        assert not it.cuts
        it.say(2 * MAX_MESSAGES_PER_SECOND)
        it.now += 1.0
    it.say(1)
    assert it.cuts == [FLOODED]
    assert it.limit.flooded
    assert it.limit.pause() == 0.0


def test_a_flood_after_a_silence_is_a_new_one() -> None:
    it = Limited()
    for _ in range(3 * FLOOD_SECONDS):
        it.say(2 * MAX_MESSAGES_PER_SECOND)
        it.now += 10.0
    assert not it.cuts


def test_invalid_messages_count_but_are_not_reported_dropped() -> None:
    it = Limited()
    it.limit.charge(MAX_MESSAGES_PER_SECOND - 1, BYTES_PER_MESSAGE)
    assert it.limit.over is False
    it.limit.charge(1)
    assert (it.limit.over, it.limit.pause(), it.limit.dropped) == (True, THROTTLE_PAUSE_SECONDS, 0)
    for _ in range(FLOOD_SECONDS):
        it.now += 1.0
        it.limit.charge(2 * MAX_MESSAGES_PER_SECOND)
    assert it.cuts == [FLOODED]
