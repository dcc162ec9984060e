"""Divides a fixed number of slots among principals, so that no single one can hold them all."""

from collections import deque
from dataclasses import dataclass, field
from math import floor

import anyio

from toolcrib.interfaces import Handler
from toolcrib.model import Call, Channel, ObservedChannel, Result

DEFAULT_SHARE = 0.75
"""The largest part of all slots that one principal may hold, even when no other principal wants any."""


def part(total: int, share: float) -> int:
    """Return how many of a total one principal may hold; at least one, or a total of one would be useless."""
    return min(total, max(1, floor(total * share)))


@dataclass(slots=True)
class Slots:
    """Counts the slots in use, in all and by principal."""

    total: int
    share: float = DEFAULT_SHARE
    used: int = 0
    by_principal: dict[str, int] = field(default_factory=dict[str, int])
    per_principal: int = field(init=False)
    """How many slots one principal may hold."""

    def __post_init__(self) -> None:
        """Calculate once what every `take` compares with."""
        self.per_principal = part(self.total, self.share)

    def take(self, principal: str) -> bool:
        """Take a slot; False where none is free or the principal holds its share already."""
        held = self.by_principal.get(principal, 0)
        if self.used >= self.total or held >= self.per_principal:
            return False
        self.by_principal[principal] = held + 1
        self.used += 1
        return True

    def release(self, principal: str) -> None:
        """Give a slot back."""
        held = self.by_principal[principal] - 1
        if held:
            self.by_principal[principal] = held
        else:
            del self.by_principal[principal]
        self.used -= 1

    def retake(self, principal: str) -> None:
        """Take a slot, free or not: what has begun and only paused is not made to wait."""
        self.by_principal[principal] = self.by_principal.get(principal, 0) + 1
        self.used += 1


class Hold:
    """A slot that its holder can leave for a while, and is given back once."""

    __slots__ = ("_ended", "_held", "_principal", "_slots")

    def __init__(self, slots: Slots, principal: str) -> None:
        self._slots, self._principal = slots, principal
        self._held, self._ended = True, False

    def leave(self) -> None:
        """Let others use the slot meanwhile."""
        if self._held:
            self._held = False
            self._slots.release(self._principal)

    def come_back(self) -> None:
        """Use a slot again, unless all is over."""
        if not (self._held or self._ended):
            self._held = True
            self._slots.retake(self._principal)

    async def run(self, call: Call, channel: Channel, proceed: Handler) -> Result:
        """Run a call that leaves its slot to others while it waits for its caller's answer."""
        try:
            return await proceed(call.replace(channel=ObservedChannel(channel, self.leave, self.come_back)))
        finally:
            self.end()

    def end(self) -> None:
        """Give the slot back for good; a question that outlives its call takes none again."""
        self._ended = True
        self.leave()


@dataclass(slots=True, eq=False)
class _Waiter:
    """One request that waits for a slot."""

    principal: str
    user: str
    granted: bool = False
    settled: anyio.Event = field(default_factory=anyio.Event)
    """Set when it holds a slot, or was dropped from the queue."""


_Queue = dict[str, deque[_Waiter]]
"""What waits of one principal, by user, the user whose turn is next first."""


@dataclass(slots=True)
class FairSlots(Slots):
    """Slots with a bounded queue: principals take turns, then the users of one, then who came first.

    While others wait, one principal gets no more than half of the slots. After every method, nobody waits who
    may have a slot: so a request that finds one free takes it without a look at the queue.
    """

    max_waiting: int = 64
    waiting: dict[str, int] = field(default_factory=dict[str, int])
    """How many wait, by principal."""
    half: int = field(init=False)
    waiting_per_principal: int = field(init=False)
    _queues: dict[str, _Queue] = field(default_factory=dict[str, _Queue], repr=False)
    """By principal, the one whose turn is next first."""
    _waiting: int = 0

    def __post_init__(self) -> None:
        """Calculate once what every `take` compares with."""
        self.per_principal = part(self.total, self.share)
        self.half = min(self.per_principal, max(1, self.total // 2))
        self.waiting_per_principal = part(self.max_waiting, self.share)

    def take(self, principal: str) -> bool:
        """Take a slot; False where none is free for this principal."""
        held = self.by_principal.get(principal, 0)
        if self.used >= self.total or held >= (
            self._limit(principal) if self._queues else self.per_principal
        ):
            return False
        self.by_principal[principal] = held + 1
        self.used += 1
        return True

    def release(self, principal: str) -> None:
        """Give a slot back, to the request whose turn it is."""
        # Written out rather than calling the base class: this runs for every call.
        held = self.by_principal[principal] - 1
        if held:
            self.by_principal[principal] = held
        else:
            del self.by_principal[principal]
        self.used -= 1
        if self._queues:
            self._hand_on()

    def resize(self, total: int) -> None:
        """Change the total; where more are in use, none is granted until enough of them are released."""
        self.total = total
        self.__post_init__()
        self._hand_on()

    async def wait(self, principal: str, user: str, seconds: float) -> bool:
        """Wait for a slot; False where the queue is full, the time passes, or others need the place in it."""
        waiter = self._enqueue(principal, user)
        if waiter is None:
            return False
        try:
            with anyio.move_on_after(seconds):
                await waiter.settled.wait()
        except BaseException:  # cancelled: a slot that was granted meanwhile goes to the next
            self._withdraw(waiter)
            raise
        if not waiter.granted:
            self._withdraw(waiter)
        return waiter.granted

    def _limit(self, principal: str) -> int:
        """Return how many slots a principal may hold now; fewer while others wait."""
        alone = len(self._queues) - (principal in self._queues) == 0
        return self.per_principal if alone else self.half

    def _hand_on(self) -> None:
        """Grant slots until none is free, or none that waits may have one."""
        while self.used < self.total:
            principal = self._next()
            if principal is None:
                return
            queue = self._queues[principal]
            user = next(iter(queue))
            waiter = queue[user][0]
            self._remove(waiter)
            # The principal and the user that were served come last from now on.
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
        """Drop the newest of the principal with the most waiting; not for one that would have as many."""
        longest = max(self.waiting, key=self.waiting.__getitem__)
        if self.waiting[longest] - 1 <= mine:
            return False
        waiter = max(self._queues[longest].values(), key=len)[-1]
        self._remove(waiter)
        waiter.settled.set()
        return True

    def _withdraw(self, waiter: _Waiter) -> None:
        """Leave the queue; who is left may have more slots than before, now that fewer wait."""
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
