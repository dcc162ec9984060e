"""The process of an MCP server: start with resource limits, stop gracefully."""

import asyncio
import logging
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, fields
from pathlib import Path

import anyio

from toolcrib.descriptors import PipeEnd, open_pipe, original_soft_limit
from toolcrib.sources.mcp import guard
from toolcrib.sources.mcp.connection import NotSent

# --- Resource limits (setrlimit) that the system enforces on a server's process and those it starts ---

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

    def configured(self) -> dict[str, int]:
        """Return the limits that are set, by name."""
        found = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: value for name, value in found.items() if value is not None}

    def encoded(self, open_files: int = 0) -> str:
        """Serialize the limits for the guard: `number=soft/hard`, separated by commas.

        `open_files` is the soft limit if none is set; 0 inherits the gateway's own.
        """
        configured = self.configured()
        if not (configured or open_files):
            return ""
        import resource  # does not exist on every system

        parts: list[str] = []
        if open_files and self.open_files is None:
            _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
            parts.append(f"{resource.RLIMIT_NOFILE}={open_files}/{hard}")
        for name, value in configured.items():
            number, soft = getattr(resource, _RESOURCES[name][0]), value * _RESOURCES[name][1]
            # The hard CPU limit sends SIGKILL, which has many causes; SIGXCPU, sent before it, has only one.
            parts.append(f"{number}={soft}/{soft + (name == 'cpu_seconds')}")
        return ",".join(parts)

    def ended_by(self, status: int) -> str:
        """Return a text on how a process's end may relate to its limits; empty if it has none."""
        configured = self.configured()
        for name, sent_signal in _SIGNALS.items():
            if name in configured and status == -getattr(signal, sent_signal, 0):
                return f": it reached its limit of {name} {configured[name]}"
        if not configured or status == 0:
            return ""
        return f" (its limits are {', '.join(f'{name} {value}' for name, value in configured.items())})"


NO_LIMITS = ProcessLimits()


def unenforced(name: str) -> str:
    """Return why this system does not enforce a limit, and what to do; empty if it does."""
    if sys.platform == "win32" or (name == "memory_mb" and sys.platform != "linux"):
        return f"is not enforced on this system ({sys.platform}); leave it out"
    if name == "processes" and os.geteuid() == 0:
        return "is not enforced on processes of root; run the gateway as another user, or leave it out"
    return ""


# --- A server's process: finds the program, starts it under its guard, and terminates it reliably ---

_INHERITED_VARIABLES = (
    "HOME",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TERM",
    "USER",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "TMPDIR",
)
"""Variables of the gateway's environment that a server inherits."""

STOP_STEPS = (b"", b"t", b"k")
"""Sent to the guard to end a server: nothing at first (its input is closed), then SIGTERM, then SIGKILL."""
MIN_KILL_SECONDS = 5.0
"""Least time that SIGKILL gets: on a busy machine the guard itself may have to wait for a processor."""

log = logging.getLogger("toolcrib.sources.mcp")


def environment(configured: Mapping[str, str]) -> dict[str, str]:
    """Return the server's environment: an allowlist of ours and the configured variables; no secret leaks."""
    return {name: os.environ[name] for name in _INHERITED_VARIABLES if name in os.environ} | dict(configured)


def find(command: Sequence[str], env: Mapping[str, str], cwd: Path | None) -> str:
    """Return the path of a command's program; raise NotSent with advice if there is none."""
    if sys.platform == "win32":
        raise NotSent("servers over stdio need a POSIX system; reach this one over HTTP")
    if not command:
        raise NotSent("its command is empty; give a program and its arguments")
    if cwd is not None and not cwd.is_dir():
        raise NotSent(f"its working directory {cwd} does not exist; create it or give another `cwd`")
    name = command[0]
    if os.sep in name:
        return _checked_program(Path(cwd or "", name).absolute())
    found = shutil.which(name, path=env.get("PATH", os.defpath))
    if found is None:
        raise NotSent(f"there is no program named {name!r} on the PATH; install it or give its full path")
    return str(Path(found).absolute())


def _checked_program(path: Path) -> str:
    if not path.is_file():
        raise NotSent(f"there is no program at {path}; install it or correct the path")
    if not os.access(path, os.X_OK):
        raise NotSent(f"{path} is not executable; make it so, or start it by the program that runs it")
    return str(path)


@dataclass(frozen=True, slots=True)
class Streams:
    """The gateway's ends of the server's standard streams."""

    stdin: PipeEnd
    stdout: PipeEnd
    stderr: PipeEnd

    def close(self) -> None:
        for stream in (self.stdin, self.stdout, self.stderr):
            stream.close()


class Process:
    """A server and its guard, already starting. `ended` is called once, with the reason for its end."""

    def __init__(
        self,
        child: "subprocess.Popen[bytes]",
        control: socket.socket,
        streams: Streams,
        ended: Callable[[str], None],
        limits: ProcessLimits = NO_LIMITS,
    ) -> None:
        self._limits = limits
        self._child, self._control = child, control
        self.streams = streams
        self.pid: int | None = None
        """The pid of the server, not of the guard."""
        self._failure: int | None = None
        self._status: int | None = None
        self._processes_left: int | None = None
        self._buffer = b""
        self._start_known, self._all_ended = anyio.Event(), anyio.Event()
        self._ended = ended
        control.setblocking(False)
        asyncio.get_running_loop().add_reader(control, self._read_control)

    async def started(self) -> None:
        """Wait until the server runs; raise NotSent if it does not start."""
        await self._start_known.wait()
        if self._failure is not None:
            reason = os.strerror(self._failure) + self._limits.ended_by(self._failure)
            raise NotSent(f"it could not be started: {reason}")
        if self.pid is None:
            raise NotSent("it could not be started: its guard did not come up")

    async def stop(self, patience: float) -> None:
        """End the server and all its descendants: gracefully first, as its input is closed by now."""
        for command in STOP_STEPS:
            with suppress(OSError):  # the guard has exited already
                self._control.send(command)
            with anyio.move_on_after(
                max(patience, MIN_KILL_SECONDS) if command == STOP_STEPS[-1] else patience
            ):
                await self._all_ended.wait()
                break
        else:
            log.warning("process %s does not end, not even when killed; it is left to the system", self.pid)
            self._kill_group()
        self._close_control()
        # The guard has exited, as its end of the socket is closed; if it has not, it must not block us.
        self._child.kill()
        while self._child.poll() is None:  # noqa: ASYNC110 - not worth a watcher: it exits at once
            await anyio.sleep(0.001)

    def _read_control(self) -> None:
        try:
            data = self._control.recv(4096)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._guard_exited()
            return
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        for line in lines:
            command, _, number = line.partition(b" ")
            self._handle_message(command, int(number))

    def _handle_message(self, command: bytes, number: int) -> None:
        if command == b"pid":
            self.pid = number
        elif command == b"failed":
            self._failure = number
        elif command == b"left":
            self._processes_left = number
        else:
            self._status = number
            self._ended(_exit_text(number) + self._limits.ended_by(number))
        self._start_known.set()

    def _guard_exited(self) -> None:
        self._close_control()
        if self._processes_left is None:
            # The guard was killed, so we end what the server started; Linux has killed the server itself.
            self._kill_group()
        if self.pid is not None and self._status is None:
            self._ended("it was killed together with its guard")
        self._start_known.set()
        self._all_ended.set()

    def _kill_group(self) -> None:
        if self.pid is not None:
            with suppress(OSError):
                os.killpg(self.pid, signal.SIGKILL)

    def _close_control(self) -> None:
        if self._control.fileno() >= 0:
            asyncio.get_running_loop().remove_reader(self._control)
            self._control.close()


def _exit_text(status: int) -> str:
    return f"it exited with status {status}" if status >= 0 else f"it was killed by signal {-status}"


def launch(
    program: str,
    command: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: Path | None,
    grace: float,
    ended: Callable[[str], None],
    limits: ProcessLimits = NO_LIMITS,
) -> Process:
    """Start a server under its own guard; raise NotSent if the system does not permit it."""
    _check_limits(limits)
    with ExitStack() as ours, ExitStack() as theirs:
        try:
            control, guard_end = socket.socketpair()
            ours.callback(control.close)
            theirs.callback(guard_end.close)
            stdin, to_server = _pipe(theirs, ours)
            from_server, stdout = _pipe(ours, theirs)
            from_errors, stderr = _pipe(ours, theirs)
            encoded_limits = limits.encoded(original_soft_limit())
            guard_arguments = (str(guard_end.fileno()), str(grace), env.get("LC_CTYPE", ""), encoded_limits)
            child = subprocess.Popen(
                # Run by path: isolated from the environment and the installed packages, it starts fast.
                (sys.executable, "-I", "-S", guard.__file__, *guard_arguments, program, *command),
                stdin=stdin.fileno(),
                stdout=stdout.fileno(),
                stderr=stderr.fileno(),
                pass_fds=(guard_end.fileno(),),
                env=env,
                cwd=cwd,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise NotSent(f"it could not be started: {reason}") from None
        ours.pop_all()
    return Process(child, control, Streams(to_server, from_server, from_errors), ended, limits)


def _check_limits(limits: ProcessLimits) -> None:
    """Refuse limits that the system does not enforce: the operator relies on them."""
    for name in limits.configured():
        if reason := unenforced(name):
            raise NotSent(f"its limit {name} {reason}")


def _pipe(reader: ExitStack, writer: ExitStack) -> tuple[PipeEnd, PipeEnd]:
    """Open a pipe; each exit stack closes one end."""
    read_end, write_end = open_pipe()
    reader.callback(read_end.close)
    writer.callback(write_end.close)
    return read_end, write_end
