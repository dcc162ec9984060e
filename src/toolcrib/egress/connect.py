"""Connections that go only where an Egress lets them, whatever a name resolves to by then."""

import errno
import socket
from functools import partial
from typing import Any

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from anyio import CapacityLimiter, to_thread

from toolcrib.egress.egress import Egress

KEPT_SECONDS = 30.0
"""How long an idle connection is kept for the next request."""

_MOST_LOOKUPS = 2


class Blocked(OSError):
    """The address may not be connected to. Nothing was sent, not even a first packet."""

    def __init__(self, reason: str) -> None:
        super().__init__(errno.EACCES, f"the address is refused: {reason}")


def connector(egress: Egress, resolver: AbstractResolver | None = None) -> aiohttp.TCPConnector:
    """Make a pool of connections for one server.

    Of a name's addresses only those that are let through are tried. The last word has the socket's own
    address, as it is connected to: aiohttp looks nothing up where the host is an address already.
    How many requests run at once is bounded elsewhere (a server's bulkhead), so the pool has no limit.
    """

    def open_socket(info: tuple[Any, ...]) -> socket.socket:
        family, kind, protocol, _, address = info
        if reason := egress.fault(address[0]):
            raise Blocked(reason)
        opened = socket.socket(family, kind, protocol)
        _keep_alive(opened)
        return opened

    return aiohttp.TCPConnector(
        resolver=_Judge(egress, resolver or _Lookup()),
        socket_factory=open_socket,
        limit=0,
        keepalive_timeout=KEPT_SECONDS,
    )


class _Lookup(AbstractResolver):
    """Looks names up in threads of its own: a name that takes long keeps no other server's waiting."""

    def __init__(self) -> None:
        self._limit = CapacityLimiter(_MOST_LOOKUPS)

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        look = partial(socket.getaddrinfo, host, port, family, socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
        found = await to_thread.run_sync(look, abandon_on_cancel=True, limiter=self._limit)
        return [
            ResolveResult(
                hostname=host,
                host=zoned(address),
                port=int(address[1]),
                family=kind,
                proto=protocol,
                flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
            )
            for kind, _, protocol, _, address in found
        ]

    async def close(self) -> None:
        """Nothing is kept; a lookup that is still running ends by itself."""


def zoned(address: tuple[Any, ...]) -> str:
    """An address with its zone, which only link-local ones have and are nowhere without."""
    host, _, *more = address
    return f"{host}%{more[1]}" if more and more[1] else str(host)


class _Judge(AbstractResolver):
    """Looks names up, and leaves out every address that must not be connected to."""

    def __init__(self, egress: Egress, inner: AbstractResolver) -> None:
        self._egress, self._inner = egress, inner

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        found = await self._inner.resolve(host, port, family)
        reasons = [self._egress.fault(result["host"]) for result in found]
        free = [result for result, reason in zip(found, reasons, strict=True) if reason is None]
        if free:
            return free
        raise Blocked(next(filter(None, reasons), "the name has no address"))

    async def close(self) -> None:
        await self._inner.close()


def _keep_alive(opened: socket.socket) -> None:
    """Notice within a minute or so that the other side of a quiet stream has vanished."""
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
        if (option := getattr(socket, name, None)) is not None:
            opened.setsockopt(socket.IPPROTO_TCP, option, value)
