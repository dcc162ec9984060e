"""Probes: whether a server accepts connections, without a request."""

import socket
from collections.abc import Sequence

import anyio
import pytest
from yarl import URL

from toolcrib.egress import Egress
from toolcrib.egress.lookup import Place
from toolcrib.egress.probe import Probe
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

    async def look(host: str, _: int) -> Sequence[Place]:
        assert host == "two.example"
        return [Place(socket.AF_INET, ("127.0.0.1", each)) for each in (port, at)]

    with listening:
        await Probe(URL("http://two.example/mcp"), FREE, look).connect(5.0)


async def test_a_lookup_that_hangs_ends_in_time() -> None:
    async def look(_: str, __: int) -> Sequence[Place]:
        await anyio.sleep_forever()
        return []

    with pytest.raises(NoConnection, match=r"within 0\.01 s"):
        await Probe(URL("http://slow.example/mcp"), FREE, look).connect(0.01)


async def test_a_forbidden_address_is_left_to_the_request() -> None:
    await Probe(URL("http://169.254.1.1/mcp"), Egress(guarded=True)).connect(5.0)
