"""From a host to the addresses of it that may be connected to, whatever its name means by then."""

import asyncio
import errno
import socket
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from ipaddress import ip_address
from threading import Thread
from typing import Any, NamedTuple

from anyio.lowlevel import RunVar

from toolcrib.egress.egress import Egress

_MOST_LOOKUPS = 2
"""Threads that look one name up, those for which nobody waits any more included."""
_JOINED_SECONDS = 1.0
"""How long others join a lookup; after that one more is begun, as the name server may be back."""


class ResolvedAddress(NamedTuple):
    """One address of a host, as a socket takes it."""

    family: int
    address: tuple[Any, ...]

    @property
    def shown(self) -> str:
        """The address with its zone, which only link-local ones have and are nowhere without."""
        host, _, *more = self.address
        return f"{host}%{more[1]}" if more and more[1] else str(host)


Look = Callable[[str, int], Awaitable[Sequence[ResolvedAddress]]]
"""Finds the places of a name and a port. Raises OSError."""


class AddressBlocked(OSError):
    """The address may not be connected to. Nothing was sent, not even a first packet."""

    def __init__(self, reason: str) -> None:
        super().__init__(errno.EACCES, f"the address is refused: {reason}")


class _Running(NamedTuple):
    """One lookup in its thread: the loop's time at its start, and what it will have found."""

    since: float
    found: "asyncio.Future[list[ResolvedAddress]]"


class _Lookups:
    """The lookups of one event loop that run; whoever wants the same name joins.

    No thread can be ended: each lookup that is given up would leave one behind while the name server hangs.
    """

    def __init__(self) -> None:
        self._running: dict[tuple[str, int], list[_Running]] = {}

    def join(self, host: str, port: int) -> "asyncio.Future[list[ResolvedAddress]]":
        """Return what the newest lookup of a name will have found; it is begun where there is none."""
        now, running = asyncio.get_running_loop().time(), self._running.get((host, port), [])
        if not running or (len(running) < _MOST_LOOKUPS and now - running[-1].since > _JOINED_SECONDS):
            self._begin(host, port, now)
        return self._running[host, port][-1].found

    def _begin(self, host: str, port: int, now: float) -> None:
        loop = asyncio.get_running_loop()
        lookup = _Running(now, loop.create_future())
        # Seen, or asyncio complains where all who waited have given up.
        lookup.found.add_done_callback(lambda found: found.cancelled() or found.exception())

        def run() -> None:
            try:
                found: list[ResolvedAddress] | Exception = _look(host, port, socket.AI_ADDRCONFIG)
            except Exception as error:  # noqa: BLE001 - the boundary of a thread: whoever waits gets it
                found = error
            with suppress(RuntimeError):  # the loop was closed meanwhile
                loop.call_soon_threadsafe(self._end, (host, port), lookup, found)

        # A daemon, for a name server that hangs shall not keep the process from ending.
        Thread(target=run, name="name lookup", daemon=True).start()
        self._running.setdefault((host, port), []).append(lookup)

    def _end(self, name: tuple[str, int], lookup: _Running, found: list[ResolvedAddress] | Exception) -> None:
        self._running[name].remove(lookup)
        if not self._running[name]:
            del self._running[name]
        if isinstance(found, Exception):
            lookup.found.set_exception(found)
        else:
            lookup.found.set_result(found)


_LOOKUPS: RunVar[_Lookups] = RunVar("_LOOKUPS")


async def look_up(host: str, port: int) -> Sequence[ResolvedAddress]:
    """Look a name up in a thread, so that one that takes long keeps no other name waiting."""
    try:
        lookups = _LOOKUPS.get()
    except LookupError:
        _LOOKUPS.set(lookups := _Lookups())
    return await asyncio.shield(lookups.join(host, port))


async def judged(host: str, port: int, egress: Egress, look: Look) -> list[ResolvedAddress]:
    """Return the places of a host that may be connected to; raise Blocked where there is none."""
    found = _look(host, port, socket.AI_NUMERICHOST) if _is_address(host) else await look(host, port)
    reasons = [egress.fault(place.shown) for place in found]
    free = [place for place, reason in zip(found, reasons, strict=True) if reason is None]
    if free:
        return free
    raise AddressBlocked(next(filter(None, reasons), "the name has no address"))


def _look(host: str, port: int, flags: int) -> list[ResolvedAddress]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=flags)
    except UnicodeError as error:
        # No OSError: a label that is empty or too long does not get as far as the system.
        raise socket.gaierror(socket.EAI_NONAME, "it is not a name") from error
    return [ResolvedAddress(family, address) for family, _, _, _, address in found]


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
