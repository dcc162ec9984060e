"""Which processes are alive, read from /proc: those that carry a mark, and those below another one."""

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

PROC = Path("/proc")
MARK = "WALK_MARK"


def numbers() -> Iterator[int]:
    return (int(entry) for entry in os.listdir(PROC) if entry.isdigit())  # noqa: PTH208 -- names, not paths


def words(pid: int) -> tuple[str, ...]:
    """Command line of a process; empty for exited and zombie processes."""
    with suppress(OSError):
        return tuple(word.decode(errors="replace") for word in _read(pid, "cmdline").split(b"\0")[:-1])
    return ()


def is_guard(pid: int) -> bool:
    """Whether it is the gateway's own, put over a server to end it."""
    return any("guard" in word for word in words(pid))


def marked(mark: str) -> dict[int, tuple[str, ...]]:
    """Servers and what they started: all with this mark in their environment, by process id."""
    wanted = f"{MARK}={mark}".encode()
    found = [pid for pid in numbers() if wanted in _environment(pid)]
    return {pid: line for pid in found if (line := words(pid)) and not is_guard(pid)}


def below(pid: int) -> set[int]:
    """Children of a process, their children, and so on."""
    parents = {each: parent for each in numbers() if (parent := _parent(each)) is not None}
    found, fresh = set[int](), {pid}
    while fresh:
        fresh = {each for each, parent in parents.items() if parent in fresh}
        found |= fresh
    return found


def running(pid: int) -> bool:
    """Whether a process is there and has not ended."""
    return bool(words(pid))


def slay(pid: int) -> bool:
    """Kill -9; whether it was still there."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def _read(pid: int, name: str) -> bytes:
    return (PROC / str(pid) / name).read_bytes()


def _environment(pid: int) -> list[bytes]:
    with suppress(OSError):
        return _read(pid, "environ").split(b"\0")
    return []


def _parent(pid: int) -> int | None:
    with suppress(OSError):
        # The name in brackets may hold anything; the parent is the second field after it.
        return int(_read(pid, "stat").rpartition(b")")[2].split()[1])
    return None
