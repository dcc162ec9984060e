"""Limits the dedicated connections for interactive callers, per server and over all servers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

from toolcrib.slots import DEFAULT_SHARE, part

if TYPE_CHECKING:
    from toolcrib.model import Caller
    from toolcrib.sources.mcp.owner_connection import OwnerConnection

MAX_COPIES = 32
"""Default maximum of server processes for interactive callers (those that accept server requests)."""


class ConnectionQuota:
    """Connections with a common total. One caller may use half of it, all callers of one key their share."""

    def __init__(self, total: int = MAX_COPIES, share: float = DEFAULT_SHARE) -> None:
        self.total, self.share = total, share
        self._lanes: list[OwnerConnection] = []
        self._changed = anyio.Event()

    def __len__(self) -> int:
        return len(self._lanes)

    @property
    def full(self) -> bool:
        """Whether the total is reached."""
        return len(self._lanes) >= self.total

    def used_up_by(self, caller: Caller) -> bool:
        """Return whether a caller uses half of the total already, or the callers of its key their share."""
        busy = [lane.caller for lane in self._lanes if lane.users > 0]
        own = sum(each.id == caller.id for each in busy)
        of_key = sum(each.principal == caller.principal for each in busy)
        return own >= max(1, self.total // 2) or of_key >= part(self.total, self.share)

    def add(self, lane: OwnerConnection) -> None:
        """Count a connection, from before it is opened."""
        self._lanes.append(lane)

    def remove(self, lane: OwnerConnection) -> None:
        """Stop counting a connection that is fully closed, and wake the waiting calls."""
        self._lanes.remove(lane)
        self.tell()

    def make_room(self) -> None:
        """Close the connection that has been idle for longest, unless an idle one is closing already."""
        free = [lane for lane in self._lanes if not lane.users]
        # A connection in use that closes after its call does not count: that may take minutes.
        if free and not any(lane.closing for lane in free):
            min(free, key=lambda lane: lane.free_since).scope.cancel()

    def tell(self) -> None:
        """Wake the calls that wait for a connection."""
        self._changed.set()
        self._changed = anyio.Event()

    async def changed(self) -> None:
        """Wait until a connection becomes free or is closed."""
        await self._changed.wait()
