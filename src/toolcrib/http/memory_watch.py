"""Watches the memory of this process, and says when no more work may be taken in."""

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

MAX_SHARE_OF_MACHINE = 0.75
"""The part of the container's or machine's memory that is the limit where none is configured."""
SHED_ABOVE, TAKE_BELOW = 0.9, 0.8
"""Parts of the limit: above the first, work is refused; it is taken again below the second."""
WATCHED_ABOVE = 0.6
"""The part of the limit above which memory is looked at often."""
SELDOM_SECONDS, OFTEN_SECONDS = 0.25, 0.05
RELIEF_SECONDS = 1.0
"""How often memory is given back to the system while work is refused."""
COLLECT_SECONDS, MAX_COLLECT_SECONDS = 2.0, 60.0
"""Pauses between collections of garbage while work is refused: the first one doubles up to the second,
since each collection stops the event loop."""
TRIM_SECONDS = 60.0
"""How often free memory is given back otherwise: the C library keeps what lies between used pieces."""
RETRY_SECONDS = 2.0
BODY_COPIES = 3
"""Copies of a request body that exist at once: its parts, the whole, and its value."""
LARGE_BYTES = 1 << 20
"""What is larger is compared with the memory that is left before it is taken in."""
_M_MMAP_THRESHOLD = -3
"""The parameter of `mallopt` for the size from which each block is a mapping of its own."""

CGROUPS, OWN_CGROUPS = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")
_CGROUP_FILES = {"": "memory.max", "memory": "memory.limit_in_bytes"}
"""Where the limit of a cgroup is, by controller: version 2 has one tree for all, which has no name."""
_PASSING = (RuntimeError, MemoryError, OSError)
"""What giving back raises where the system has no thread or memory left for it."""
_RESIDENT_FIELD = 1

log = logging.getLogger(__name__)


class ResidentMemory:
    """Reads how much memory this process has."""

    def __init__(self) -> None:
        self._file = ProcFile("/proc/self/statm")
        self._page = os.sysconf("SC_PAGE_SIZE") if sys.platform != "win32" else 0

    def __call__(self) -> int:
        """Return the resident bytes; 0 where the system does not say."""
        fields = self._file.read().split()
        return int(fields[_RESIDENT_FIELD]) * self._page if fields else 0

    def close(self) -> None:
        """Read no more."""
        self._file.close()


class MemoryWatch:
    """Whether memory is short, found out beside the calls: these look at one attribute."""

    def __init__(
        self,
        limit: int | None,
        *,
        relieve: Callable[[], None] | None = None,
        resident: Callable[[], int] | None = None,
    ) -> None:
        self.limit = limit
        """In bytes; None for no limit."""
        self.is_high = False
        self.resident, self.begun = 0, 0
        """The resident bytes when last looked at, and how often memory has become short."""
        self._relieve, self._read = relieve, resident
        self._measure: Callable[[], int] | None = None
        """Reads the resident bytes; None while nothing is watched."""
        self._is_relief_due = False
        # Its own thread: the shared ones may all be taken by the very work that fills memory.
        self._thread = CapacityLimiter(1)
        self._given_back, self._is_giving_back = 0.0, False
        self._collect_at, self._collect_pause = 0.0, COLLECT_SECONDS

    async def run(self) -> None:
        """Watch until cancelled."""
        if self.limit is None:
            return
        own = ResidentMemory()
        self._measure = self._read or own
        self._given_back, self._is_giving_back = anyio.current_time(), False
        try:
            async with anyio.create_task_group() as tasks:
                await self._watch(self._measure, self.limit * WATCHED_ABOVE, tasks)
        finally:
            self._measure, self.is_high = None, False
            own.close()

    async def _watch(self, read: Callable[[], int], near: float, tasks: TaskGroup) -> None:
        while True:
            self.look(read())
            since = anyio.current_time() - self._given_back
            if not self._is_giving_back and since > (
                RELIEF_SECONDS if self.is_high or self._is_relief_due else TRIM_SECONDS
            ):
                self._is_giving_back = True
                tasks.start_soon(self._give_back)
            await anyio.sleep(OFTEN_SECONDS if self.resident > near else SELDOM_SECONDS)

    def look(self, resident: int) -> None:
        """Take note of how much memory there is."""
        limit, self.resident = self.limit or 0, resident
        if self.is_high and resident < limit * TAKE_BELOW:
            self.is_high = False
            log.warning("memory: %s; new work is taken again", self._said())
        elif not self.is_high and resident > limit * SHED_ABOVE:
            self.is_high = True
            self.begun += 1
            self._collect_at, self._collect_pause = 0.0, COLLECT_SECONDS
            log.warning(
                "memory: %s; new work is refused with OVERLOADED, but for the admin key's, until it is less. "
                "Raise limits.memory_mb if there is more, else lower limits.process or limits.result_bytes",
                self._said(),
            )

    def check(self) -> None:
        """Refuse what would take more memory while it is short."""
        if self.is_high:
            raise _overloaded()

    def fits(self, size: int, *, reserved: int = 0) -> bool:
        """Measure now whether so many more bytes stay below the mark, besides those already reserved.

        This is a system call: for large requests and results only.
        """
        if self.limit is None or self._measure is None:
            return True
        self.look(self._measure())
        free = self.limit * SHED_ABOVE - self.resident
        if size > free:
            self._is_relief_due = True
        return not self.is_high and size + reserved <= free

    def check_body(self, size: int) -> None:
        """Refuse a large request body that memory has no room for."""
        if size > LARGE_BYTES and not self.fits(size * BODY_COPIES):
            raise _overloaded()

    def _said(self) -> str:
        return f"{self.resident >> 20} MiB of limits.memory_mb ({(self.limit or 0) >> 20} MiB) are in use"

    async def _give_back(self) -> None:
        """Give the system what is free; where memory is short, empty what can be filled again before."""
        try:
            with suppress(*_PASSING):
                if self.is_high or self._is_relief_due:
                    self._is_relief_due = False
                    self._empty()
                await to_thread.run_sync(trim, limiter=self._thread)
        finally:
            self._given_back, self._is_giving_back = anyio.current_time(), False

    def _empty(self) -> None:
        if self._relieve is not None:
            self._relieve()
        if anyio.current_time() >= self._collect_at:
            gc.collect()
            self._collect_at = anyio.current_time() + self._collect_pause
            self._collect_pause = min(2 * self._collect_pause, MAX_COLLECT_SECONDS)


def _overloaded() -> Refused:
    message = "the gateway is short of memory; try again later"
    return Refused("OVERLOADED", message, retry_after=RETRY_SECONDS)


def map_large_blocks() -> None:
    """Have the C library return every large block to the system as soon as it is free.

    glibc raises the threshold to the largest block freed so far, up to 32 MiB: after that, large results
    come from the heap and leave gaps there, which count as resident.
    """
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, LARGE_BYTES)


def trim() -> None:
    """Have the C library give free memory back; not every one can."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).malloc_trim(0)


def memory_limit(configured_mb: int | None) -> int | None:
    """Return the limit in bytes: as configured, else a part of what the container or the machine has."""
    if configured_mb is not None:
        return configured_mb << 20 or None
    known = [*_cgroup_limits(), *machine_memory()]
    return int(min(known) * MAX_SHARE_OF_MACHINE) if known else None


def _cgroup_limits() -> Iterable[int]:
    """Read the limits of this process's cgroups and of all above them, each of which holds."""
    for controller, place in _own_cgroups().items():
        top = CGROUPS / controller
        own = top / place
        for folder in (own, *(each for each in own.parents if each.is_relative_to(top))):
            with suppress(OSError, ValueError):  # `max` stands for no limit
                yield int((folder / _CGROUP_FILES[controller]).read_text())


def _own_cgroups() -> dict[str, str]:
    """Return where in each tree this process is; at the top where that is not known, as in a container."""
    found = dict.fromkeys(_CGROUP_FILES, "")
    with suppress(OSError, ValueError):
        for line in OWN_CGROUPS.read_text().splitlines():
            _, controllers, place = line.split(":", 2)
            for each in found.keys() & controllers.split(","):
                found[each] = "" if ".." in place.split("/") else place.lstrip("/")
    return found


def machine_memory() -> Iterable[int]:
    if sys.platform == "linux":
        yield os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
