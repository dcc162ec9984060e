"""From a host to the addresses of it that may be connected to, whatever its name means by then."""

import errno
import socket
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from ipaddress import ip_address
from typing import Any, NamedTuple

from anyio import CapacityLimiter, to_thread

from toolcrib.egress.egress import Egress

_MOST_LOOKUPS = 2


class Place(NamedTuple):
    """One address of a host, as a socket takes it."""

    family: int
    address: tuple[Any, ...]

    @property
    def shown(self) -> str:
        """The address with its zone, which only link-local ones have and are nowhere without."""
        host, _, *more = self.address
        return f"{host}%{more[1]}" if more and more[1] else str(host)


Look = Callable[[str, int], Awaitable[Sequence[Place]]]
"""Finds the places of a name and a port. Raises OSError."""


class Blocked(OSError):
    """The address may not be connected to. Nothing was sent, not even a first packet."""

    def __init__(self, reason: str) -> None:
        super().__init__(errno.EACCES, f"the address is refused: {reason}")


class Lookup:
    """Looks names up in threads of its own: a name that takes long keeps no other server's waiting."""

    def __init__(self) -> None:
        self._limit = CapacityLimiter(_MOST_LOOKUPS)

    async def __call__(self, host: str, port: int) -> Sequence[Place]:
        look = partial(_look, host, port, socket.AI_ADDRCONFIG)
        return await to_thread.run_sync(look, abandon_on_cancel=True, limiter=self._limit)


async def judged(host: str, port: int, egress: Egress, look: Look) -> list[Place]:
    """Return the places of a host that may be connected to; raise Blocked where there is none."""
    found = _look(host, port, socket.AI_NUMERICHOST) if _is_address(host) else await look(host, port)
    reasons = [egress.fault(place.shown) for place in found]
    free = [place for place, reason in zip(found, reasons, strict=True) if reason is None]
    if free:
        return free
    raise Blocked(next(filter(None, reasons), "the name has no address"))


def _look(host: str, port: int, flags: int) -> list[Place]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=flags)
    return [Place(family, address) for family, _, _, _, address in found]


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
