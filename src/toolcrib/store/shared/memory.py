"""Shared state for one process: everything in memory, nothing to wait for."""

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence

from toolcrib.interfaces import ChangeSignal, EnergyAllowance, RateDemand
from toolcrib.model import Result
from toolcrib.store.shared.change_signals import ChangeSignals
from toolcrib.store.shared.energy_balances import EnergyBalances
from toolcrib.store.shared.presence import Presence
from toolcrib.store.shared.rate_limits import RateLimits
from toolcrib.store.shared.result_cache import ResultCache
from toolcrib.store.shared.single_flight import SingleFlight


class MemoryShared:
    """The `Shared` of a gateway that runs alone. `clock` may be any that only goes forward, in seconds."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._rates = RateLimits(clock)
        self._energies = EnergyBalances(clock)
        self._results = ResultCache(clock)
        self._flights = SingleFlight()
        self._signals = ChangeSignals()
        self._presence = Presence(clock)

    async def take(self, demands: Sequence[RateDemand]) -> float:
        """Check all, then take all: 0 where it may go on, else the seconds to wait (and nothing is taken)."""
        return self._rates.take(demands)

    def left(self, key: str, purse: EnergyAllowance) -> float:
        """What a caller has left to spend."""
        return self._energies.left(key, purse)

    async def spend(self, key: str, cost: float, purse: EnergyAllowance) -> float:
        """Take from what a caller has; what is left then."""
        return self._energies.spend(key, cost, purse)

    async def recall(self, key: str) -> Result | None:
        """A kept result that is still fresh: the very object, so nobody may change what is in it."""
        return self._results.recall(key)

    async def keep(self, key: str, result: Result, ttl: float) -> None:
        """Keep a result for `ttl` seconds, or for less where space runs out."""
        self._results.keep(key, result, ttl)

    def drop_results(self) -> None:
        """Keep no result any longer: memory is short, and all of them can be had again."""
        self._results.clear()

    async def once(self, key: str, make: Callable[[], Awaitable[Result]]) -> tuple[Result, bool]:
        """Run `make` unless it is already running under this key; its result, and whether another made it."""
        return await self._flights.once(key, make)

    def publish(self, change: ChangeSignal) -> None:
        """Tell every listener. Does not wait."""
        self._signals.publish(change)

    def listen(self, topic: str, hear: Callable[[ChangeSignal], None]) -> Callable[[], None]:
        """Hear of changes of a topic, also one's own; call the answer to stop."""
        return self._signals.listen(topic, hear)

    async def appear(self, key: str, value: str, ttl: float) -> None:
        """Be present under a key for `ttl` seconds; again to stay."""
        self._presence.appear(key, value, ttl)

    async def vanish(self, key: str) -> None:
        """Be present no longer."""
        self._presence.vanish(key)

    async def present(self, prefix: str) -> Mapping[str, str]:
        """Who is present under a prefix: key to value."""
        return self._presence.present(prefix)

    async def close(self) -> None:
        """Nothing is held that would have to be let go."""
