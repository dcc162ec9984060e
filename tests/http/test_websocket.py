"""Sockets over the wire: a real client and hostile bytes, bounds on both ways, how they end."""

import struct
from collections.abc import Awaitable, Callable

import anyio
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from tests.http.sockets import (
    BYTES,
    CLOSE,
    PING,
    code_of,
    everything,
    frame,
    handshake,
    head_of,
    sockets,
)
from tests.waiting import until
from toolcrib.http import protocol, runner, websocket
from toolcrib.http.websocket import OpenWebSocket

pytestmark = pytest.mark.anyio

MIB = 1 << 20
GOOD = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"


async def echo(socket: OpenWebSocket) -> None:
    """Echo every message."""
    while (heard := await socket.receive()) is not None:
        await socket.send(heard if isinstance(heard, str) else f"{len(heard)} bytes")


async def listen(socket: OpenWebSocket) -> None:
    """Read everything and send nothing."""
    while await socket.receive() is not None:
        pass


async def test_messages_are_received_and_answered() -> None:
    async with sockets(echo) as server, connect(server.socket_url) as client:
        for message, answer in (
            ("grüezi", "grüezi"),
            (b"\x00\x01", "2 bytes"),
            ("", ""),
            (["a", "bc"], "abc"),
        ):
            await client.send(message)
            assert await client.recv() == answer
        await client.send("x" * MIB)
        assert len(await client.recv()) == MIB
        assert client.response is not None
        assert "Sec-WebSocket-Extensions" not in client.response.headers


@pytest.mark.slow
@pytest.mark.parametrize("pieces", [1, 2, 7])
async def test_frames_right_after_handshake_are_received(pieces: int) -> None:
    words = handshake() + frame(b"early") + frame(b"bird")
    size = -(-len(words) // pieces)
    async with sockets(echo) as server, await server.connect() as stream:
        for at in range(0, len(words), size):
            await stream.send(words[at : at + size])
        head, rest = await head_of(stream)
        assert head.startswith(b"HTTP/1.1 101 ")
        assert b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" in head
        await stream.send(frame(struct.pack("!H", 1000), CLOSE))
        assert b"\x81\x05early\x81\x04bird" in await everything(stream, rest)


@pytest.mark.slow
async def test_websocket_after_requests_outlives_the_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(runner, "_KEEP_ALIVE_SECONDS", 1.5)
    async with sockets(echo) as server, await server.connect() as stream, await server.connect() as other:
        await stream.send(GOOD)
        assert (await head_of(stream))[0].startswith(b"HTTP/1.1 200")
        await stream.send(GOOD + handshake())
        read = b""
        while b"101 Switching" not in read:
            read += await stream.receive()
        await other.send(GOOD)
        assert b"no socket" in await everything(other)
        await stream.send(frame(b"still here"))
        with anyio.fail_after(20):
            assert b"still here" in await stream.receive()


NO_HANDSHAKES = (
    (handshake(without="Sec-WebSocket-Key"), "Sec-WebSocket-Key"),
    (handshake(without="Sec-WebSocket-Version"), "Sec-WebSocket-Version"),
    (handshake("Sec-WebSocket-Version: 8", without="Sec-WebSocket-Version"), "Sec-WebSocket-Version"),
    (handshake("Sec-WebSocket-Key: no", without="Sec-WebSocket-Key"), "Sec-WebSocket-Key"),
    (handshake("Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=="), "Sec-WebSocket-Key"),
    (handshake("Upgrade: h2c", without="Upgrade"), "Upgrade"),
    (handshake().replace(b"GET", b"POST"), "POST"),
    (handshake().replace(b"HTTP/1.1", b"HTTP/1.0"), "HTTP/1.0"),
)


async def test_invalid_handshake_is_refused() -> None:
    async with sockets(echo) as server:
        for words, said in NO_HANDSHAKES:
            async with await server.connect() as stream:
                await stream.send(words)
                head, rest = await head_of(stream)
                assert head.startswith(b"HTTP/1.1 400"), words
                assert b"INVALID_REQUEST" in rest
                assert said.encode() in rest
                if b"connection: close" not in head.lower():
                    await stream.send(GOOD)
                    assert b"no socket" in (await head_of(stream))[1]


async def test_upgrade_on_other_paths_is_ignored() -> None:
    others = (
        handshake().replace(b"/app-ws", b"/health"),
        handshake().replace(b"/app-ws", b"/app-ws/more"),
        handshake(without="Upgrade"),
        handshake(without="Connection"),
    )
    async with sockets(echo) as server:
        for words in others:
            async with await server.connect() as stream:
                await stream.send(words)
                head, rest = await head_of(stream)
                assert head.startswith(b"HTTP/1.1 200"), words
                assert rest == b'"no socket"'


@pytest.mark.slow
@pytest.mark.parametrize("size", [0, 30, len(handshake()) - 1])
async def test_a_handshake_that_never_ends_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(protocol, "ARRIVAL_SECONDS", 0.05)
    async with sockets(echo) as server, await server.connect() as stream:
        if size:
            await stream.send(handshake()[:size])
        assert await everything(stream) == b""


GARBAGE = (
    (frame(b"", length=MIB + 1), 1009),
    (frame(b"", length=1 << 62), 1009),
    (frame(b"x" * 1000, fin=False) + frame(b"", 0, length=MIB - 999), 1009),
    (frame(b"\xff\xfe"), 1007),
    (frame(b"a\xf0\x9f", fin=False) + frame(b"b", 0), 1007),
    (b"\x81\x02hi", 1002),
    (b"\xff\xff\xff\xff\xff\xff", 1002),
    (b"\x00\x00\x00\x00", 1002),
    (frame(b"x", 3), 1002),
    (frame(b"x", 0), 1002),
    (frame(b"x", fin=False) + frame(b"y"), 1002),
    (frame(b"x" * 126, PING), 1002),
    (frame(b"x", PING, fin=False), 1002),
    (frame(b"\x03", CLOSE), 1002),
    (frame(struct.pack("!H", 999), CLOSE), 1002),
    (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", 1002),
)


async def test_garbage_ends_the_socket_and_nothing_else() -> None:
    heard: list[str | bytes | None] = []

    async def note(socket: OpenWebSocket) -> None:
        while (message := await socket.receive()) is not None:
            heard.append(message)
        heard.append(None)

    async with sockets(note) as server:
        for words, code in GARBAGE:
            async with await server.connect() as stream:
                await stream.send(handshake() + words + frame(b"more"))
                head, rest = await head_of(stream)
                assert head.startswith(b"HTTP/1.1 101 ")
                assert code_of(await everything(stream, rest)) == code, words
            await until(lambda: bool(heard))
            assert heard == [None], words
            heard.clear()
        async with await server.connect() as other:
            await other.send(GOOD)
            assert b"200 OK" in (await head_of(other))[0]


@pytest.mark.slow
async def test_frames_before_close_are_received() -> None:
    heard: list[str | bytes | None] = []
    go = anyio.Event()

    async def late(socket: OpenWebSocket) -> None:
        await go.wait()
        heard.extend([await socket.receive() for _ in range(4)])
        await socket.send("into the void")
        await socket.close(1000)

    async with sockets(late) as server:
        async with await server.connect() as stream:
            await stream.send(handshake() + frame(b"one") + frame(b"\x02", BYTES) + frame(b"\x03\xe8", CLOSE))
            assert code_of(await everything(stream)) == 1000
        go.set()
        await until(lambda: len(heard) == 4)
        assert heard == ["one", b"\x02", None, None]


@pytest.mark.slow
@pytest.mark.parametrize("answers", [True, False])
async def test_heartbeat_detects_lost_clients(*, answers: bool) -> None:
    ended = anyio.Event()

    async def note(socket: OpenWebSocket) -> None:
        await listen(socket)
        ended.set()

    async with sockets(note, heartbeat=1.0) as server, await server.connect() as stream:
        await stream.send(handshake())
        _, read = await head_of(stream)
        beats = 0
        with anyio.fail_after(20):
            while answers and beats < 3:
                beats += read.count(bytes((0x80 | PING, 0)))
                await stream.send(frame(b"", 10))
                read = await stream.receive()
        assert not ended.is_set()
        assert code_of(await everything(stream, read)) == 1011
        with anyio.fail_after(20):
            await ended.wait()


@pytest.mark.slow
async def test_a_client_that_does_not_read_is_hung_up_on() -> None:
    said: list[int] = []

    async def talk(socket: OpenWebSocket) -> None:
        while not said or said[-1] < 64:
            said.append(len(said))
            await socket.send("x" * MIB)
        assert await socket.receive() is None
        said.append(-1)

    async with sockets(talk) as server, await server.connect() as stream:
        await stream.send(handshake())
        await until(lambda: -1 in said)
        assert len(await everything(stream)) < 64 * MIB


@pytest.mark.slow
async def test_ping_flood_without_reading_is_bounded() -> None:
    async with sockets(listen) as server, await server.connect() as stream:
        await stream.send(handshake())
        pings = frame(b"x" * 125, PING) * 4000

        async def flood() -> None:
            while True:
                await stream.send(pings)

        with anyio.fail_after(60), pytest.raises(anyio.BrokenResourceError):
            await flood()


@pytest.mark.slow
async def test_unconsumed_messages_pause_reading() -> None:
    seen: list[OpenWebSocket] = []
    go = anyio.Event()
    count = 0

    async def late(socket: OpenWebSocket) -> None:
        nonlocal count
        seen.append(socket)
        await go.wait()
        while await socket.receive() is not None:
            count += 1

    def waiting() -> int:
        return max((each.waiting for each in seen if isinstance(each, websocket.WebSocket)), default=0)

    async with (
        sockets(late) as server,
        connect(server.socket_url) as client,
        anyio.create_task_group() as tasks,
    ):

        async def send() -> None:
            for _ in range(64):
                await client.send("x" * (MIB // 2))
            await client.close()

        tasks.start_soon(send)
        await until(lambda: waiting() > websocket.MAX_RECEIVE_QUEUE_BYTES)
        assert waiting() < 2 * MIB
        go.set()
    await until(lambda: count == 64)


async def fail(socket: OpenWebSocket) -> None:
    await socket.receive()
    raise ValueError("on purpose")


async def leave(socket: OpenWebSocket) -> None:
    await socket.receive()


async def refuse(socket: OpenWebSocket) -> None:
    await socket.receive()
    await socket.close(1008, "ä" * 100)
    await socket.close(1000)
    assert await socket.receive() is None


@pytest.mark.slow
@pytest.mark.parametrize("use, code, reason", [(leave, 1000, ""), (fail, 1011, ""), (refuse, 1008, "ä" * 61)])
async def test_how_a_socket_ends(
    use: Callable[[OpenWebSocket], Awaitable[None]], code: int, reason: str
) -> None:
    async with sockets(use) as server, connect(server.socket_url) as client:
        await client.send("go")
        with pytest.raises(ConnectionClosed) as closed:
            await client.recv()
        assert closed.value.rcvd is not None
        assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (code, reason)


@pytest.mark.slow
@pytest.mark.parametrize("answers", [True, False])
async def test_close_handshake_has_a_timeout(monkeypatch: pytest.MonkeyPatch, *, answers: bool) -> None:
    if not answers:
        monkeypatch.setattr(websocket, "CLOSE_SECONDS", 0.05)
    async with sockets(leave) as server, await server.connect() as stream:
        await stream.send(handshake() + frame(b"go"))
        _, read = await head_of(stream)
        while len(read) < 4:
            read += await stream.receive()
        if answers:
            await stream.send(frame(b"\x03\xe8", CLOSE))
        assert code_of(await everything(stream, read)) == 1000


@pytest.mark.slow
async def test_shutdown_sends_close_without_waiting() -> None:
    async with (
        sockets(listen) as server,
        connect(server.socket_url) as client,
        await server.connect() as deaf,
    ):
        await deaf.send(handshake())
        await head_of(deaf)
        await server.stop()
        with pytest.raises(ConnectionClosed) as closed:
            await client.recv()
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1001
        assert code_of(await everything(deaf)) == 1001
