"""Accepting where file descriptors have run out: one connection at a time, so that others find some."""

import asyncio
import errno
import socket
from collections.abc import AsyncGenerator
from contextlib import ExitStack, asynccontextmanager

import pytest

from tests.waiting import until
from toolcrib.http.runner import ConnectionAcceptor

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("I5")]


class Listening(socket.socket):
    """A socket that has no descriptor for the first connection; counts connections accepted in one turn."""

    is_out = True
    turn, most_in_a_turn, accepted = 0, 0, 0

    def accept(self) -> tuple[socket.socket, object]:
        if self.is_out:
            self.is_out = False
            raise OSError(errno.EMFILE, "no descriptor")
        found = super().accept()
        if not self.turn:
            asyncio.get_running_loop().call_soon(self._end_turn)
        self.turn, self.accepted = self.turn + 1, self.accepted + 1
        self.most_in_a_turn = max(self.most_in_a_turn, self.turn)
        return found

    def _end_turn(self) -> None:
        self.turn = 0


@asynccontextmanager
async def accepting(*, is_out: bool) -> AsyncGenerator[tuple[Listening, ConnectionAcceptor, list[bool]]]:
    """Accept while the block runs; what is listed is which connections had a spare descriptor."""
    spare: list[bool] = []

    def make(is_spare: bool) -> asyncio.Protocol:
        spare.append(is_spare)
        return asyncio.Protocol()

    with Listening() as listening:
        listening.is_out = is_out
        listening.bind(("127.0.0.1", 0))
        listening.listen(64)
        listening.setblocking(False)
        acceptor = ConnectionAcceptor(listening, make)
        try:
            yield listening, acceptor, spare
        finally:
            acceptor.close()


@pytest.mark.parametrize("is_out, most", [(False, 20), (True, 1)])
async def test_descriptor_exhaustion_accepts_one_at_a_time(is_out: bool, most: int) -> None:
    async with accepting(is_out=is_out) as (listening, acceptor, spare):
        with ExitStack() as clients:
            for _ in range(20):
                clients.enter_context(socket.create_connection(listening.getsockname()))
            await until(lambda: len(spare) == 20)
        assert (listening.most_in_a_turn, acceptor.is_short, set(spare)) == (most, is_out, {is_out})


async def test_spare_descriptors_are_taken_back_once_there_are_enough() -> None:
    async with accepting(is_out=True) as (listening, acceptor, spare):
        with socket.create_connection(listening.getsockname()):
            await until(lambda: spare == [True])
        await until(lambda: not acceptor.is_short)


@pytest.mark.parametrize("free", [0, 1])
async def test_no_descriptor_is_taken_while_there_are_too_few(
    free: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[int] = []

    def few() -> int:
        looked.append(free)
        return free

    monkeypatch.setattr("toolcrib.http.runner.RESERVE_CHECK_SECONDS", 0.01)
    monkeypatch.setattr("toolcrib.http.runner.free_descriptors", few)
    async with accepting(is_out=True) as (listening, acceptor, spare):
        with socket.create_connection(listening.getsockname()):
            await until(lambda: spare == [True])
        opened: list[object] = []

        def open_file(*given: object) -> int:
            opened.append(given)
            return -1

        monkeypatch.setattr("toolcrib.http.runner.os.open", open_file)
        await until(lambda: len(looked) > 2)
        assert acceptor.is_short
        assert not opened
