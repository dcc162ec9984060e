"""The guard of one server: a small process that ends it and all its descendants, even if the gateway dies.

Run by its path with `-I -S`, so it may import the standard library only, and little of it. Its arguments are
the file descriptor of its end of a socket to the gateway, the seconds between SIGTERM and SIGKILL, the
server's LC_CTYPE, its limits (`number=soft/hard`, separated by commas, or empty), its program, and its
arguments from argv[0] on. The server inherits the guard's standard streams and environment.

It sends `pid N` (started), `failed N` (not started: errno), `exit N` (ended: the status, or a negative signal
number) and at last `left 0` (no process is left): a guard that ends without it was killed. It receives `t`
(terminate) or `k` (kill now); the end of the socket means `t`. It runs until no process is left, and exits
with the status of the server.
"""

from __future__ import annotations

import os
import select
import signal
import sys
from math import inf
from time import monotonic

TYPE_CHECKING = False  # the name suffices: importing `typing` takes longer than starting Python
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

    Control = Callable[[int, int], object]
    """prctl(2): the system call by which a process on Linux sets its own attributes."""

_SET_DEATH_SIGNAL, _SET_SUBREAPER = 1, 36
"""PR_SET_PDEATHSIG and PR_SET_CHILD_SUBREAPER of prctl(2)."""
_IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGPIPE, signal.SIGXFSZ)
"""Signals that the guard ignores; the server starts with their default actions."""
_MIN_KILL_PAUSE_SECONDS, _MAX_KILL_PAUSE_SECONDS = 0.01, 0.5
"""Seconds between two rounds of SIGKILL: doubled each time, within these bounds."""
_OUT_OF_MEMORY = b"12"
"""ENOMEM, formatted ahead of time: there may be no memory left to do it."""


class ProcessGuard:
    """One server and all its descendants."""

    def __init__(self, control: int, wake: int, server: int, *, grace: float, adopts: bool) -> None:
        self._control, self._wake, self._server = control, wake, server
        self._grace, self._adopts = grace, adopts
        self._watched = [control, wake]
        self._status: int | None = None
        self._kill_at = inf
        self._pause = _MIN_KILL_PAUSE_SECONDS

    def watch(self) -> int:
        """Wait until no process is left; return the exit status of the server."""
        while self._reap():
            ready, _, _ = select.select(self._watched, [], [], self._select_timeout())
            if self._wake in ready:
                os.read(self._wake, 512)
            if self._control in ready:
                self._handle_command(_read(self._control))
            if monotonic() >= self._kill_at:
                self._signal_all(signal.SIGKILL)
        send_message(self._control, "left 0")
        status = self._status or 0
        return status if status >= 0 else 128 - status

    def _reap(self) -> bool:
        """Reap the exited children; return whether any process is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return not self._adopts and _group_exists(self._server)
            if pid == 0:
                return True
            if pid == self._server:
                self._status = os.waitstatus_to_exitcode(status)
                send_message(self._control, f"exit {self._status}")
                self._end()

    def _select_timeout(self) -> float | None:
        if self._kill_at == inf:
            return None
        left = self._kill_at - monotonic()
        if left > 0:
            # Without a subreaper, orphans are not our children, and their exit is no signal: poll.
            return left if self._adopts else min(left, _MAX_KILL_PAUSE_SECONDS / 10)
        self._pause = min(self._pause * 2, _MAX_KILL_PAUSE_SECONDS)
        return self._pause

    def _handle_command(self, command: bytes) -> None:
        if not command:
            self._watched.remove(self._control)
        if b"k" in command:
            self._kill_at = monotonic()
        else:
            self._end()

    def _end(self) -> None:
        """Send SIGTERM to all processes, once; those left after the grace period are killed."""
        if self._kill_at == inf:
            self._kill_at = monotonic() + self._grace
            self._signal_all(signal.SIGTERM)

    def _signal_all(self, number: int) -> None:
        """Send a signal to all processes: to the server's group at once, to those outside it one by one."""
        processes = descendants()
        # Once the server is reaped, its group's id may be reused unless a descendant is still in the group.
        if self._status is None or not self._adopts or self._server in processes.values():
            _try_kill(os.killpg, self._server, number)
        for pid, group in processes.items():
            if group != self._server:
                _try_kill(os.kill, pid, number)


def descendants() -> dict[int, int]:
    """Return all descendants of this process, each with its process group; empty without /proc."""
    children: dict[int, list[tuple[int, int]]] = {}
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():  # noqa: PTH112, PTH208 - pathlib is slow to load
        if name.isdigit():
            parent, group = _parent_and_group(name)
            children.setdefault(parent, []).append((int(name), group))
    found: dict[int, int] = {}
    level = [os.getpid()]
    while level:
        members = [member for parent in level for member in children.get(parent, ())]
        found.update(members)
        level = [pid for pid, _ in members]
    return found


def _parent_and_group(pid: str) -> tuple[int, int]:
    """Return the parent and the group of a process; zeros if it has exited."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 - pathlib is slow to load
            # The command name in parentheses may contain any character, parentheses too.
            _, parent, group, *_ = file.read().rpartition(b")")[2].split()
    except (OSError, ValueError):
        return 0, 0
    return int(parent), int(group)


def _group_exists(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except OSError:
        return False
    return True


def _try_kill(kill: Callable[[int, int], None], target: int, number: int) -> None:
    try:
        kill(target, number)
    except OSError:  # it has exited, or permission is denied
        return


def _read(control: int) -> bytes:
    try:
        return os.read(control, 512)
    except OSError:  # the gateway died with unread messages from us
        return b""


def send_message(control: int, message: str) -> None:
    """Send a message to the gateway, if it is still connected."""
    try:
        os.write(control, f"{message}\n".encode())
    except OSError:
        return


def process_control() -> Control | None:
    """Return prctl(2), or None: only Linux has it."""
    if sys.platform != "linux":
        return None
    try:
        import ctypes

        return ctypes.CDLL(None).prctl
    except (ImportError, OSError, AttributeError):
        return None


def start(program: str, arguments: list[str], prctl: Control | None, limits: str = "") -> int:
    """Start the server in its own session; return its pid; raise OSError if that fails."""
    guard = os.getpid()
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        _exec_server(program, arguments, prctl, guard=guard, writer=writer, limits=limits)
    os.close(writer)
    failure = os.read(reader, 16)
    os.close(reader)
    if failure:
        os.waitpid(pid, 0)
        raise OSError(int(failure), os.strerror(int(failure)))
    return pid


def _exec_server(
    program: str, arguments: list[str], prctl: Control | None, *, guard: int, writer: int, limits: str
) -> NoReturn:
    """Turn this process, a fresh fork of the guard, into the server."""
    try:
        os.setsid()
        if prctl is not None:
            prctl(_SET_DEATH_SIGNAL, signal.SIGKILL)
        if os.getppid() == guard:  # else it died before prctl, and its death sends no signal
            for number in _IGNORED:
                signal.signal(number, signal.SIG_DFL)
            # Last: the memory limit may be too small for this process, and sufficient for the server.
            _apply_limits(limits)
            os.execv(program, arguments)  # noqa: S606 - an argument list, no shell
    except OSError as error:
        os.write(writer, str(error.errno).encode())
    except MemoryError:
        os.write(writer, _OUT_OF_MEMORY)
    finally:
        os._exit(127)


def _apply_limits(limits: str) -> None:
    """Set the resource limits of this process, capped at the system's hard limits."""
    if not limits:
        return
    import resource

    for each in limits.split(","):
        number, _, amounts = each.partition("=")
        soft, hard = map(int, amounts.split("/"))
        _, top = resource.getrlimit(int(number))
        if top != resource.RLIM_INFINITY:
            soft, hard = min(soft, top), min(hard, top)
        resource.setrlimit(int(number), (soft, hard))


def _ignore_signals() -> int:
    """Ignore the signals of terminals and init systems; return a pipe that is readable after SIGCHLD."""
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
    wake, waking = os.pipe()
    os.set_blocking(waking, False)
    signal.set_wakeup_fd(waking, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, _on_child_exit)
    return wake


def _on_child_exit(_number: int, _frame: Any) -> None:
    """A handler: without one, SIGCHLD would not wake `select`."""


def _detach_streams() -> None:
    """Close the server's standard streams: while the guard holds them, the gateway sees no end of file."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nowhere, stream)
    os.close(nowhere)


def _set_locale(locale: str) -> None:
    """Restore LC_CTYPE, which Python replaces at start-up where the locale is plain C (PEP 538)."""
    if locale:
        os.environ["LC_CTYPE"] = locale
    else:
        os.environ.pop("LC_CTYPE", None)


def main(control: str, grace: str, locale: str, limits: str, program: str, *arguments: str) -> int:
    """Guard a server for its whole lifetime; return its exit status."""
    end = int(control)
    _set_locale(locale)
    os.set_inheritable(end, False)
    wake = _ignore_signals()
    prctl = process_control()
    adopts = prctl is not None and prctl(_SET_SUBREAPER, 1) == 0
    try:
        server = start(program, list(arguments), prctl, limits)
    except OSError as error:
        send_message(end, f"failed {error.errno}")
        return 127
    _detach_streams()
    send_message(end, f"pid {server}")
    return ProcessGuard(end, wake, server, grace=float(grace), adopts=adopts).watch()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
