"""How long a process was ready to run and got no processor: the part of a delay that is not its own."""

from pathlib import Path


def starved_seconds(pid: int | str = "self") -> float:
    """Seconds the first thread of a process, which runs its event loop, has waited for a processor so far."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9
