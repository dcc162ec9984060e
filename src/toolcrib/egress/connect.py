"""Opens TCP connections: cached DNS lookups, then Happy Eyeballs (RFC 8305)."""

import asyncio
import errno
import socket
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from ipaddress import ip_address
from threading import Thread
from typing import Any, NamedTuple

import anyio
from anyio.lowlevel import RunVar

from toolcrib.egress.egress import Egress

# --- DNS resolution: resolved addresses are checked and used directly (no DNS rebinding) ---

_MAX_LOOKUPS_PER_NAME = 2
"""Limit of concurrent lookup threads per name, abandoned lookups included."""
_JOIN_SECONDS = 1.0
"""Seconds in which callers join a running lookup; after that a second one starts: DNS may have recovered."""


class ResolvedAddress(NamedTuple):
    """One resolved address of a host, as arguments for a socket."""

    family: int
    address: tuple[Any, ...]

    @property
    def shown(self) -> str:
        """The address with its zone id, which link-local addresses need."""
        host, _, *more = self.address
        return f"{host}%{more[1]}" if more and more[1] else str(host)


Resolver = Callable[[str, int], Awaitable[Sequence[ResolvedAddress]]]
"""Resolves a name and a port to addresses. Raises OSError."""


class AddressBlocked(OSError):
    """The egress policy refuses the address. Nothing was sent, not even a SYN packet."""

    def __init__(self, reason: str) -> None:
        super().__init__(errno.EACCES, f"the address is refused: {reason}")


class _Lookup(NamedTuple):
    """One lookup in its thread: its start by the loop's clock, and the future of its result."""

    since: float
    found: "asyncio.Future[list[ResolvedAddress]]"


class _Lookups:
    """Single flight for the lookups of one event loop: callers with the same name share one.

    A thread cannot be cancelled: each abandoned lookup would leak a thread while the name server hangs.
    """

    def __init__(self) -> None:
        self._running: dict[tuple[str, int], list[_Lookup]] = {}

    def join(self, host: str, port: int) -> "asyncio.Future[list[ResolvedAddress]]":
        """Return the future of the newest lookup of a name; start a lookup if there is none to join."""
        now, running = asyncio.get_running_loop().time(), self._running.get((host, port), [])
        if not running or (len(running) < _MAX_LOOKUPS_PER_NAME and now - running[-1].since > _JOIN_SECONDS):
            self._begin(host, port, now)
        return self._running[host, port][-1].found

    def _begin(self, host: str, port: int, now: float) -> None:
        loop = asyncio.get_running_loop()
        lookup = _Lookup(now, loop.create_future())
        # Retrieves the exception: asyncio would log a warning if all waiters were cancelled.
        lookup.found.add_done_callback(lambda found: found.cancelled() or found.exception())

        def run() -> None:
            try:
                found: list[ResolvedAddress] | Exception = _getaddrinfo(host, port, socket.AI_ADDRCONFIG)
            except Exception as error:  # noqa: BLE001 - boundary of a thread: the waiters get it
                found = error
            with suppress(RuntimeError):  # the event loop has been closed
                loop.call_soon_threadsafe(self._end, (host, port), lookup, found)

        # A daemon thread, so that a name server that hangs cannot block the exit of the process.
        Thread(target=run, name="name lookup", daemon=True).start()
        self._running.setdefault((host, port), []).append(lookup)

    def _end(self, name: tuple[str, int], lookup: _Lookup, found: list[ResolvedAddress] | Exception) -> None:
        self._running[name].remove(lookup)
        if not self._running[name]:
            del self._running[name]
        if isinstance(found, Exception):
            lookup.found.set_exception(found)
        else:
            lookup.found.set_result(found)


_LOOKUPS: RunVar[_Lookups] = RunVar("_LOOKUPS")


async def resolve(host: str, port: int) -> Sequence[ResolvedAddress]:
    """Resolve a name in a thread of its own, so that a slow lookup does not delay other names."""
    try:
        lookups = _LOOKUPS.get()
    except LookupError:
        _LOOKUPS.set(lookups := _Lookups())
    return await asyncio.shield(lookups.join(host, port))


async def allowed_addresses(host: str, port: int, egress: Egress, look: Resolver) -> list[ResolvedAddress]:
    """Resolve a host and return its allowed addresses; raise AddressBlocked if there are none."""
    found = _getaddrinfo(host, port, socket.AI_NUMERICHOST) if _is_address(host) else await look(host, port)
    reasons = [egress.fault(address.shown) for address in found]
    allowed = [address for address, reason in zip(found, reasons, strict=True) if reason is None]
    if allowed:
        return allowed
    raise AddressBlocked(next(filter(None, reasons), "the name has no address"))


def _getaddrinfo(host: str, port: int, flags: int) -> list[ResolvedAddress]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=flags)
    except UnicodeError as error:
        # Not an OSError: Python rejects a label that is empty or too long before the system call.
        raise socket.gaierror(socket.EAI_NONAME, "it is not a name") from error
    return [ResolvedAddress(family, address) for family, _, _, _, address in found]


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


# --- Happy Eyeballs (RFC 8305): staggered parallel connects; the first success wins ---

ATTEMPT_DELAY_SECONDS = 0.25
"""Connection Attempt Delay in seconds: the wait before the next address is tried in parallel."""


async def dial(addresses: Sequence[ResolvedAddress]) -> socket.socket:
    """Return a connected socket; if every attempt fails, raise the error of the attempt that failed first."""
    race = _ConnectRace()
    try:
        async with anyio.create_task_group() as tasks:
            for address in _interleaved(addresses):
                failed = anyio.Event()
                tasks.start_soon(race.run, address, failed, tasks.cancel_scope)
                with anyio.move_on_after(ATTEMPT_DELAY_SECONDS):
                    await failed.wait()
    except BaseException:
        if race.winner is not None:
            race.winner.close()
        raise
    if race.winner is not None:
        return race.winner
    raise race.errors[0]


async def connect(opened: socket.socket, address: tuple[Any, ...]) -> None:
    """Connect a socket to an address. anyio would resolve it again and could reach an unchecked address."""
    await asyncio.get_running_loop().sock_connect(opened, address)


class _ConnectRace:
    def __init__(self) -> None:
        self.winner: socket.socket | None = None
        self.errors: list[OSError] = []

    async def run(self, address: ResolvedAddress, failed: anyio.Event, tasks: anyio.CancelScope) -> None:
        opened: socket.socket | None = None
        try:
            opened = socket.socket(address.family, socket.SOCK_STREAM)
            opened.setblocking(False)
            _enable_keep_alive(opened)
            await connect(opened, address.address)
        except OSError as error:
            self.errors.append(error)
            failed.set()
        else:
            if self.winner is None:
                self.winner, opened = opened, None
                tasks.cancel()
        finally:
            if opened is not None:
                opened.close()


def _interleaved(addresses: Sequence[ResolvedAddress]) -> list[ResolvedAddress]:
    """Interleave the address families, so that a broken one (often IPv6) delays the connect only briefly."""
    first = [address for address in addresses if address.family == addresses[0].family]
    other = [address for address in addresses if address.family != addresses[0].family]
    interleaved: list[ResolvedAddress] = []
    while first or other:
        interleaved += first[:1] + other[:1]
        del first[:1], other[:1]
    return interleaved


def _enable_keep_alive(opened: socket.socket) -> None:
    """Enable TCP keep-alive: a dead peer of an idle stream is detected within about a minute."""
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
        if (option := getattr(socket, name, None)) is not None:
            opened.setsockopt(socket.IPPROTO_TCP, option, value)
