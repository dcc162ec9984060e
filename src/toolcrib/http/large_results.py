"""Reserves memory for large results, so that concurrent ones do not exceed the limit of the process."""

import asyncio

from toolcrib.http.held_memory import BLOCK_BYTES, EXEMPT
from toolcrib.http.memory_watch import MemoryWatch
from toolcrib.slots import DEFAULT_SHARE, Slots

WORKING_COPIES = 4
"""Copies of a result that exist at once: the value, its JSON, and a response body that holds it twice."""
BODY_COPIES = 2
"""Copies within the response body, which is buffered until the client has read it."""
MAX_SHARE_OF_LIMIT = 0.25
"""The fraction of the memory limit that large results of calls and unread responses may take together."""

RELEASE_SECONDS = 0.01
"""Seconds a reservation outlives its call: the response may be written in a later event loop iteration."""


class LargeResults:
    """Counts the results of running calls per principal and refuses those that do not fit into memory."""

    def __init__(self, share: float = DEFAULT_SHARE) -> None:
        self._share = share
        self._memory: MemoryWatch | None = None
        self._unread: Slots | None = None
        self._total, self._by_principal = 0, dict[str, int]()

    def attach(self, memory: MemoryWatch, unread: Slots) -> None:
        """Set the limits: the server's memory watch and its count of unread response bytes."""
        self._memory, self._unread = memory, unread

    def reserve(self, principal: str, size: int) -> bool:
        """Reserve memory for a result of this size; return False if there is not enough."""
        if principal != EXEMPT and not self._fits(principal, size):
            return False
        self._total += size
        self._by_principal[principal] = self._by_principal.get(principal, 0) + size
        return True

    def release(self, principal: str, size: int) -> None:
        """Release a reservation once the response is in memory, and therefore measured as resident."""
        asyncio.get_running_loop().call_later(RELEASE_SECONDS, self._release, principal, size)

    def _release(self, principal: str, size: int) -> None:
        self._total -= size
        left = self._by_principal[principal] - size
        if left:
            self._by_principal[principal] = left
        else:
            del self._by_principal[principal]

    def _fits(self, principal: str, size: int) -> bool:
        memory, unread = self._memory, self._unread
        if memory is None or unread is None or memory.limit is None:
            return True
        most, body = memory.limit * MAX_SHARE_OF_LIMIT, size * BODY_COPIES
        held = self._by_principal.get(principal, 0) * BODY_COPIES
        held += unread.by_principal.get(principal, 0) * BLOCK_BYTES
        held_by_all = self._total * BODY_COPIES + unread.used * BLOCK_BYTES
        # The first result always passes: the share of a small limit can be less than a single response.
        if (held and held + body > most * self._share) or (held_by_all and held_by_all + body > most):
            return False
        return memory.fits(size * WORKING_COPIES, reserved=self._total * WORKING_COPIES)
