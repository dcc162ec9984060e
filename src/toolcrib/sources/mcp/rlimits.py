"""Resource limits (setrlimit) that the system enforces on a server's process and those it starts."""

import os
import signal
import sys
from dataclasses import dataclass, fields

_MIB = 1 << 20
_RESOURCES = {
    "memory_mb": ("RLIMIT_AS", _MIB),
    "cpu_seconds": ("RLIMIT_CPU", 1),
    "open_files": ("RLIMIT_NOFILE", 1),
    "processes": ("RLIMIT_NPROC", 1),
    "file_size_mb": ("RLIMIT_FSIZE", _MIB),
}
"""The system's name of each limit, and the factor from our unit to the system's."""
_SIGNALS = {"cpu_seconds": "SIGXCPU", "file_size_mb": "SIGXFSZ"}
"""Signals with one limit as their only cause."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessLimits:
    """The limits of one server; None inherits the gateway's own limit."""

    memory_mb: int | None = None
    cpu_seconds: int | None = None
    open_files: int | None = None
    processes: int | None = None
    file_size_mb: int | None = None

    def given(self) -> dict[str, int]:
        """Return the limits that are set, by name."""
        found = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: value for name, value in found.items() if value is not None}

    def encoded(self, open_files: int = 0) -> str:
        """Serialize the limits for the guard: `number=soft/hard`, separated by commas.

        `open_files` is the soft limit if none is set; 0 inherits the gateway's own.
        """
        given = self.given()
        if not (given or open_files):
            return ""
        import resource  # does not exist on every system

        parts: list[str] = []
        if open_files and self.open_files is None:
            _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
            parts.append(f"{resource.RLIMIT_NOFILE}={open_files}/{hard}")
        for name, value in given.items():
            number, soft = getattr(resource, _RESOURCES[name][0]), value * _RESOURCES[name][1]
            # The hard CPU limit sends SIGKILL, which has many causes; SIGXCPU, sent before it, has only one.
            parts.append(f"{number}={soft}/{soft + (name == 'cpu_seconds')}")
        return ",".join(parts)

    def ended_by(self, status: int) -> str:
        """Return a text on how a process's end may relate to its limits; empty if it has none."""
        given = self.given()
        for name, sent in _SIGNALS.items():
            if name in given and status == -getattr(signal, sent, 0):
                return f": it reached its limit of {name} {given[name]}"
        if not given or status == 0:
            return ""
        return f" (its limits are {', '.join(f'{name} {value}' for name, value in given.items())})"


NO_LIMITS = ProcessLimits()


def unenforced(name: str) -> str:
    """Return why this system does not enforce a limit, and what to do; empty if it does."""
    if sys.platform == "win32" or (name == "memory_mb" and sys.platform != "linux"):
        return f"is not enforced on this system ({sys.platform}); leave it out"
    if name == "processes" and os.geteuid() == 0:
        return "is not enforced on processes of root; run the gateway as another user, or leave it out"
    return ""
