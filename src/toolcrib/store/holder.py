"""Which process left a mark in the store, and whether it still runs."""

import os
import socket
from functools import cache
from pathlib import Path
from secrets import token_hex

_PROC = Path("/proc")
_DEAD = b"ZX"
"""States of a process that has ended and is not yet buried."""


def new_mark() -> str:
    """Return a mark of this process that no other leaves, nor this one again."""
    return f"{_place()} {os.getpid()} {_start(os.getpid())} {token_hex(8)}"


def is_gone(mark: str) -> bool:
    """Whether whoever left a mark has surely ended; of another machine's processes nobody here can tell."""
    host, boot, pid, start, _ = mark.split(" ")
    here, booted = _place().split(" ")
    if host != here:
        return False
    # Of this machine, or this container, before it was started again: nothing of that time still runs.
    return boot != booted or _start(int(pid)) != start


@cache
def _place() -> str:
    """The machine's name; then which start of it, or of the container that goes by this name."""
    host = "".join(socket.gethostname().split()) or "-"
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
        return f"{host} {boot}/{(_PROC / 'self/ns/pid').stat().st_ino}"
    except OSError:
        return f"{host} -"


def _start(pid: int) -> str:
    """When a process started, which tells it from a later one of the same number; empty for none."""
    if not _PROC.is_dir():
        return _signalled(pid)
    try:
        # Its name may hold anything; behind the last bracket there are only letters and numbers.
        fields = (_PROC / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in _DEAD else fields[19].decode()


def _signalled(pid: int) -> str:
    """The same where there is no /proc: a process is there, and that is all there is to know."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return ""
    except PermissionError:
        return "-"
    return "-"
