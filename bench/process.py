"""A server as a process of its own: started, watched through /proc, and ended."""

import os
import subprocess
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.asking import Ask, WrongAnswer, ask
from bench.cores import Cores

_PATIENCE = 120.0
_PAUSE = 0.002
_LAST_LINES = 15


@dataclass(frozen=True, kw_only=True)
class Peer:
    """A running server, with what it took to get it there."""

    name: str
    port: int
    pid: int
    start_seconds: float
    """From exec to the first right answer."""
    idle_megabytes: float | None

    def cpu(self) -> float | None:
        """Return the seconds of processor time all its threads have used so far."""
        try:
            stat = Path(f"/proc/{self.pid}/stat").read_text()
        except FileNotFoundError:
            return None
        # The second field is the program's name, which may hold anything but ends with the last bracket.
        fields = stat.rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


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
            yield Peer(
                name=name, port=port, pid=process.pid, start_seconds=took, idle_megabytes=_memory(process.pid)
            )
        finally:
            _end(process)


def answered(port: int, request: Ask) -> None:
    """Wait until a server answers rightly what it may not know at first: what stands behind it starts too."""
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            ask(port, request)
        except WrongAnswer:
            if time.monotonic() > until:
                raise
            time.sleep(_PAUSE)
        else:
            return


def _wait(process: subprocess.Popen[bytes], port: int, first: Ask, said: Path) -> None:
    until = time.monotonic() + _PATIENCE
    reason = "it did not listen in time"
    while time.monotonic() < until and process.poll() is None:
        try:
            ask(port, first)
        except OSError:
            time.sleep(_PAUSE)
        except WrongAnswer as wrong:
            reason = str(wrong)
            break
        else:
            return
    if process.poll() is not None:
        reason = f"it ended with {process.returncode}"
    words = "\n".join(said.read_text(errors="replace").splitlines()[-_LAST_LINES:])
    raise NotStarted(f"{said.stem} did not start: {reason}\n{words}")


def _memory(pid: int) -> float | None:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return None
    found = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(found.split()[1]) / 1024


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
