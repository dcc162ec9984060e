"""Bounds what a server says unasked: so much a second, the rest dropped and counted, then it is cut off."""

from collections.abc import Callable
from time import monotonic

import anyio

MAX_PER_SECOND = 1_000
"""How many messages that answer no request are passed on in a second; a long one counts as several."""
MESSAGES_PER_CALL = 16
"""How many messages beyond that each call allows: a busy server reports progress and logs for every one."""
BYTES_PER_MESSAGE = 4 << 10
"""So many bytes count as one more message."""
FLOOD_SECONDS = 5
"""After so many seconds in a row with more than that, the connection is closed."""
THROTTLE_PAUSE = 0.05
"""How long a server that says more is not listened to after each piece, in seconds."""
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
"""Never dropped: they say that something has changed, and any number of them leads to one new list."""

_WINDOW = 1.0


class NotificationLimit:
    """The limit of one connection. `cut` closes it, and is told why."""

    __slots__ = ("_allowance", "_clock", "_cut", "_ends", "_floods", "_seen", "dropped", "flooded")

    def __init__(self, cut: Callable[[str], None], clock: Callable[[], float] = monotonic) -> None:
        self._cut, self._clock = cut, clock
        self._seen = self._floods = self._allowance = 0
        self._ends = clock() + _WINDOW
        self.dropped = 0
        """How many messages were not passed on."""
        self.flooded = False
        """Whether the connection was closed for it."""

    @property
    def over(self) -> bool:
        """Whether more came in this second than is passed on."""
        return self._seen > MAX_PER_SECOND

    def allow_for_call(self) -> None:
        """Allow what a server says about a call that is being made; not saved up beyond a second's worth."""
        self._allowance = min(self._allowance + MESSAGES_PER_CALL, MAX_PER_SECOND)

    def admit(self, method: str, size: int) -> bool:
        """Count a message that answers nothing; whether it is to be passed on."""
        if self._is_within(1 + size // BYTES_PER_MESSAGE) or method in KEPT:
            return True
        self.dropped += 1
        return False

    def charge(self, pieces: int, size: int = 0) -> None:
        """Count what is no message, such as comments and blank lines: so many pieces, of so many bytes."""
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
        """Return how long not to listen to the server now, in seconds."""
        if not self.over or self.flooded:
            return 0.0
        return min(THROTTLE_PAUSE, max(self._ends - self._clock(), 0.0))

    async def throttle(self) -> None:
        """Wait for as long as the server is not listened to."""
        if self.over:
            await anyio.sleep(self.pause())

    def _next_second(self, now: float) -> None:
        followed = now < self._ends + _WINDOW
        self._floods = self._floods + 1 if self.over and followed else 0
        self._seen, self._ends = 0, now + _WINDOW
        if self._floods >= FLOOD_SECONDS and not self.flooded:
            self.flooded = True
            self._cut(FLOODED)
