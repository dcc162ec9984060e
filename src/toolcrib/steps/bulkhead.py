"""So many calls of one source run at once, so many wait; the rest is told to come back."""

from collections import deque
from dataclasses import dataclass, field

import anyio

from toolcrib.errors import Refused
from toolcrib.interfaces import Handler, Stage
from toolcrib.model import Call, Overheard, Result, Tool


@dataclass
class _Room:
    """The places of one source. Fewer than none are free where calls came back to theirs."""

    free: int
    waiting: deque[anyio.Event] = field(default_factory=deque[anyio.Event])

    def leave(self) -> None:
        """Hand the place to whoever waits longest, else free it."""
        if self.waiting and self.free >= 0:
            self.waiting.popleft().set()
        else:
            self.free += 1

    def come_back(self) -> None:
        """Take a place again; a call that has begun is not made to wait for one."""
        self.free -= 1


@dataclass(frozen=True)
class Bulkhead:
    """Nothing one source does takes the places of another."""

    running: int = 32
    waiting: int = 64
    patience: float = 10.0
    apart: frozenset[str] = frozenset()
    """Tools with a room of their own, by name: they only wait, and would fill that of others."""
    _rooms: dict[str, _Room] = field(default_factory=dict[str, _Room], init=False, repr=False)

    def fit(self, tool: Tool) -> Stage:
        """Every source has a room; its tools share it."""
        owner = tool.name if tool.name in self.apart else tool.source
        room = self._rooms.setdefault(owner, _Room(self.running))

        async def bulkhead(call: Call, proceed: Handler) -> Result:
            if room.free > 0:
                room.free -= 1
            else:
                await self._wait(room, tool)
            if call.channel is not None:
                # Whoever waits for its caller's answer does nothing, and must not keep others from working.
                call = call.but(channel=Overheard(call.channel, room.leave, room.come_back))
            try:
                return await proceed(call)
            finally:
                room.leave()

        return bulkhead

    async def _wait(self, room: _Room, tool: Tool) -> None:
        if len(room.waiting) >= self.waiting:
            raise _full(tool)
        turn = anyio.Event()
        room.waiting.append(turn)
        try:
            with anyio.move_on_after(self.patience):
                await turn.wait()
        except BaseException:  # cancelled while waiting: a place handed over meanwhile goes to the next
            self._give_up(room, turn)
            raise
        if not turn.is_set():
            self._give_up(room, turn)
            raise _full(tool)

    def _give_up(self, room: _Room, turn: anyio.Event) -> None:
        if turn.is_set():
            room.leave()
        else:
            room.waiting.remove(turn)


def _full(tool: Tool) -> Refused:
    return Refused(
        "OVERLOADED", f"{tool.source} is busy; nothing was done, try again shortly", retry_after=1.0
    )
