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
from anyio import to_thread

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
TRIM_SECONDS = 60.0
"""How often free memory is given back otherwise: the C library keeps what lies between used pieces."""
RETRY_SECONDS = 2.0

CGROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
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

    async def run(self) -> None:
        """Watch until cancelled."""
        if self.limit is None:
            return
        own = ResidentMemory()
        read = self._read or own
        trimmed_at = anyio.current_time()
        try:
            while True:
                self.look(read())
                since = anyio.current_time() - trimmed_at
                if since > (RELIEF_SECONDS if self.is_high else TRIM_SECONDS):
                    await self._give_back()
                    trimmed_at = anyio.current_time()
                is_near = self.resident > self.limit * WATCHED_ABOVE
                await anyio.sleep(OFTEN_SECONDS if is_near else SELDOM_SECONDS)
        finally:
            self.is_high = False
            own.close()

    def look(self, resident: int) -> None:
        """Take note of how much memory there is."""
        limit, self.resident = self.limit or 0, resident
        if self.is_high and resident < limit * TAKE_BELOW:
            self.is_high = False
            log.warning("memory: %s; new work is taken again", self._said())
        elif not self.is_high and resident > limit * SHED_ABOVE:
            self.is_high = True
            self.begun += 1
            log.warning(
                "memory: %s; new work is refused with OVERLOADED, but for the admin key's, until it is less. "
                "Raise limits.memory_mb if there is more, else lower limits.process or limits.result_bytes",
                self._said(),
            )

    def check(self) -> None:
        """Refuse what would take more memory while it is short."""
        if self.is_high:
            message = "the gateway is short of memory; try again later"
            raise Refused("OVERLOADED", message, retry_after=RETRY_SECONDS)

    def _said(self) -> str:
        return f"{self.resident >> 20} MiB of limits.memory_mb ({(self.limit or 0) >> 20} MiB) are in use"

    async def _give_back(self) -> None:
        """Give the system what is free; where memory is short, empty what can be filled again before."""
        if self.is_high:
            if self._relieve is not None:
                self._relieve()
            gc.collect()
        await to_thread.run_sync(trim)


def trim() -> None:
    """Have the C library give free memory back; not every one can."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).malloc_trim(0)


def memory_limit(configured_mb: int | None) -> int | None:
    """Return the limit in bytes: as configured, else a part of what the container or the machine has."""
    if configured_mb is not None:
        return configured_mb << 20 or None
    known = [*_container_limits(CGROUP_LIMITS), *machine_memory()]
    return int(min(known) * MAX_SHARE_OF_MACHINE) if known else None


def _container_limits(files: Iterable[str]) -> Iterable[int]:
    for each in files:
        with suppress(OSError, ValueError):  # `max` stands for no limit
            yield int(Path(each).read_text())


def machine_memory() -> Iterable[int]:
    if sys.platform == "linux":
        yield os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
