"""Protocol of the state that replicas share."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from toolcrib.model import Result


@dataclass(frozen=True, slots=True)
class RateDemand:
    """A rate limit to apply: a burst of `calls` per key, refilled evenly over `window` seconds."""

    key: str
    calls: int
    window: float


@dataclass(frozen=True, slots=True)
class ChangeSignal:
    """A cache invalidation message: a topic such as `keys`, and the changed item."""

    topic: str
    about: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EnergyAllowance:
    """Energy budget of a caller: maximum, recovery per second, and lowest level."""

    start: float = 100.0
    recover: float = 1.0
    floor: float = -50.0


class Shared(Protocol):
    """Shared state: rate limits, energy, cached results, single flight, change signals, presence."""

    async def take(self, demands: Sequence[RateDemand]) -> float:
        """Take from all limits atomically: return 0, or the seconds to wait if one of them is exceeded."""
        ...

    def left(self, key: str, purse: EnergyAllowance) -> float:
        """Return a caller's energy level as known locally. Does not block."""
        ...

    async def spend(self, key: str, cost: float, purse: EnergyAllowance) -> float:
        """Subtract from a caller's energy; return the remaining level."""
        ...

    async def recall(self, key: str) -> Result | None:
        """Return a cached result that has not expired, or None."""
        ...

    async def keep(self, key: str, result: Result, ttl: float) -> None:
        """Cache a result for `ttl` seconds."""
        ...

    async def once(self, key: str, make: Callable[[], Awaitable[Result]]) -> tuple[Result, bool]:
        """Single flight: run `make` unless it runs under this key; return its result, and whether shared.

        A cancelled waiter does not affect the others; a cancelled leader hands over to a waiter.
        """
        ...

    def publish(self, change: ChangeSignal) -> None:
        """Notify every listener, here and on other replicas. Does not block."""
        ...

    def listen(self, topic: str, hear: Callable[[ChangeSignal], None]) -> Callable[[], None]:
        """Subscribe a callback to a topic, including own changes; the returned function unsubscribes."""
        ...

    async def appear(self, key: str, value: str, ttl: float) -> None:
        """Announce presence under a key for `ttl` seconds; repeat to renew."""
        ...

    async def vanish(self, key: str) -> None:
        """Withdraw a presence."""
        ...

    async def present(self, prefix: str) -> Mapping[str, str]:
        """Return the presences under a prefix: key to value."""
        ...

    async def close(self) -> None:
        """Close connections."""
        ...
