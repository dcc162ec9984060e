"""File descriptors: the limit, spare descriptors, and pipe ends that are closed once."""

import asyncio
import errno
import os
import sys
from contextlib import suppress

# --- File descriptors of this process: their limit, how many are free, and files that stay open ---

MAX_DESCRIPTORS = 65_536
"""Maximum to which the soft limit is raised; a hard limit may be a thousand times that."""

MAX_SPARE, SPARE_SHARE = 32, 8
"""Size of the emergency reserve of descriptors: the first number, but at most 1/8 of the soft limit."""

NO_DESCRIPTORS = frozenset({errno.EMFILE, errno.ENFILE})
"""Error numbers of opening a file when this process or the system has no descriptor left."""

_MAX_PROC_BYTES = 128
_OPEN_DESCRIPTORS = "/proc/self/fd" if sys.platform == "linux" else "/dev/fd"

_original: int | None = None


def raise_descriptor_limit(most: int = MAX_DESCRIPTORS) -> int | None:
    """Raise the soft limit towards the hard limit; return the new soft limit, None if unlimited.

    Only for the gateway's own process: an embedding program may rely on the limit it set.
    """
    if sys.platform == "win32":
        return None
    import resource

    global _original  # noqa: PLW0603 - a limit of the process, of which there is one
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = most if hard == resource.RLIM_INFINITY else min(most, hard)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return None if soft == resource.RLIM_INFINITY else soft
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (OSError, ValueError):  # some systems have a lower limit than they report
        return soft
    _original = _original or soft
    return wanted


def original_soft_limit() -> int:
    """Return the soft limit for child processes, as it was before it was raised; 0 if it was not raised.

    Programs that use select() cannot handle descriptors above 1,023, and rely on the usual limit.
    """
    return _original or 0


def soft_limit() -> int | None:
    """Return the maximum number of descriptors of this process; None if unlimited."""
    if sys.platform == "win32":
        return None
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if soft == resource.RLIM_INFINITY else soft


def spare_descriptors() -> int:
    """Return the size of the emergency reserve of descriptors."""
    soft = soft_limit()
    return MAX_SPARE if soft is None else min(MAX_SPARE, max(2, soft // SPARE_SHARE))


def free_descriptors() -> int | None:
    """Return how many more descriptors this process may open; None if unknown."""
    soft = soft_limit()
    if soft is None:
        return None
    try:
        used = len(os.listdir(_OPEN_DESCRIPTORS)) - 1  # noqa: PTH208 - counted; one is the listing's own
    except OSError as error:
        return 0 if error.errno in NO_DESCRIPTORS else None
    return soft - used


class ProcFile:
    """A kernel file that is read many times; it stays open, as opening fails without free descriptors."""

    def __init__(self, path: str) -> None:
        self._file = -1
        with suppress(OSError):
            self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def read(self) -> bytes:
        """Return the current content; empty if the system has no such file."""
        return os.pread(self._file, _MAX_PROC_BYTES, 0) if self._file >= 0 else b""

    def close(self) -> None:
        """Close the file."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


# --- An end of a pipe; closes its descriptor exactly once, also if an event loop takes it over ---


class PipeEnd:
    """Owns a descriptor until it is closed or passed to an event loop."""

    __slots__ = ("_descriptor",)

    def __init__(self, descriptor: int) -> None:
        self._descriptor: int | None = descriptor

    def fileno(self) -> int:
        """Return the descriptor."""
        if self._descriptor is None:
            raise ValueError("this end of the pipe is closed")
        return self._descriptor

    def close(self) -> None:
        """Close the descriptor. Idempotent."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def give_to(self, loop: asyncio.AbstractEventLoop) -> "PipeEnd | LoopPipe":
        """Return the object for `connect_read_pipe` or `connect_write_pipe` of this loop, which closes it.

        The loops of the standard library close the object. uvloop closes the descriptor and then the
        object, and ignores that this fails. It does not fail if another thread has opened a file in
        between and got the same number: then that file, of the store or of the log, would be closed.
        """
        if isinstance(loop, asyncio.BaseEventLoop):
            return self
        given = LoopPipe(self.fileno())
        self._descriptor = None
        return given


class LoopPipe:
    """A descriptor that the event loop closes."""

    __slots__ = ("_descriptor",)

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def fileno(self) -> int:
        """Return the descriptor."""
        return self._descriptor

    def close(self) -> None:
        """Do nothing: the event loop has closed the descriptor."""


def open_pipe() -> tuple[PipeEnd, PipeEnd]:
    """Create a pipe; return the read end and the write end."""
    reading, writing = os.pipe()
    return PipeEnd(reading), PipeEnd(writing)
