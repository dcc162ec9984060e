"""The seam to what replicas share."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from toolcrib.model import Result


@dataclass(frozen=True, slots=True)
class RateDemand:
    """A claim on a rate: so many calls at once under a key, refilled evenly over the window (seconds)."""

    key: str
    calls: int
    window: float


@dataclass(frozen=True, slots=True)
class ChangeSignal:
    """Something others should look at again: a topic such as `keys`, and what it is about."""

    topic: str
    about: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EnergyAllowance:
    """How much a caller can have, how fast it comes back (a second), and how deep one may fall."""

    start: float = 100.0
    recover: float = 1.0
    floor: float = -50.0


class Shared(Protocol):
    """State that replicas share: limits, cached results, running flights, change signals, presence."""

    async def take(self, demands: Sequence[RateDemand]) -> float:
        """Check all, then take all: 0 where it may go on, else the seconds to wait (and nothing is taken)."""
        ...

    def left(self, key: str, purse: EnergyAllowance) -> float:
        """What a caller has left to spend, as far as is known here. Does not wait."""
        ...

    async def spend(self, key: str, cost: float, purse: EnergyAllowance) -> float:
        """Take from what a caller has; what is left then."""
        ...

    async def recall(self, key: str) -> Result | None:
        """A kept result that is still fresh."""
        ...

    async def keep(self, key: str, result: Result, ttl: float) -> None:
        """Keep a result for `ttl` seconds."""
        ...

    async def once(self, key: str, make: Callable[[], Awaitable[Result]]) -> tuple[Result, bool]:
        """Run `make` unless it is already running under this key; its result, and whether another made it.

        A waiter that goes away disturbs nobody; a leader that is cancelled hands over to a waiter.
        """
        ...

    def publish(self, change: ChangeSignal) -> None:
        """Tell every listener, here and on other replicas. Does not wait."""
        ...

    def listen(self, topic: str, hear: Callable[[ChangeSignal], None]) -> Callable[[], None]:
        """Hear of changes of a topic, also one's own; call the answer to stop."""
        ...

    async def appear(self, key: str, value: str, ttl: float) -> None:
        """Be present under a key for `ttl` seconds; again to stay."""
        ...

    async def vanish(self, key: str) -> None:
        """Be present no longer."""
        ...

    async def present(self, prefix: str) -> Mapping[str, str]:
        """Who is present under a prefix: key to value."""
        ...

    async def close(self) -> None:
        """Let go of connections."""
        ...
