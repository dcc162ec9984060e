"""An end of a pipe; closes its descriptor exactly once, also if an event loop takes it over."""

import asyncio
import os


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
