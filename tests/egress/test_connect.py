"""Several places, one connection: whichever answers first, and no waiting for those that never do."""

import socket
from typing import Any

import anyio
import pytest
from anyio.abc import SocketAttribute

from tests.egress.peers import peer
from tests.waiting import until
from toolcrib.egress import connect as dials
from toolcrib.egress.connect import ResolvedAddress, dial

pytestmark = pytest.mark.anyio


class Silent:
    """A network in which some ports never answer."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *ports: int) -> None:
        self._ports, self._connect = ports, dials.connect
        self.tried: list[int] = []
        monkeypatch.setattr(dials, "connect", self.connect)

    async def connect(self, opened: socket.socket, address: tuple[Any, ...]) -> None:
        self.tried.append(address[1])
        if address[1] in self._ports:
            await anyio.sleep_forever()
        await self._connect(opened, address)


def at(*ports: int) -> list[ResolvedAddress]:
    return [ResolvedAddress(socket.AF_INET, ("127.0.0.1", port)) for port in ports]


async def test_a_place_that_refuses_is_not_the_last_word(free_port: int) -> None:
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(SocketAttribute.local_port)  # noqa: S610 -- anyio's, not Django's
    async with listener:
        with anyio.fail_after(10):
            connected = await dial(at(free_port, port))
        with connected:
            assert connected.getpeername()[1] == port


async def test_where_none_answers_the_first_error_counts(free_port: int) -> None:
    with pytest.raises(ConnectionRefusedError):
        await dial([*at(free_port), ResolvedAddress(socket.AF_INET, ("256.0.0.1", 1))])


async def test_a_place_that_never_answers_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    async def nothing(_: object) -> None:
        pass

    silent = Silent(monkeypatch, 1, 2)
    monkeypatch.setattr(dials, "ATTEMPT_DELAY_SECONDS", 0.01)
    async with peer(nothing) as url:
        port = url.port or 0
        with anyio.fail_after(10):
            connected = await dial(at(1, 2, port))
        with connected:
            assert connected.getpeername()[1] == port
    assert silent.tried == [1, 2, port]


async def test_families_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    silent = Silent(monkeypatch, *range(1, 6))
    monkeypatch.setattr(dials, "ATTEMPT_DELAY_SECONDS", 0.001)
    six = [ResolvedAddress(socket.AF_INET6, ("::1", port, 0, 0)) for port in (1, 2, 3)]
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(dial, [*six, *at(4, 5)])
        await until(lambda: len(silent.tried) == 5)
        tasks.cancel_scope.cancel()
    assert silent.tried == [1, 4, 2, 5, 3]


async def test_cancelled_connect_opens_no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    silent, opened = Silent(monkeypatch, 1), list[socket.socket]()
    make = socket.socket

    def noted(*kind: int) -> socket.socket:
        opened.append(make(*kind))
        return opened[-1]

    monkeypatch.setattr(dials.socket, "socket", noted)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(dial, at(1))
        await until(lambda: silent.tried == [1])
        tasks.cancel_scope.cancel()
    assert [each.fileno() for each in opened] == [-1]
