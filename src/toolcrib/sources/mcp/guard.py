"""The guard of one server: a small process that ends it and all it started, even when the gateway is gone.

Run by its path with `-I -S`, so it may import the standard library alone, and little of it. Its arguments are
the number of its end of a socket to the gateway, the seconds between asking to end and killing, the server's
LC_CTYPE, its limits (`number=soft/hard`, with commas between, or nothing), its program, and its arguments
from the zeroth on. The server has the guard's own standard streams and environment.

It says `pid N` (started), `failed N` (not started: the error number), `exit N` (ended: the status, or the
number of a signal below zero) and at last `left 0` (nobody is left): a guard that goes without it was killed.
It is told `t` (end them) or `k` (kill them now); the end of the socket means the first. It stays until nobody
is left, and exits with the status of the server.
"""

from __future__ import annotations

import os
import select
import signal
import sys
from math import inf
from time import monotonic

TYPE_CHECKING = False  # the name alone will do: to load `typing` takes longer than to start Python
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

    Control = Callable[[int, int], object]
    """The system call by which a process on Linux sets what shall happen to it."""

_SET_DEATH_SIGNAL, _SET_SUBREAPER = 1, 36
_IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGPIPE, signal.SIGXFSZ)
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.01, 0.5
_OUT_OF_MEMORY = b"12"
"""ENOMEM, ready to be written when there is no memory left to spell it."""


class ProcessGuard:
    """One server and everything that came out of it."""

    def __init__(self, control: int, wake: int, server: int, *, grace: float, adopts: bool) -> None:
        self._control, self._wake, self._server = control, wake, server
        self._grace, self._adopts = grace, adopts
        self._watched = [control, wake]
        self._status: int | None = None
        self._kill_at = inf
        self._pause = _SHORTEST_PAUSE

    def watch(self) -> int:
        """Stay until nobody is left; return how the server ended."""
        while self._reap():
            ready, _, _ = select.select(self._watched, [], [], self._patience())
            if self._wake in ready:
                os.read(self._wake, 512)
            if self._control in ready:
                self._obey(_read(self._control))
            if monotonic() >= self._kill_at:
                self._strike(signal.SIGKILL)
        tell(self._control, "left 0")
        status = self._status or 0
        return status if status >= 0 else 128 - status

    def _reap(self) -> bool:
        """Bury the dead; whether anybody is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return not self._adopts and _lives(self._server)
            if pid == 0:
                return True
            if pid == self._server:
                self._status = os.waitstatus_to_exitcode(status)
                tell(self._control, f"exit {self._status}")
                self._end()

    def _patience(self) -> float | None:
        if self._kill_at == inf:
            return None
        left = self._kill_at - monotonic()
        if left > 0:
            # Those who are not our children die without a word.
            return left if self._adopts else min(left, _LONGEST_PAUSE / 10)
        self._pause = min(self._pause * 2, _LONGEST_PAUSE)
        return self._pause

    def _obey(self, said: bytes) -> None:
        if not said:
            self._watched.remove(self._control)
        if b"k" in said:
            self._kill_at = monotonic()
        else:
            self._end()

    def _end(self) -> None:
        """Ask everybody to end, once; those who do not are killed."""
        if self._kill_at == inf:
            self._kill_at = monotonic() + self._grace
            self._strike(signal.SIGTERM)

    def _strike(self, number: int) -> None:
        """Send a signal to everybody: to the server's group at once, one by one to those who left it."""
        known = descendants()
        # Once the server is buried, its number is its group's only as long as one of ours is in it.
        if self._status is None or not self._adopts or self._server in known.values():
            _send(os.killpg, self._server, number)
        for pid, group in known.items():
            if group != self._server:
                _send(os.kill, pid, number)


def descendants() -> dict[int, int]:
    """Everybody who came out of this process, each with its group; nobody where there is no /proc."""
    children: dict[int, list[tuple[int, int]]] = {}
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():  # noqa: PTH112, PTH208 - pathlib is slow to load
        if name.isdigit():
            parent, group = _parentage(name)
            children.setdefault(parent, []).append((int(name), group))
    found: dict[int, int] = {}
    level = [os.getpid()]
    while level:
        members = [member for parent in level for member in children.get(parent, ())]
        found.update(members)
        level = [pid for pid, _ in members]
    return found


def _parentage(pid: str) -> tuple[int, int]:
    """Parent and group of a process; zeros where it is gone by now."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 - pathlib is slow to load
            # The name in brackets may hold anything, brackets too.
            _, parent, group, *_ = file.read().rpartition(b")")[2].split()
    except (OSError, ValueError):
        return 0, 0
    return int(parent), int(group)


def _lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except OSError:
        return False
    return True


def _send(kill: Callable[[int, int], None], whom: int, number: int) -> None:
    try:
        kill(whom, number)
    except OSError:  # gone, or not ours to end
        return


def _read(control: int) -> bytes:
    try:
        return os.read(control, 512)
    except OSError:  # the gateway died with words of ours unread
        return b""


def tell(control: int, words: str) -> None:
    """Say something to the gateway, if it is still there."""
    try:
        os.write(control, f"{words}\n".encode())
    except OSError:
        return


def process_control() -> Control | None:
    """Find the system call that only Linux has."""
    if sys.platform != "linux":
        return None
    try:
        import ctypes

        return ctypes.CDLL(None).prctl
    except (ImportError, OSError, AttributeError):
        return None


def start(program: str, arguments: list[str], prctl: Control | None, limits: str = "") -> int:
    """Start the server in a session of its own; return its number; raise OSError where that fails."""
    guard = os.getpid()
    told, telling = os.pipe()
    pid = os.fork()
    if pid == 0:
        _become(program, arguments, prctl, guard=guard, telling=telling, limits=limits)
    os.close(telling)
    failure = os.read(told, 16)
    os.close(told)
    if failure:
        os.waitpid(pid, 0)
        raise OSError(int(failure), os.strerror(int(failure)))
    return pid


def _become(
    program: str, arguments: list[str], prctl: Control | None, *, guard: int, telling: int, limits: str
) -> NoReturn:
    """Turn this process, a fresh copy of the guard, into the server."""
    try:
        os.setsid()
        if prctl is not None:
            prctl(_SET_DEATH_SIGNAL, signal.SIGKILL)
        if os.getppid() == guard:  # or it died before its death could be a signal
            for number in _IGNORED:
                signal.signal(number, signal.SIG_DFL)
            # Last: the memory may be too little for this process, and enough for the server.
            _apply_limits(limits)
            os.execv(program, arguments)  # noqa: S606 - a program and its arguments; there is no shell to fool
    except OSError as error:
        os.write(telling, str(error.errno).encode())
    except MemoryError:
        os.write(telling, _OUT_OF_MEMORY)
    finally:
        os._exit(127)


def _apply_limits(limits: str) -> None:
    """Set the limits of this process; where the system's own are lower, those stay."""
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


def _deaf_but_for_children() -> int:
    """Ignore what terminals and init systems send to all; return what can be read when a child has died."""
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
    wake, waking = os.pipe()
    os.set_blocking(waking, False)
    signal.set_wakeup_fd(waking, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, _nothing)
    return wake


def _nothing(_number: int, _frame: Any) -> None:
    """A handler, so that the signal arrives at all."""


def _let_go() -> None:
    """Give up the server's standard streams, or nobody would notice that it closed them."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nowhere, stream)
    os.close(nowhere)


def _set_locale(locale: str) -> None:
    """Undo what Python did as it started: it puts another LC_CTYPE in place of plain C."""
    if locale:
        os.environ["LC_CTYPE"] = locale
    else:
        os.environ.pop("LC_CTYPE", None)


def main(control: str, grace: str, locale: str, limits: str, program: str, *arguments: str) -> int:
    """Guard a server for as long as it lives."""
    end = int(control)
    _set_locale(locale)
    os.set_inheritable(end, False)
    wake = _deaf_but_for_children()
    prctl = process_control()
    adopts = prctl is not None and prctl(_SET_SUBREAPER, 1) == 0
    try:
        server = start(program, list(arguments), prctl, limits)
    except OSError as error:
        tell(end, f"failed {error.errno}")
        return 127
    _let_go()
    tell(end, f"pid {server}")
    return ProcessGuard(end, wake, server, grace=float(grace), adopts=adopts).watch()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
