"""Single flight: concurrent calls with the same key share one execution and its result."""

from collections.abc import Awaitable, Callable
from types import TracebackType

from anyio import Event

from toolcrib.model import Result


class SingleFlightCall:
    """A call in flight: its outcome once it has ended, and the event that its followers await."""

    __slots__ = ("error", "landed", "result", "traceback")

    def __init__(self) -> None:
        self.result: Result | None = None
        self.error: Exception | None = None
        self.traceback: TracebackType | None = None
        self.landed: Event | None = None
        """Created by the first follower, since most calls have none."""


class SingleFlight:
    """The calls in flight of this process, by key."""

    def __init__(self) -> None:
        self._flights: dict[str, SingleFlightCall] = {}

    def __len__(self) -> int:
        return len(self._flights)

    async def once(self, key: str, make: Callable[[], Awaitable[Result]]) -> tuple[Result, bool]:
        """Run `make`, or join the run of this key; return the result and whether it joined.

        Cancellation of a follower does not affect the others. Followers share the error of the leader, but
        not its cancellation: then the first to wake becomes the leader with its own `make`.
        """
        while (flight := self._flights.get(key)) is not None:
            flight.landed = flight.landed or Event()
            await flight.landed.wait()
            if flight.result is not None:
                return flight.result, True
            if flight.error is not None:
                # The original traceback: each follower that raises the same error would append its frames.
                raise flight.error.with_traceback(flight.traceback)
        return await self._lead(key, make), False

    async def _lead(self, key: str, make: Callable[[], Awaitable[Result]]) -> Result:
        flight = self._flights[key] = SingleFlightCall()
        try:
            flight.result = await make()
        except Exception as error:  # boundary: followers must receive any error
            flight.error, flight.traceback = error, error.__traceback__
            raise
        finally:
            del self._flights[key]
            if flight.landed is not None:
                flight.landed.set()
        return flight.result
