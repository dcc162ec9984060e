"""Runs a server as a child process, and measures its start, memory and CPU time through /proc."""

import os
import subprocess
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.cores import Cores
from bench.requests import Request, UnexpectedResponse, send

UPSTREAM = Path(__file__).resolve().parent / "servers/upstream.py"
"""The MCP server behind the gateways; excluded from the memory and CPU time of a gateway that starts it."""
_START_TIMEOUT_SECONDS = 60.0
_POLL_SECONDS = 0.002
_LOG_TAIL_LINES = 15


@dataclass(frozen=True, kw_only=True)
class ServerProcess:
    """A running server, with its start time and idle memory."""

    name: str
    port: int
    pids: tuple[int, ...]
    """The server and its child processes, without the MCP servers behind it."""
    start_seconds: float
    """Seconds from the start of the process to its first correct response."""
    idle_megabytes: float | None
    """Resident memory of all its processes after that response."""

    def cpu(self) -> float | None:
        """Return the CPU seconds that all its processes have used so far."""
        used = [_cpu_seconds(pid) for pid in self.pids]
        readable = [seconds for seconds in used if seconds is not None]
        return sum(readable) if readable else None


class StartError(Exception):
    """A server did not start; the message contains the end of its output."""


@contextmanager
def run_server(  # many arguments, but all of them are passed by keyword
    name: str,
    command: Sequence[str],
    *,
    port: int,
    first: Request,
    cores: Cores,
    folder: Path,
    env: Mapping[str, str] | None = None,
) -> Generator[ServerProcess]:
    """Run a server until the block ends; it is ready when it responds to `first` as expected."""
    log_path = folder / f"{name}.log"
    with log_path.open("wb") as log:
        started_at = time.perf_counter()
        process = subprocess.Popen(
            cores.for_server(command),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(env or {})},
        )
        try:
            _wait_until_ready(process, port, first, log_path)
            start_seconds = time.perf_counter() - started_at
            yield _measure_start(name, port, process.pid, start_seconds)
        finally:
            _stop(process)


def _measure_start(name: str, port: int, pid: int, start_seconds: float) -> ServerProcess:
    pids = tuple(_process_tree(pid))
    memory = [_resident_megabytes(each) for each in pids]
    readable = [megabytes for megabytes in memory if megabytes is not None]
    return ServerProcess(
        name=name,
        port=port,
        pids=pids,
        start_seconds=start_seconds,
        idle_megabytes=sum(readable) if readable else None,
    )


def _wait_until_ready(process: subprocess.Popen[bytes], port: int, first: Request, log_path: Path) -> None:
    """Poll until the response is as expected: errors are normal while a server behind it still starts."""
    deadline = time.monotonic() + _START_TIMEOUT_SECONDS
    reason = f"no connection within {_START_TIMEOUT_SECONDS:g} s"
    while time.monotonic() < deadline and process.poll() is None:
        try:
            send(port, first)
        except OSError:
            pass
        except UnexpectedResponse as wrong:
            reason = str(wrong)
        else:
            return
        time.sleep(_POLL_SECONDS)
    if process.poll() is not None:
        reason = f"the process exited with status {process.returncode}"
    log_tail = "\n".join(log_path.read_text(errors="replace").splitlines()[-_LOG_TAIL_LINES:])
    raise StartError(f"{log_path.stem} did not start: {reason}\n{log_tail}")


def _process_tree(pid: int) -> Iterator[int]:
    yield pid
    for thread in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, thread.read_text().split()):
            if not _is_upstream(child):
                yield from _process_tree(child)


def _is_upstream(pid: int) -> bool:
    return str(UPSTREAM).encode() in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[1:2]


def _cpu_seconds(pid: int) -> float | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return None
    # The second field, the program's name in brackets, may contain spaces and brackets.
    fields = stat.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _resident_megabytes(pid: int) -> float | None:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return None
    found = next((line for line in status.splitlines() if line.startswith("VmRSS:")), None)
    return None if found is None else int(found.split()[1]) / 1024


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
