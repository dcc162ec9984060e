"""Identifies the process that holds a claim in the store, and detects whether it still runs."""

import os
import socket
from functools import cache
from pathlib import Path
from secrets import token_hex

_PROC = Path("/proc")
_ENDED_STATES = b"ZX"
"""States in /proc of a process that has ended: zombie or dead."""


def new_process_mark() -> str:
    """Return a unique mark: host, boot id, process id, start time and a random token."""
    return f"{_host_and_boot()} {os.getpid()} {_start_time(os.getpid())} {token_hex(8)}"


def is_gone(mark: str) -> bool:
    """Whether the process of a mark has certainly ended; False for a process of another machine."""
    host, boot, pid, start, _ = mark.split(" ")
    here, booted = _host_and_boot().split(" ")
    if host != here:
        return False
    # Another boot of this machine or container: no process from before the restart still runs.
    return boot != booted or _start_time(int(pid)) != start


@cache
def _host_and_boot() -> str:
    """Return the host name, and an id of this boot and PID namespace (container)."""
    host = "".join(socket.gethostname().split()) or "-"
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
        return f"{host} {boot}/{(_PROC / 'self/ns/pid').stat().st_ino}"
    except OSError:
        return f"{host} -"


def _start_time(pid: int) -> str:
    """Return the start time of a process, since process ids are reused; empty if there is no such process."""
    if not _PROC.is_dir():
        return _exists(pid)
    try:
        # The process name may contain any bytes; the fields after the last bracket are plain.
        fields = (_PROC / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in _ENDED_STATES else fields[19].decode()


def _exists(pid: int) -> str:
    """Return `-` if the process exists, else empty: without /proc, no start time is available."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return ""
    except PermissionError:
        return "-"
    return "-"
