"""A server as a process of its own: started, watched through /proc, and ended."""

import os
import subprocess
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.asking import Ask, WrongAnswer, ask
from bench.cores import Cores

UPSTREAM = Path(__file__).resolve().parent / "servers/upstream.py"
"""The server behind the gateways; where a gateway starts it, it is not of the gateway's own weight."""
_PATIENCE = 60.0
_PAUSE = 0.002
_LAST_LINES = 15


@dataclass(frozen=True, kw_only=True)
class Peer:
    """A running server, with what it took to get it there."""

    name: str
    port: int
    pids: tuple[int, ...]
    """Itself and the processes it started, but for the servers behind it."""
    start_seconds: float
    """From exec to the first right answer."""
    idle_megabytes: float | None
    """Resident memory of all its processes after that answer."""

    def cpu(self) -> float | None:
        """Return the seconds of processor time all its threads have used so far."""
        used = [_cpu(pid) for pid in self.pids]
        known = [seconds for seconds in used if seconds is not None]
        return sum(known) if known else None


class NotStarted(Exception):
    """A server did not come up; the message holds its last words."""


@contextmanager
def started(  # the parts of a command line, each by its name
    name: str,
    command: Sequence[str],
    *,
    port: int,
    first: Ask,
    cores: Cores,
    folder: Path,
    env: Mapping[str, str] | None = None,
) -> Generator[Peer]:
    """Run a server until the block ends; it is there once it answers `first` rightly."""
    said = folder / f"{name}.log"
    with said.open("wb") as log:
        began = time.perf_counter()
        process = subprocess.Popen(
            cores.for_server(command),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(env or {})},
        )
        try:
            _wait(process, port, first, said)
            took = time.perf_counter() - began
            yield _peer(name, port, process.pid, took)
        finally:
            _end(process)


def _peer(name: str, port: int, pid: int, took: float) -> Peer:
    pids = tuple(_family(pid))
    weights = [_memory(each) for each in pids]
    known = [weight for weight in weights if weight is not None]
    return Peer(
        name=name, port=port, pids=pids, start_seconds=took, idle_megabytes=sum(known) if known else None
    )


def _wait(process: subprocess.Popen[bytes], port: int, first: Ask, said: Path) -> None:
    """Ask until the answer is right: it may be wrong at first, because what stands behind it starts too."""
    until = time.monotonic() + _PATIENCE
    reason = "it did not listen in time"
    while time.monotonic() < until and process.poll() is None:
        try:
            ask(port, first)
        except OSError:
            pass
        except WrongAnswer as wrong:
            reason = str(wrong)
        else:
            return
        time.sleep(_PAUSE)
    if process.poll() is not None:
        reason = f"it ended with {process.returncode}"
    words = "\n".join(said.read_text(errors="replace").splitlines()[-_LAST_LINES:])
    raise NotStarted(f"{said.stem} did not start: {reason}\n{words}")


def _family(pid: int) -> Iterator[int]:
    yield pid
    for thread in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, thread.read_text().split()):
            if not _is_upstream(child):
                yield from _family(child)


def _is_upstream(pid: int) -> bool:
    return str(UPSTREAM).encode() in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[1:2]


def _cpu(pid: int) -> float | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return None
    # The second field is the program's name, which may hold anything but ends with the last bracket.
    fields = stat.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _memory(pid: int) -> float | None:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return None
    found = next((line for line in status.splitlines() if line.startswith("VmRSS:")), None)
    return None if found is None else int(found.split()[1]) / 1024


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
