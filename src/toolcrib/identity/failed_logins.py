"""Failed authentications: audited per address, with exponential delays for repeated failures."""

from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable
from time import monotonic, time
from typing import NamedTuple

import anyio

from toolcrib.errors import Refused
from toolcrib.model import Actor
from toolcrib.observe import Action, Audit
from toolcrib.observe.audit import EventCount, EventLimits
from toolcrib.quotas import client_network

FREE_FAILURES = 10
"""Failures of one address within `WINDOW_SECONDS` that are answered without a delay."""
WINDOW_SECONDS = 60.0
FIRST_DELAY_SECONDS = 0.25
"""The first delay; each further failure doubles it, up to MAX_DELAY_SECONDS."""
MAX_DELAY_SECONDS = 3.0
MAX_DELAYED = 64
"""Responses delayed at once, over all addresses; each holds a connection."""
# Responses delayed at once for one address.
MAX_DELAYED_PER_ADDRESS = 8
MAX_ADDRESSES = 4096
"""Addresses with remembered failures; beyond that, the one with the oldest last failure is evicted."""
# Seconds between writes of due counts to the audit log.
FLUSH_SECONDS = 5.0
# Seconds for the last write at shutdown.
LAST_WRITE_SECONDS = 3.0
ACTION = "auth.failed"
_TOO_MANY = "too many failed authentications from this address; check the key, then try again"


class Failure(NamedTuple):
    """The key by which failed authentications are counted."""

    frontend: str
    address: str
    what: str
    """`key`, `app` or `link`."""
    name: str
    """The name of the key or app, if known."""


OTHERS = Failure("gateway", "other addresses", "key", "")
"""Shared counter for further addresses when too many fail at once to be counted separately."""


class Untried(Refused):
    """A key was refused before the lookup: its response could not be delayed, so it must reveal nothing."""


class _Address:
    """Failures of one address: the times of the latest ones, and the number of delayed responses."""

    __slots__ = ("delayed", "times")

    def __init__(self) -> None:
        self.times: deque[float] = deque(maxlen=FREE_FAILURES + 8)
        self.delayed = 0

    def delay(self, now: float) -> float:
        """Return the delay of the response to one more failure, in seconds."""
        while self.times and self.times[0] < now - WINDOW_SECONDS:
            self.times.popleft()
        beyond = len(self.times) - FREE_FAILURES
        return 0.0 if beyond < 0 else min(FIRST_DELAY_SECONDS * 2**beyond, MAX_DELAY_SECONDS)


class FailedLogins:
    """Records failed authentications and delays their responses.

    A valid key that was accepted before is never delayed or refused, nor is a generated one. An admin key
    chosen by the operator may be refused with Retry-After while no delay slot is free for its address,
    because it could be a guess.
    """

    def __init__(
        self,
        audit: Audit,
        *,
        clock: Callable[[], float] = monotonic,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
        window: float = WINDOW_SECONDS,
    ) -> None:
        self._audit, self._clock, self.sleep = audit, clock, sleep
        self._floods = EventLimits(
            per_window=1, overflow_key=OTHERS, window=window, max_keys=MAX_ADDRESSES, clock=clock
        )
        self._addresses: OrderedDict[str, _Address] = OrderedDict()
        self._delayed = 0

    @property
    def addresses(self) -> int:
        """Return the number of remembered addresses."""
        return len(self._addresses)

    async def failed(self, failure: Failure) -> None:
        """Record a failure and delay its response; raise RATE_LIMITED if no delay slot is free."""
        await self.count(failure)
        await self._slow_down(client_network(failure.address))

    async def count(self, failure: Failure) -> None:
        """Record a failure; the first one of a window is written at once."""
        failure = failure._replace(address=client_network(failure.address))
        if self._floods.admit(failure):
            await self._record(EventCount(failure, since=time(), until=0.0, count=1))

    def refuse_untried(self, address: str) -> None:
        """Refuse a key that was not accepted before while its failure could not be delayed."""
        if not self._delayed:
            return
        known = self._addresses.get(client_network(address))
        if known is not None and self._is_full(known) and (delay := known.delay(self._clock())):
            raise Untried("RATE_LIMITED", _TOO_MANY, retry_after=delay)

    async def run(self) -> None:
        """Write the counts of finished windows, until cancelled; then all remaining ones."""
        try:
            while True:
                await anyio.sleep(FLUSH_SECONDS)
                await self.flush()
        finally:
            with anyio.move_on_after(LAST_WRITE_SECONDS, shield=True):
                await self.flush(everything=True)

    async def flush(self, *, everything: bool = False) -> None:
        """Write the counts of finished windows, or all."""
        await self._audit.flush(everything=everything)
        for flood in self._floods.due(everything=everything):
            await self._record(flood)

    async def _record(self, flood: EventCount[Failure]) -> None:
        frontend, address, what, name = flood.key
        actor = Actor.unknown(frontend, address, name)
        try:
            await self._audit.record(actor, ACTION, Action(what, after=flood.as_json()), "UNAUTHENTICATED")
        except Exception:  # noqa: BLE001 - `record` has logged it; retried with the next count
            self._floods.put_back(flood)

    async def _slow_down(self, address: str) -> None:
        known = self._known(address)
        now = self._clock()
        delay = known.delay(now)
        known.times.append(now)
        if not delay:
            return
        if self._is_full(known):
            raise Refused("RATE_LIMITED", _TOO_MANY, retry_after=delay)
        self._delayed += 1
        known.delayed += 1
        try:
            await self.sleep(delay)
        finally:
            self._delayed -= 1
            known.delayed -= 1

    def _is_full(self, known: _Address) -> bool:
        """Whether no delay slot is free, for this address or in total."""
        return self._delayed >= MAX_DELAYED or known.delayed >= MAX_DELAYED_PER_ADDRESS

    def _known(self, address: str) -> _Address:
        known = self._addresses.get(address)
        if known is None:
            if len(self._addresses) >= MAX_ADDRESSES:
                self._addresses.popitem(last=False)
            known = self._addresses[address] = _Address()
        self._addresses.move_to_end(address)
        return known
