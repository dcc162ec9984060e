"""CPU pinning: the server under test and the load generator each get their own core, if possible."""

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Cores:
    """The numbers of both cores; None leaves the choice to the operating system."""

    server: int | None = None
    load: int | None = None
    note: str = ""
    """Why nothing is pinned; printed with the results, since it affects them."""

    @property
    def pinned(self) -> bool:
        return self.server is not None

    def for_server(self, command: Sequence[str]) -> list[str]:
        return _pin(self.server, command)

    def for_load(self, command: Sequence[str]) -> list[str]:
        return _pin(self.load, command)


def find_cores() -> Cores:
    if shutil.which("taskset") is None:
        return Cores(note="nothing is pinned, because taskset is missing: server and load may share a core")
    usable = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    if len(usable) < 2:
        return Cores(note="nothing is pinned, because there is only one core: server and load share it")
    return Cores(usable[0], usable[1])


def load_warning() -> str:
    """Return a note if other processes keep the machine busy, else an empty text."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    if load < (os.cpu_count() or 1) / 2:
        return ""
    return f"the machine was busy at the start (load average {load:.1f}): ratios are less precise than usual"


def _pin(core: int | None, command: Sequence[str]) -> list[str]:
    return list(command) if core is None else ["taskset", "-c", str(core), *command]
