"""Concurrency limits with fair sharing: slots that no single principal can use up, and a fair queue."""

from collections import deque
from dataclasses import dataclass, field
from math import floor

import anyio

from toolcrib.interfaces import Handler
from toolcrib.model import Call, Channel, ObservedChannel, Result

_MAX_MARGIN_SECONDS = 0.25
"""A waiting call is refused up to this many seconds before its deadline, so that the response is in time."""
DEFAULT_SHARE = 0.75
"""Maximum share of all slots that one principal may hold, even without other principals."""


def share_of(total: int, share: float) -> int:
    """Return one principal's limit of a total; at least one, or a total of one would be unusable."""
    return min(total, max(1, floor(total * share)))


def wait_seconds(call: Call, max_seconds: float) -> float:
    """Return the seconds a call may wait, which ends shortly before its deadline."""
    if call.deadline is None:
        return max_seconds
    remaining = max(0.0, call.deadline - anyio.current_time())
    return min(max_seconds, remaining - min(_MAX_MARGIN_SECONDS, remaining / 10))


@dataclass(slots=True)
class Slots:
    """A counting semaphore with a limit per principal; it does not wait."""

    total: int
    share: float = DEFAULT_SHARE
    used: int = 0
    by_principal: dict[str, int] = field(default_factory=dict[str, int])
    per_principal: int = field(init=False)
    """Maximum slots of one principal."""

    def __post_init__(self) -> None:
        """Precompute the limit that every `take` compares with."""
        self.per_principal = share_of(self.total, self.share)

    def take(self, principal: str) -> bool:
        """Take a slot; False if none is free or the principal has reached its limit."""
        held = self.by_principal.get(principal, 0)
        if self.used >= self.total or held >= self.per_principal:
            return False
        self.by_principal[principal] = held + 1
        self.used += 1
        return True

    def release(self, principal: str) -> None:
        """Release a slot."""
        held = self.by_principal[principal] - 1
        if held:
            self.by_principal[principal] = held
        else:
            del self.by_principal[principal]
        self.used -= 1

    def retake(self, principal: str) -> None:
        """Take a slot even if none is free: a call that resumes after a pause must not wait."""
        self.by_principal[principal] = self.by_principal.get(principal, 0) + 1
        self.used += 1


class Hold:
    """A held slot that can be released temporarily, and is released finally exactly once."""

    __slots__ = ("_ended", "_held", "_principal", "_slots")

    def __init__(self, slots: Slots, principal: str) -> None:
        self._slots, self._principal = slots, principal
        self._held, self._ended = True, False

    def leave(self) -> None:
        """Release the slot temporarily."""
        if self._held:
            self._held = False
            self._slots.release(self._principal)

    def come_back(self) -> None:
        """Retake a slot, unless `end` was called."""
        if not (self._held or self._ended):
            self._held = True
            self._slots.retake(self._principal)

    async def run(self, call: Call, channel: Channel, proceed: Handler) -> Result:
        """Run a call that releases its slot while it waits for its caller's input."""
        try:
            return await proceed(call.replace(channel=ObservedChannel(channel, self.leave, self.come_back)))
        finally:
            self.end()

    def end(self) -> None:
        """Release the slot finally; an elicitation that outlives its call does not retake it."""
        self._ended = True
        self.leave()


@dataclass(slots=True, eq=False)
class _Waiter:
    """One request that waits for a slot."""

    principal: str
    user: str
    granted: bool = False
    settled: anyio.Event = field(default_factory=anyio.Event)
    """Set when it was granted a slot or dropped from the queue."""


_Queue = dict[str, deque[_Waiter]]
"""Waiting requests of one principal by user; the next user in turn comes first."""


@dataclass(slots=True)
class FairSlots(Slots):
    """Slots with a bounded fair queue: round robin by principal, then by user, then FIFO.

    While others wait, one principal gets at most half of the slots. Invariant after every method: no
    request waits that may have a slot; so one that finds a free slot takes it without checking the queue.
    """

    max_waiting: int = 64
    waiting: dict[str, int] = field(default_factory=dict[str, int])
    """Number of waiting requests by principal."""
    half: int = field(init=False)
    waiting_per_principal: int = field(init=False)
    _queues: dict[str, _Queue] = field(default_factory=dict[str, _Queue], repr=False)
    """Queues by principal; the next principal in turn comes first."""
    _waiting: int = 0

    def __post_init__(self) -> None:
        """Precompute the limits that every `take` compares with."""
        self.per_principal = share_of(self.total, self.share)
        self.half = min(self.per_principal, max(1, self.total // 2))
        self.waiting_per_principal = share_of(self.max_waiting, self.share)

    def take(self, principal: str) -> bool:
        """Take a slot; False if none is free for this principal."""
        held = self.by_principal.get(principal, 0)
        if self.used >= self.total or held >= (
            self._limit(principal) if self._queues else self.per_principal
        ):
            return False
        self.by_principal[principal] = held + 1
        self.used += 1
        return True

    def release(self, principal: str) -> None:
        """Release a slot and grant it to the next request in turn."""
        # Inlined instead of calling the base class: this runs for every call.
        held = self.by_principal[principal] - 1
        if held:
            self.by_principal[principal] = held
        else:
            del self.by_principal[principal]
        self.used -= 1
        if self._queues:
            self._hand_on()

    def resize(self, total: int) -> None:
        """Change the total; if more are in use, none is granted until enough are released."""
        self.total = total
        self.__post_init__()
        self._hand_on()

    async def wait(self, principal: str, user: str, seconds: float) -> bool:
        """Wait for a slot; False if the queue is full, on timeout, or if dropped in favour of others."""
        waiter = self._enqueue(principal, user)
        if waiter is None:
            return False
        try:
            with anyio.move_on_after(seconds):
                await waiter.settled.wait()
        except BaseException:  # cancelled: a slot that was just granted passes to the next request
            self._withdraw(waiter)
            raise
        if not waiter.granted:
            self._withdraw(waiter)
        return waiter.granted

    def _limit(self, principal: str) -> int:
        """Return a principal's current limit, which is lower while others wait."""
        alone = len(self._queues) - (principal in self._queues) == 0
        return self.per_principal if alone else self.half

    def _hand_on(self) -> None:
        """Grant slots until none is free or no waiting request may have one."""
        while self.used < self.total:
            principal = self._next()
            if principal is None:
                return
            queue = self._queues[principal]
            user = next(iter(queue))
            waiter = queue[user][0]
            self._remove(waiter)
            # Round robin: the principal and the user just served move to the end.
            if user in queue:
                queue[user] = queue.pop(user)
            if principal in self._queues:
                self._queues[principal] = self._queues.pop(principal)
            self.retake(principal)
            waiter.granted = True
            waiter.settled.set()

    def _next(self) -> str | None:
        held = self.by_principal
        return next((each for each in self._queues if held.get(each, 0) < self._limit(each)), None)

    def _enqueue(self, principal: str, user: str) -> _Waiter | None:
        mine = self.waiting.get(principal, 0)
        if mine >= self.waiting_per_principal:
            return None
        if self._waiting >= self.max_waiting and not self._drop_longest(mine):
            return None
        waiter = _Waiter(principal, user)
        self._queues.setdefault(principal, {}).setdefault(user, deque()).append(waiter)
        self.waiting[principal] = mine + 1
        self._waiting += 1
        return waiter

    def _drop_longest(self, mine: int) -> bool:
        """Drop the newest request of the longest queue, unless the new principal's would be as long."""
        longest = max(self.waiting, key=self.waiting.__getitem__)
        if self.waiting[longest] - 1 <= mine:
            return False
        waiter = max(self._queues[longest].values(), key=len)[-1]
        self._remove(waiter)
        waiter.settled.set()
        return True

    def _withdraw(self, waiter: _Waiter) -> None:
        """Leave the queue; fewer waiting principals may raise the limits of the remaining ones."""
        if waiter.granted:
            self.release(waiter.principal)
        elif not waiter.settled.is_set():
            self._remove(waiter)
            self._hand_on()

    def _remove(self, waiter: _Waiter) -> None:
        queue = self._queues[waiter.principal]
        queue[waiter.user].remove(waiter)
        if not queue[waiter.user]:
            del queue[waiter.user]
        if not queue:
            del self._queues[waiter.principal]
        left = self.waiting[waiter.principal] - 1
        if left:
            self.waiting[waiter.principal] = left
        else:
            del self.waiting[waiter.principal]
        self._waiting -= 1
