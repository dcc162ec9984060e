"""Connects to the first of several places that answers, a little later to each, as none may answer at all."""

import asyncio
import socket
from collections.abc import Sequence
from typing import Any

import anyio

from toolcrib.egress.lookup import ResolvedAddress

HEAD_START = 0.25
"""How long one place is waited for before the next one is tried beside it."""


async def dial(places: Sequence[ResolvedAddress]) -> socket.socket:
    """Return a connected socket; raise the first place's error where none can be connected to."""
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
    """Connect a socket to an address. anyio would look it up again, and take whatever it finds."""
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
    """The families in turn, the first place's first: where one family leads nowhere, little time is lost."""
    first = [place for place in places if place.family == places[0].family]
    other = [place for place in places if place.family != places[0].family]
    mixed: list[ResolvedAddress] = []
    while first or other:
        mixed += first[:1] + other[:1]
        del first[:1], other[:1]
    return mixed


def _keep_alive(opened: socket.socket) -> None:
    """Notice within a minute or so that the other side of a quiet stream has vanished."""
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
        if (option := getattr(socket, name, None)) is not None:
            opened.setsockopt(socket.IPPROTO_TCP, option, value)
