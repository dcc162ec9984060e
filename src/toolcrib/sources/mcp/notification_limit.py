"""Rate limit for unsolicited messages: excess is dropped and counted; a flood closes the connection."""

from collections.abc import Callable
from time import monotonic

import anyio

MAX_PER_SECOND = 1_000
"""Maximum messages per second that answer no request; a large one counts as several."""
MESSAGES_PER_CALL = 16
"""Additional messages that each call allows: a busy server reports progress and logs for every one."""
BYTES_PER_MESSAGE = 4 << 10
"""Bytes of a message that count as one more message."""
FLOOD_SECONDS = 5
"""Consecutive seconds above the limit after which the connection is closed."""
THROTTLE_PAUSE = 0.05
"""Seconds without reading after each chunk from a server above the limit (backpressure)."""
FLOODED = f"for {FLOOD_SECONDS} s it sent more than {MAX_PER_SECOND:,} messages a second that answer nothing"

KEPT = frozenset(
    {
        "notifications/cancelled",
        "notifications/prompts/list_changed",
        "notifications/resources/list_changed",
        "notifications/resources/updated",
        "notifications/subscriptions/acknowledged",
        "notifications/tools/list_changed",
    }
)
"""Never dropped: without them our state is stale. Handling is cheap, as list changes are debounced."""

_WINDOW = 1.0


class NotificationLimit:
    """The limit of one connection. `cut` closes it, with the reason."""

    __slots__ = ("_allowance", "_clock", "_cut", "_ends", "_floods", "_seen", "dropped", "flooded")

    def __init__(self, cut: Callable[[str], None], clock: Callable[[], float] = monotonic) -> None:
        self._cut, self._clock = cut, clock
        self._seen = self._floods = self._allowance = 0
        self._ends = clock() + _WINDOW
        self.dropped = 0
        """Number of messages that were dropped."""
        self.flooded = False
        """Whether the connection was closed because of a flood."""

    @property
    def over(self) -> bool:
        """Whether the limit of this second is exceeded."""
        return self._seen > MAX_PER_SECOND

    def allow_for_call(self) -> None:
        """Add the allowance of a call in progress; at most one second's limit accumulates."""
        self._allowance = min(self._allowance + MESSAGES_PER_CALL, MAX_PER_SECOND)

    def admit(self, method: str, size: int) -> bool:
        """Count a message that answers no request; return whether to pass it on."""
        if self._is_within(1 + size // BYTES_PER_MESSAGE) or method in KEPT:
            return True
        self.dropped += 1
        return False

    def charge(self, pieces: int, size: int = 0) -> None:
        """Count input that is no message, such as comments and blank lines: its pieces and its bytes."""
        self._is_within(pieces + size // BYTES_PER_MESSAGE)

    def _is_within(self, cost: int) -> bool:
        now = self._clock()
        if now >= self._ends:
            self._next_second(now)
        if cost <= self._allowance:
            self._allowance -= cost
            return True
        self._seen += cost
        return self._seen <= MAX_PER_SECOND

    def pause(self) -> float:
        """Return how long to pause reading from the server now, in seconds."""
        if not self.over or self.flooded:
            return 0.0
        return min(THROTTLE_PAUSE, max(self._ends - self._clock(), 0.0))

    async def throttle(self) -> None:
        """Sleep while reading is paused."""
        if self.over:
            await anyio.sleep(self.pause())

    def _next_second(self, now: float) -> None:
        followed = now < self._ends + _WINDOW
        self._floods = self._floods + 1 if self.over and followed else 0
        self._seen, self._ends = 0, now + _WINDOW
        if self._floods >= FLOOD_SECONDS and not self.flooded:
            self.flooded = True
            self._cut(FLOODED)
