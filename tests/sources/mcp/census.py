"""Who is alive: finds processes by a mark in their environment, which all they start inherit."""

import os
import signal
import time
import uuid
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path

MARK = "TOOLCRIB_TEST_MARK"


class Census:
    """The processes that carry one mark."""

    def __init__(self) -> None:
        self.mark = uuid.uuid4().hex
        self.env = {MARK: self.mark}

    def alive(self) -> list[int]:
        """Their numbers; the dead, buried or not, have no environment."""
        wanted = f"{MARK}={self.mark}".encode()
        found: list[int] = []
        for folder in Path("/proc").iterdir():
            with suppress(OSError):
                if folder.name.isdigit() and wanted in (folder / "environ").read_bytes().split(b"\0"):
                    found.append(int(folder.name))
        return found


@contextmanager
def census() -> Generator[Census]:
    """Count, and kill whoever a failed test left behind."""
    counted = Census()
    try:
        yield counted
    finally:
        for pid in counted.alive():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def state(pid: int) -> str:
    """One letter for what a process does: Z for dead and not buried, nothing for gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""


def parent(pid: int) -> int:
    """Whose child a process is."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def wait_until(condition: Callable[[], bool], within: float = 20.0) -> None:
    """Wait, outside of any event loop, until something holds."""
    limit = time.monotonic() + within
    while not condition():
        assert time.monotonic() < limit, "it never came to be"
        time.sleep(0.005)
