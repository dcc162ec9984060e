"""Which core the server under load gets and which the load, where the machine can keep them apart."""

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Cores:
    """Two cores by number; without them commands run wherever the machine puts them."""

    server: int | None = None
    load: int | None = None
    note: str = ""
    """Why nothing is pinned, for whoever reads the numbers."""

    @property
    def pinned(self) -> bool:
        return self.server is not None

    def for_server(self, command: Sequence[str]) -> list[str]:
        return _pin(self.server, command)

    def for_load(self, command: Sequence[str]) -> list[str]:
        return _pin(self.load, command)


def find_cores() -> Cores:
    if shutil.which("taskset") is None:
        return Cores(note="taskset is missing, so nothing is pinned: server and load may share a core")
    usable = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    if len(usable) < 2:
        return Cores(note="there is no second core, so nothing is pinned: server and load share this one")
    return Cores(usable[0], usable[1])


def load_warning() -> str:
    """Say so where the machine had more to do than wait for us."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    if load < (os.cpu_count() or 1) / 2:
        return ""
    return f"the machine had other work when this began (load {load:.1f}): ratios are rougher than usual"


def _pin(core: int | None, command: Sequence[str]) -> list[str]:
    return list(command) if core is None else ["taskset", "-c", str(core), *command]
