"""Responses of the client: every valid notation is read, and no response can fill the memory."""

import asyncio
from collections.abc import Callable

import anyio
import pytest

from tests.egress.peers import OK, Behave, Peer, body_of, client_for, fetched, peer
from toolcrib.egress.http_connection import HttpConnection
from toolcrib.egress.response import ConnectionClosed, NotHttp, Response

pytestmark = pytest.mark.anyio


@pytest.fixture(params=[False, True], ids=["asyncio", "uvloop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, bool]]:
    """Transports differ: the gateway has uvloop's, and does without where there is none."""
    return ("asyncio", {"use_uvloop": request.param})


START = b"HTTP/1.1 200 OK\r\n"
CHUNKED = START + b"Transfer-Encoding: chunked\r\n\r\n"


def saying(*pieces: bytes, stays: bool = False) -> Behave:
    """A server that answers every request with these pieces."""

    async def behave(peer: Peer) -> None:
        while True:
            await peer.request()
            await peer.say(*pieces)
            if not stays:
                return

    return behave


@pytest.mark.parametrize(
    "pieces",
    [
        (OK,),
        tuple(OK[at : at + 1] for at in range(len(OK))),
        (CHUNKED + b"2\r\nok\r\n0\r\n\r\n",),
        (CHUNKED, b"1\r\n", b"o\r\n1", b"\r\nk", b"\r\n0\r\n", b"X-Trailer: 1\r\n\r\n"),
        (CHUNKED + b"1;name=value\r\no\r\n1\r\nk\r\n0\r\n\r\n",),
        (START + b"\r\n", b"o", b"k"),
        (b"HTTP/1.0 200 OK\r\n\r\nok",),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + OK,),
        (b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n", OK),
        (START + b"Connection: close\r\nContent-Length: 2\r\n\r\nok",),
        (START + b"Connection: close\r\nContent-Length: 2\r\n\r\nok and more",),
        (OK + OK,),
    ],
)
async def test_every_spelling_of_an_answer_is_read(pieces: tuple[bytes, ...]) -> None:
    async with peer(saying(*pieces)) as url, client_for(url) as client:
        assert await fetched(client, url) == b"ok"


@pytest.mark.parametrize("head", [b"204 No Content\r\n", b"304 Not Modified\r\nContent-Length: 5\r\n"])
async def test_some_answers_have_no_body(head: bytes) -> None:
    async with peer(saying(b"HTTP/1.1 " + head + b"\r\n", stays=True)) as url, client_for(url) as client:
        for _ in range(2):
            assert await fetched(client, url) == b""


async def test_the_head_of_an_answer() -> None:
    head = b"HTTP/1.1 418 Teapot\r\nContent-Type: Text/HTML; charset=x\r\nX-A: 1\r\nx-a: 2\r\n"
    # Endless zeros are still zero.
    length = b"Content-Length: %b\r\n\r\n" % (b"0" * 5_000)
    async with peer(saying(head + length)) as url, client_for(url) as client:
        response = await client.send("GET", url, {})
        assert (response.status, response.content_type, response.content_length) == (418, "text/html", 0)
        assert response.headers.get("X-A") == "1"
        assert "X-B" not in response.headers
        assert response.headers.get("X-B", "none") == "none"


@pytest.mark.parametrize(
    "pieces",
    [
        (b"SSH-2.0-OpenSSH\r\n\r\n",),
        (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n",),
        (START + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\nok",),
        (START + b"Content-Length: -2\r\n\r\nok",),
        (START + b"X: " + b"x" * 100_000 + b"\r\n\r\n",),
        (START + b"X: x\r\n" * 300 + b"Content-Length: 0\r\n\r\n",),
        (START, *(b"X: " + b"x" * 30_000 + b"\r\n" for _ in range(5))),
        (START + b"X: ", *(b"x" * 40_000 for _ in range(3))),
        tuple(b"HTTP/1.1 100 Continue\r\n\r\n" * 1000 for _ in range(5)),
    ],
)
@pytest.mark.requirement("I5")
async def test_a_head_that_is_none_or_has_no_end(pieces: tuple[bytes, ...]) -> None:
    async with peer(saying(*pieces)) as url, client_for(url) as client:
        with pytest.raises(NotHttp):
            await fetched(client, url)


@pytest.mark.parametrize(
    "pieces",
    [
        (b"zz\r\n",),
        (b"2\r\nokok\r\n",),
        (b"2;", *(b"x" * 40_000 for _ in range(3))),
        (b"2\r\nok\r\n0\r\n", *(b"X: " + b"x" * 30_000 + b"\r\n" for _ in range(5))),
        (b"2\r\nok\r\n0\r\nX: ", *(b"x" * 40_000 for _ in range(3))),
    ],
)
@pytest.mark.requirement("I5")
async def test_a_body_that_is_none_or_has_no_end(pieces: tuple[bytes, ...]) -> None:
    async with peer(saying(CHUNKED, *pieces)) as url, client_for(url) as client:
        response = await client.send("GET", url, {})
        with pytest.raises(NotHttp):
            await body_of(response)


async def test_buffered_bytes_are_read_before_eof() -> None:
    said = START + b"Content-Length: 10\r\n\r\nhalf"
    async with peer(saying(said)) as url, client_for(url) as client:
        response = await client.send("GET", url, {})
        assert await response.read() == b"half"
        with pytest.raises(ConnectionClosed):
            await response.read()


class Line(asyncio.Transport):
    """The wire's end of a connection, in memory."""

    def __init__(self) -> None:
        super().__init__()
        self.closed = self.paused = False

    def pause_reading(self) -> None:
        self.paused = True

    def resume_reading(self) -> None:
        self.paused = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        pass

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed


def wire_on(line: Line, resting: Callable[[HttpConnection], None]) -> HttpConnection:
    wire = HttpConnection(resting, lambda _: None)
    wire.connection_made(line)
    return wire


async def test_cancel_after_response_spares_next_request() -> None:
    line, resting = Line(), list[HttpConnection]()
    wire = wire_on(line, resting.append)
    asking: list[asyncio.Task[None]] = []

    async def ask() -> None:
        task = asyncio.current_task()
        assert task is not None
        asking.append(task)
        with pytest.raises(asyncio.CancelledError):
            await wire.send(b"x")
        task.uncancel()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        await anyio.wait_all_tasks_blocked()
        wire.data_received(OK)
        asking[0].cancel()
    assert resting == [wire]
    assert not line.closed


async def test_unsolicited_bytes_close_the_connection() -> None:
    line = Line()
    wire_on(line, lambda _: None).data_received(OK)
    assert line.closed


@pytest.mark.requirement("I5")
async def test_unread_response_applies_backpressure() -> None:
    line, resting = Line(), list[HttpConnection]()
    wire = wire_on(line, resting.append)
    got: list[Response] = []

    async def ask() -> None:
        got.append(await wire.send(b"x"))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        await anyio.wait_all_tasks_blocked()
        wire.data_received(START + b"Content-Length: 1000000\r\n\r\n")
    taken = 0
    while not line.paused:
        wire.data_received(b"x" * 50_000)
        taken += 50_000
    assert taken <= 300_000
    assert len(await got[0].read()) == taken
    assert not line.paused
    while taken < 1_000_000:
        wire.data_received(b"x" * 50_000)
        taken += 50_000
    # The body is complete, so the connection is free for reuse before the body is read.
    assert resting == [wire]
    assert not line.paused
    assert not got[0].at_end()
    assert await body_of(got[0])
    assert got[0].at_end()
