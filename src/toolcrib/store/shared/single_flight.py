"""One call at a time per key: whoever comes while it runs waits for its result instead of making another."""

from collections.abc import Awaitable, Callable
from types import TracebackType

from anyio import Event

from toolcrib.model import Result


class SingleFlightCall:
    """A call under way: how it ended, once it has, and what those wait for who joined it."""

    __slots__ = ("error", "landed", "result", "traceback")

    def __init__(self) -> None:
        self.result: Result | None = None
        self.error: Exception | None = None
        self.traceback: TracebackType | None = None
        self.landed: Event | None = None
        """Made by the first who waits: most flights have nobody waiting."""


class SingleFlight:
    """The calls under way in this process."""

    def __init__(self) -> None:
        self._flights: dict[str, SingleFlightCall] = {}

    def __len__(self) -> int:
        return len(self._flights)

    async def once(self, key: str, make: Callable[[], Awaitable[Result]]) -> tuple[Result, bool]:
        """Run `make` unless it is already running under this key; its result, and whether another made it.

        A waiter that goes away disturbs nobody. All share the leader's error, but not its cancellation:
        then the first to wake leads with a `make` of its own, and the others wait for that.
        """
        while (flight := self._flights.get(key)) is not None:
            flight.landed = flight.landed or Event()
            await flight.landed.wait()
            if flight.result is not None:
                return flight.result, True
            if flight.error is not None:
                # From where it first went wrong: raised by many, it would grow by each one's own frames.
                raise flight.error.with_traceback(flight.traceback)
        return await self._lead(key, make), False

    async def _lead(self, key: str, make: Callable[[], Awaitable[Result]]) -> Result:
        flight = self._flights[key] = SingleFlightCall()
        try:
            flight.result = await make()
        except Exception as error:  # a boundary: those who wait must hear of it, whatever it is
            flight.error, flight.traceback = error, error.__traceback__
            raise
        finally:
            del self._flights[key]
            if flight.landed is not None:
                flight.landed.set()
        return flight.result
