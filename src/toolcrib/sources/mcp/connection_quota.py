"""How many connections for callers that can be asked there may be, of one server and of all together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

from toolcrib.slots import DEFAULT_SHARE, part

if TYPE_CHECKING:
    from toolcrib.model import Caller
    from toolcrib.sources.mcp.owner_connection import OwnerConnection

MAX_COPIES = 32
"""How many processes all servers together may have for such callers, unless the config says otherwise."""


class ConnectionQuota:
    """The lanes that share one total. One caller may use half of it, and all of one key their share."""

    def __init__(self, total: int = MAX_COPIES, share: float = DEFAULT_SHARE) -> None:
        self.total, self.share = total, share
        self._lanes: list[OwnerConnection] = []
        self._changed = anyio.Event()

    def __len__(self) -> int:
        return len(self._lanes)

    @property
    def full(self) -> bool:
        """Whether there are as many lanes as there may be."""
        return len(self._lanes) >= self.total

    def used_up_by(self, caller: Caller) -> bool:
        """Whether a caller uses half of all lanes already, or the callers of its key their share."""
        busy = [lane.caller for lane in self._lanes if lane.users > 0]
        own = sum(each.id == caller.id for each in busy)
        of_key = sum(each.principal == caller.principal for each in busy)
        return own >= max(1, self.total // 2) or of_key >= part(self.total, self.share)

    def add(self, lane: OwnerConnection) -> None:
        """Count a lane, from the wish for it on."""
        self._lanes.append(lane)

    def remove(self, lane: OwnerConnection) -> None:
        """Count it no more: nothing of it is left."""
        self._lanes.remove(lane)
        self.tell()

    def make_room(self) -> None:
        """Close what has been idle for longest, unless an idle one is being closed already."""
        free = [lane for lane in self._lanes if not lane.users]
        # One in use that closes after its call does not count: it may hold its place for minutes.
        if free and not any(lane.closing for lane in free):
            min(free, key=lambda lane: lane.free_since).scope.cancel()

    def tell(self) -> None:
        """Wake whoever waits for a lane."""
        self._changed.set()
        self._changed = anyio.Event()

    async def changed(self) -> None:
        """Wait until a lane is free, or gone."""
        await self._changed.wait()
