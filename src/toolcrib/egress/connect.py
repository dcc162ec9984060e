"""Happy Eyeballs (RFC 8305): staggered parallel connects; the first success wins."""

import asyncio
import socket
from collections.abc import Sequence
from typing import Any

import anyio

from toolcrib.egress.lookup import ResolvedAddress

HEAD_START = 0.25
"""Connection Attempt Delay in seconds: the wait before the next address is tried in parallel."""


async def dial(places: Sequence[ResolvedAddress]) -> socket.socket:
    """Return a connected socket; if every attempt fails, raise the error of the attempt that failed first."""
    race = _Race()
    try:
        async with anyio.create_task_group() as tasks:
            for place in _mixed(places):
                failed = anyio.Event()
                tasks.start_soon(race.run, place, failed, tasks.cancel_scope)
                with anyio.move_on_after(HEAD_START):
                    await failed.wait()
    except BaseException:
        if race.won is not None:
            race.won.close()
        raise
    if race.won is not None:
        return race.won
    raise race.lost[0]


async def connect(opened: socket.socket, address: tuple[Any, ...]) -> None:
    """Connect a socket to an address. anyio would resolve it again and could reach an unchecked address."""
    await asyncio.get_running_loop().sock_connect(opened, address)


class _Race:
    def __init__(self) -> None:
        self.won: socket.socket | None = None
        self.lost: list[OSError] = []

    async def run(self, place: ResolvedAddress, failed: anyio.Event, tasks: anyio.CancelScope) -> None:
        opened: socket.socket | None = None
        try:
            opened = socket.socket(place.family, socket.SOCK_STREAM)
            opened.setblocking(False)
            _keep_alive(opened)
            await connect(opened, place.address)
        except OSError as error:
            self.lost.append(error)
            failed.set()
        else:
            if self.won is None:
                self.won, opened = opened, None
                tasks.cancel()
        finally:
            if opened is not None:
                opened.close()


def _mixed(places: Sequence[ResolvedAddress]) -> list[ResolvedAddress]:
    """Interleave the address families, so that a broken one (often IPv6) delays the connect only briefly."""
    first = [place for place in places if place.family == places[0].family]
    other = [place for place in places if place.family != places[0].family]
    mixed: list[ResolvedAddress] = []
    while first or other:
        mixed += first[:1] + other[:1]
        del first[:1], other[:1]
    return mixed


def _keep_alive(opened: socket.socket) -> None:
    """Enable TCP keep-alive: a dead peer of an idle stream is detected within about a minute."""
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
        if (option := getattr(socket, name, None)) is not None:
            opened.setsockopt(socket.IPPROTO_TCP, option, value)
