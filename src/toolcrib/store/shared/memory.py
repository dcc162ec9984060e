"""The in-memory backend of shared state, for a single process."""

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
    """Implements `Shared` for a single gateway. `clock` must be monotonic, in seconds."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._rates = RateLimits(clock)
        self._energies = EnergyBalances(clock)
        self._results = ResultCache(clock)
        self._flights = SingleFlight()
        self._signals = ChangeSignals()
        self._presence = Presence(clock)

    async def take(self, demands: Sequence[RateDemand]) -> float:
        """Take from all limits or from none: return 0 on success, else the seconds to wait."""
        return self._rates.take(demands)

    def left(self, key: str, purse: EnergyAllowance) -> float:
        """Return the energy balance of a caller."""
        return self._energies.left(key, purse)

    async def spend(self, key: str, cost: float, purse: EnergyAllowance) -> float:
        """Charge a caller's energy balance; return the new balance."""
        return self._energies.spend(key, cost, purse)

    async def recall(self, key: str) -> Result | None:
        """Return a cached result that has not expired; the same object, so callers must not mutate it."""
        return self._results.recall(key)

    async def keep(self, key: str, result: Result, ttl: float) -> None:
        """Cache a result for `ttl` seconds; it may be evicted earlier."""
        self._results.keep(key, result, ttl)

    def drop_results(self) -> None:
        """Clear the result cache when memory is short; results can be computed again."""
        self._results.clear()

    async def once(self, key: str, make: Callable[[], Awaitable[Result]]) -> tuple[Result, bool]:
        """Run `make`, or join the run of this key (single flight); return the result and if it joined."""
        return await self._flights.once(key, make)

    def publish(self, change: ChangeSignal) -> None:
        """Notify every listener of the topic without blocking."""
        self._signals.publish(change)

    def listen(self, topic: str, hear: Callable[[ChangeSignal], None]) -> Callable[[], None]:
        """Subscribe to a topic, own changes included; return a function that unsubscribes."""
        return self._signals.listen(topic, hear)

    async def appear(self, key: str, value: str, ttl: float) -> None:
        """Register presence under a key for `ttl` seconds; repeat it as a heartbeat."""
        self._presence.appear(key, value, ttl)

    async def vanish(self, key: str) -> None:
        """Remove the presence of a key."""
        self._presence.vanish(key)

    async def present(self, prefix: str) -> Mapping[str, str]:
        """Return the present keys with a prefix, with their values."""
        return self._presence.present(prefix)

    async def close(self) -> None:
        """Do nothing: there are no resources to release."""
