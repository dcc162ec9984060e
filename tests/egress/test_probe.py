"""Probes: whether a server accepts connections, without a request."""

import socket
import threading
from collections.abc import Generator, Sequence
from typing import Any

import anyio
import pytest
from yarl import URL

from tests.texts import matches
from toolcrib.egress import Egress
from toolcrib.egress.client import Probe
from toolcrib.egress.connect import ResolvedAddress
from toolcrib.egress.response import NoConnection

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("C2")]

FREE = Egress(guarded=False)


@pytest.fixture
def port() -> int:
    """A port on which nothing listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


@pytest.fixture
def listening() -> "socket.socket":
    return socket.create_server(("127.0.0.1", 0))


async def test_a_listening_server_is_there(listening: socket.socket) -> None:
    with listening:
        await Probe(URL(f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"), FREE).connect(5.0)
        connection, _ = listening.accept()
        with connection:
            assert connection.recv(1) == b"", "nothing is sent"


async def test_a_refused_connection_is_reported(port: int) -> None:
    with pytest.raises(NoConnection, match="refused"):
        await Probe(URL(f"http://127.0.0.1:{port}/mcp"), FREE).connect(5.0)


async def test_any_address_of_a_name_will_do(listening: socket.socket, port: int) -> None:
    at = listening.getsockname()[1]

    async def look(host: str, _: int) -> Sequence[ResolvedAddress]:
        assert host == "two.example"
        return [ResolvedAddress(socket.AF_INET, ("127.0.0.1", each)) for each in (port, at)]

    with listening:
        await Probe(URL("http://two.example/mcp"), FREE, look).connect(5.0)


async def test_a_lookup_that_hangs_ends_in_time() -> None:
    async def look(_: str, __: int) -> Sequence[ResolvedAddress]:
        await anyio.sleep_forever()
        return []

    with pytest.raises(NoConnection) as raised:
        await Probe(URL("http://slow.example/mcp"), FREE, look).connect(0.01)
    assert matches("server", "a lookup that hangs ends in time", str(raised.value))


async def test_probe_skips_forbidden_address() -> None:
    await Probe(URL("http://169.254.1.1/mcp"), Egress(guarded=True)).connect(5.0)


@pytest.mark.parametrize("host", ["a..b", ".a", f"{'a' * 64}.example"])
async def test_a_host_that_cannot_be_a_name_is_reported(host: str) -> None:
    with pytest.raises(NoConnection) as raised:
        await Probe(URL(f"http://{host}/mcp"), FREE).connect(5.0)
    assert matches("server", "a host that cannot be a name is reported", str(raised.value))


class Resolver:
    """A name server controlled by the test; counts the lookups."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.lookups = 0
        self.answer = threading.Event()
        self._real = socket.getaddrinfo
        monkeypatch.setattr(socket, "getaddrinfo", self._look)

    def _look(self, _: Any, *more: Any, **options: Any) -> Any:
        self.lookups += 1
        self.answer.wait(30)
        return self._real("127.0.0.1", *more, **options)


@pytest.fixture
def resolver(monkeypatch: pytest.MonkeyPatch) -> Generator[Resolver]:
    made = Resolver(monkeypatch)
    yield made
    made.answer.set()


@pytest.mark.parametrize("joined, threads", [(60.0, 1), (-1.0, 2)])
async def test_lookups_given_up_leave_no_threads_behind(
    resolver: Resolver, monkeypatch: pytest.MonkeyPatch, joined: float, threads: int
) -> None:
    monkeypatch.setattr("toolcrib.egress.connect._JOIN_SECONDS", joined)
    for _ in range(6):
        with pytest.raises(NoConnection, match="within"):
            await Probe(URL("http://hangs.example:1/mcp"), FREE).connect(0.05)
    assert resolver.lookups == threads


async def test_cancelled_probe_keeps_shared_lookup(resolver: Resolver, listening: socket.socket) -> None:
    url, given_up = URL(f"http://shared.example:{listening.getsockname()[1]}/mcp"), anyio.Event()

    async def give_up() -> None:
        with pytest.raises(NoConnection, match="within"):
            await Probe(url, FREE).connect(0.05)
        given_up.set()

    with listening:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(Probe(url, FREE).connect, 30.0)
            tasks.start_soon(give_up)
            await given_up.wait()
            resolver.answer.set()
        assert resolver.lookups == 1
        await Probe(url, FREE).connect(30.0)
        assert resolver.lookups == 2, "what has ended is not joined"
