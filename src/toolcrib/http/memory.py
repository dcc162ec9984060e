"""Memory limits: bytes in bodies and results, and the watermark that sheds work."""

import asyncio
import ctypes
import gc
import logging
import os
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

import anyio
from anyio import CapacityLimiter, to_thread
from anyio.abc import TaskGroup

from toolcrib.descriptors import ProcFile
from toolcrib.errors import Refused
from toolcrib.model import OPERATOR
from toolcrib.slots import DEFAULT_SHARE, Slots

# --- Counts the memory of connections and bodies, in blocks, per principal or address ---

EXEMPT = OPERATOR
"""The principal exempt from these limits: the operator must be able to act when they are exhausted."""
BLOCK_BYTES = 64 << 10
"""Size of a block in bytes, the unit in which memory is counted."""


class HeldMemory:
    """The blocks of a limit that one connection or body holds."""

    __slots__ = ("_blocks", "_limit", "principal")

    def __init__(self, limit: Slots) -> None:
        self._limit, self._blocks = limit, 0
        self.principal = ""
        """The principal or address that the blocks count against."""

    def fit(self, principal: str, size: int) -> bool:
        """Hold `size` bytes for a principal; return False, with fewer blocks, if the limit is reached."""
        if principal != self.principal:
            self.clear()
            self.principal = principal
        wanted = 0 if principal == EXEMPT else -(-size // BLOCK_BYTES)
        while self._blocks > wanted:
            self._limit.release(principal)
            self._blocks -= 1
        while self._blocks < wanted:
            if not self._limit.take(principal):
                return False
            self._blocks += 1
        return True

    def clear(self) -> None:
        """Release all blocks."""
        while self._blocks:
            self._limit.release(self.principal)
            self._blocks -= 1


# --- Watches the resident memory of this process and sheds load above a threshold ---

MAX_SHARE_OF_MACHINE = 0.75
"""The fraction of the container's or machine's memory that is the limit if none is configured."""
SHED_ABOVE, ACCEPT_BELOW = 0.9, 0.8
"""Fractions of the limit (hysteresis): load is shed above the first, and accepted again below the second."""
WATCHED_ABOVE = 0.6
"""The fraction of the limit above which memory is sampled at the short interval."""
SAMPLE_SECONDS, FREQUENT_SAMPLE_SECONDS = 0.25, 0.05
RELIEF_SECONDS = 1.0
"""Seconds between two releases of free memory to the system while load is shed."""
COLLECT_SECONDS, MAX_COLLECT_SECONDS = 2.0, 60.0
"""Pauses between garbage collections while load is shed: the first doubles up to the second,
since each collection blocks the event loop."""
TRIM_SECONDS = 60.0
"""Seconds between two releases of free memory otherwise: the C library retains gaps between used blocks."""
MEMORY_RETRY_SECONDS = 2.0
BODY_COPIES = 3
"""Copies of a request body that exist at once: its parts, the joined bytes, and the parsed value."""
LARGE_BYTES = 1 << 20
"""Bytes; a larger body is compared with the free memory before it is accepted."""
_M_MMAP_THRESHOLD = -3
"""The `mallopt` parameter for the size from which malloc uses a separate mmap per block."""

CGROUPS, OWN_CGROUPS = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")
_CGROUP_FILES = {"": "memory.max", "memory": "memory.limit_in_bytes"}
"""The file with the limit of a cgroup, by controller; version 2 has one unnamed hierarchy."""
_RELIEF_ERRORS = (RuntimeError, MemoryError, OSError)
"""Errors of releasing memory when the system has no thread or memory left for it."""
_RESIDENT_FIELD = 1

log = logging.getLogger(__name__)


class ResidentMemory:
    """Reads the resident set size of this process."""

    def __init__(self) -> None:
        self._file = ProcFile("/proc/self/statm")
        self._page = os.sysconf("SC_PAGE_SIZE") if sys.platform != "win32" else 0

    def __call__(self) -> int:
        """Return the resident bytes; 0 if the platform does not report them."""
        fields = self._file.read().split()
        return int(fields[_RESIDENT_FIELD]) * self._page if fields else 0

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class MemoryWatch:
    """Samples memory in the background; a call only reads the attribute `is_high`."""

    def __init__(
        self,
        limit: int | None,
        *,
        relieve: Callable[[], None] | None = None,
        resident: Callable[[], int] | None = None,
    ) -> None:
        self.limit = limit
        """Bytes; None for no limit."""
        self.is_high = False
        self.resident, self.begun = 0, 0
        """The resident bytes of the last sample, and how often load shedding has begun."""
        self._relieve, self._read = relieve, resident
        self._measure: Callable[[], int] | None = None
        """Reads the resident bytes; None while the watch does not run."""
        self._is_relief_due = False
        # A thread of its own: the shared ones may all be occupied by the work that fills memory.
        self._thread = CapacityLimiter(1)
        self._released_at, self._is_releasing = 0.0, False
        self._collect_at, self._collect_pause = 0.0, COLLECT_SECONDS

    async def run(self) -> None:
        """Sample memory until cancelled."""
        if self.limit is None:
            return
        own = ResidentMemory()
        self._measure = self._read or own
        self._released_at, self._is_releasing = anyio.current_time(), False
        try:
            async with anyio.create_task_group() as tasks:
                await self._watch(self._measure, self.limit * WATCHED_ABOVE, tasks)
        finally:
            self._measure, self.is_high = None, False
            own.close()

    async def _watch(self, read: Callable[[], int], near: float, tasks: TaskGroup) -> None:
        while True:
            self.add_sample(read())
            since = anyio.current_time() - self._released_at
            if not self._is_releasing and since > (
                RELIEF_SECONDS if self.is_high or self._is_relief_due else TRIM_SECONDS
            ):
                self._is_releasing = True
                tasks.start_soon(self._release_memory)
            await anyio.sleep(FREQUENT_SAMPLE_SECONDS if self.resident > near else SAMPLE_SECONDS)

    def add_sample(self, resident: int) -> None:
        """Process one sample: start or stop load shedding."""
        limit, self.resident = self.limit or 0, resident
        if self.is_high and resident < limit * ACCEPT_BELOW:
            self.is_high = False
            log.warning("memory: %s; new work is accepted again", self._usage_text())
        elif not self.is_high and resident > limit * SHED_ABOVE:
            self.is_high = True
            self.begun += 1
            self._collect_at, self._collect_pause = 0.0, COLLECT_SECONDS
            log.warning(
                "memory: %s; new work, except the admin key's, is refused with OVERLOADED until it falls. "
                "Raise limits.memory_mb, or lower limits.process or limits.result_bytes",
                self._usage_text(),
            )

    def check(self) -> None:
        """Raise OVERLOADED while load is shed."""
        if self.is_high:
            raise _short_of_memory()

    def fits(self, size: int, *, reserved: int = 0) -> bool:
        """Sample now and return whether `size` more bytes fit below the threshold, besides those reserved.

        This is a system call: only for large requests and results.
        """
        if self.limit is None or self._measure is None:
            return True
        self.add_sample(self._measure())
        free = self.limit * SHED_ABOVE - self.resident
        if size > free:
            self._is_relief_due = True
        return not self.is_high and size + reserved <= free

    def check_body(self, size: int) -> None:
        """Refuse a large request body that does not fit into memory."""
        if size > LARGE_BYTES and not self.fits(size * BODY_COPIES):
            raise _short_of_memory()

    def _usage_text(self) -> str:
        return f"{self.resident >> 20} MiB of limits.memory_mb ({(self.limit or 0) >> 20} MiB) are in use"

    async def _release_memory(self) -> None:
        """Release free memory to the system; while memory is short, first drop caches and collect garbage."""
        try:
            with suppress(*_RELIEF_ERRORS):
                if self.is_high or self._is_relief_due:
                    self._is_relief_due = False
                    self._drop_caches()
                await to_thread.run_sync(trim, limiter=self._thread)
        finally:
            self._released_at, self._is_releasing = anyio.current_time(), False

    def _drop_caches(self) -> None:
        if self._relieve is not None:
            self._relieve()
        if anyio.current_time() >= self._collect_at:
            gc.collect()
            self._collect_at = anyio.current_time() + self._collect_pause
            self._collect_pause = min(2 * self._collect_pause, MAX_COLLECT_SECONDS)


def _short_of_memory() -> Refused:
    message = "the gateway is short of memory; try again later"
    return Refused("OVERLOADED", message, retry_after=MEMORY_RETRY_SECONDS)


def map_large_blocks() -> None:
    """Make malloc return every large block to the system as soon as it is freed.

    glibc raises its mmap threshold to the largest block freed so far, up to 32 MiB: after that, large results
    come from the heap and leave gaps there, which count as resident.
    """
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, LARGE_BYTES)


def trim() -> None:
    """Make the C library release free memory (`malloc_trim`); a no-op without glibc."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).malloc_trim(0)


def memory_limit(configured_mb: int | None) -> int | None:
    """Return the limit in bytes: as configured, else a fraction of the container's or machine's memory."""
    if configured_mb is not None:
        return configured_mb << 20 or None
    known = [*_cgroup_limits(), *machine_memory()]
    return int(min(known) * MAX_SHARE_OF_MACHINE) if known else None


def _cgroup_limits() -> Iterable[int]:
    """Yield the memory limits of this process's cgroups and of all their ancestors, each of which applies."""
    for controller, path in _own_cgroups().items():
        top = CGROUPS / controller
        own = top / path
        for folder in (own, *(parent for parent in own.parents if parent.is_relative_to(top))):
            with suppress(OSError, ValueError):  # `max` stands for no limit
                yield int((folder / _CGROUP_FILES[controller]).read_text())


def _own_cgroups() -> dict[str, str]:
    """Return this process's path in each cgroup hierarchy; the root if unknown, as in a container."""
    found = dict.fromkeys(_CGROUP_FILES, "")
    with suppress(OSError, ValueError):
        for line in OWN_CGROUPS.read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            for name in found.keys() & controllers.split(","):
                found[name] = "" if ".." in path.split("/") else path.lstrip("/")
    return found


def machine_memory() -> Iterable[int]:
    if sys.platform == "linux":
        yield os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


# --- Reserves memory for large results, so that concurrent ones do not exceed the limit of the process ---

WORKING_COPIES = 4
"""Copies of a result that exist at once: the value, its JSON, and a response body that holds it twice."""
RESULT_COPIES = 2
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
        limit, body = memory.limit * MAX_SHARE_OF_LIMIT, size * RESULT_COPIES
        own = self._by_principal.get(principal, 0) * RESULT_COPIES
        own += unread.by_principal.get(principal, 0) * BLOCK_BYTES
        total = self._total * RESULT_COPIES + unread.used * BLOCK_BYTES
        # The first result always passes: the share of a small limit can be less than a single response.
        if (own and own + body > limit * self._share) or (total and total + body > limit):
            return False
        return memory.fits(size * WORKING_COPIES, reserved=self._total * WORKING_COPIES)
