"""One connection in memory: what becomes of a request, whichever way its parts come and go."""

import asyncio
import logging
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import anyio
import pytest
import uvicorn
from uvicorn.server import ServerState

from tests.waiting import until
from toolcrib.http import HttpResponse, Receive, Request, Scope, Send, json_response, send_response
from toolcrib.http.protocol import BoundedProtocol
from toolcrib.http.request_cycle import MAX_JOINED_BYTES

pytestmark = pytest.mark.anyio

HEAD = b"POST /there?x=%%31 HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n%b\r\n"
ASKED = HEAD % (4, b"") + b"body"


class Line(asyncio.Transport):
    """The server's end of a connection."""

    def __init__(self) -> None:
        super().__init__()
        self.said, self.closed, self.paused = b"", False, False

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.said += bytes(data)

    def pause_reading(self) -> None:
        self.paused = True

    def resume_reading(self) -> None:
        self.paused = False

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed


class App:
    """Answers with what it was sent; `behave` does otherwise."""

    def __init__(self, behave: Callable[[Request], Any] | None = None) -> None:
        self._behave = behave
        self.bodies: list[bytes] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive, send)
        if self._behave is not None:
            await self._behave(request)
            return
        self.bodies.append(await request.body())
        await send_response(request, json_response([request.path, request.query_string.decode()]))

    def malformed(self, message: str) -> bytes:
        return message.encode()

    async def interrupted(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": 504, "headers": []})
        await send({"type": "http.response.body", "body": b"interrupted"})


def connected(app: App, *, keep_alive: float = 60) -> tuple[BoundedProtocol, Line, ServerState]:
    config = uvicorn.Config(app, ws="none", lifespan="off", log_config=None, proxy_headers=False)
    config.load()
    state, line = ServerState(), Line()
    protocol = BoundedProtocol(config, state, {}, asyncio.get_running_loop())
    protocol.timeout_keep_alive = keep_alive  # pyright: ignore[reportAttributeAccessIssue] - in seconds
    protocol.connection_made(line)
    return protocol, line, state


async def settle(state: ServerState) -> None:
    await until(lambda: not state.tasks)


@pytest.mark.parametrize("cuts", [(), (5,), (20, 40), (len(ASKED) - 2,), tuple(range(1, len(ASKED)))])
async def test_a_request_in_any_pieces(cuts: tuple[int, ...]) -> None:
    app = App()
    protocol, line, state = connected(app)
    edges = (0, *cuts, len(ASKED))
    for begin, end in pairwise(edges):
        protocol.data_received(ASKED[begin:end])
        await anyio.wait_all_tasks_blocked()
    await settle(state)
    assert app.bodies == [b"body"]
    assert line.said.startswith(b"HTTP/1.1 200 OK\r\n")
    assert line.said.endswith(b'["/there","x=%31"]')
    protocol.connection_lost(None)


@pytest.mark.parametrize("size, writes", [(MAX_JOINED_BYTES, 1), (MAX_JOINED_BYTES + 1, 2)])
async def test_large_body_is_not_copied_behind_its_head(size: int, writes: int) -> None:
    body, written = b"x" * size, list[bytes]()

    async def answer(request: Request) -> None:
        await send_response(request, HttpResponse(200, body))

    protocol, line, state = connected(App(answer))
    line.write = written.append  # pyright: ignore[reportAttributeAccessIssue] - in place of the method
    protocol.data_received(ASKED)
    await settle(state)
    assert len(written) == writes
    assert (written[-1] is body) is (writes == 2)
    head, _, rest = b"".join(written).partition(b"\r\n\r\n")
    assert (b"content-length: %d" % size in head, rest) == (True, body)
    protocol.connection_lost(None)


async def test_expect_100_continue_is_answered() -> None:
    app = App()
    protocol, line, state = connected(app)
    protocol.data_received(HEAD % (4, b"Expect: 100-continue\r\n"))
    await until(lambda: line.said == b"HTTP/1.1 100 Continue\r\n\r\n")
    protocol.data_received(b"body")
    await settle(state)
    assert app.bodies == [b"body"]
    protocol.connection_lost(None)


async def test_immediate_disconnect_leaves_no_task() -> None:
    app = App()
    protocol, line, state = connected(app)
    protocol.data_received(ASKED)
    protocol.connection_lost(None)
    await settle(state)
    assert app.bodies == []
    assert line.said == b""


async def test_more_than_is_read_is_not_taken_in() -> None:
    bodies: list[bytes] = []
    reading = anyio.Event()

    async def slow(request: Request) -> None:
        await reading.wait()
        bodies.append(await request.body(1 << 20))
        await send_response(request, json_response("read"))

    protocol, line, state = connected(App(slow))
    protocol.data_received(HEAD % (200_000, b""))
    for _ in range(2):
        protocol.data_received(b"x" * 50_000)
    assert line.paused
    reading.set()
    await until(lambda: not line.paused)
    protocol.data_received(b"x" * 100_000)
    await settle(state)
    assert [len(each) for each in bodies] == [200_000]
    protocol.connection_lost(None)


@pytest.mark.parametrize("whole", [True, False])
async def test_a_body_that_is_too_large_is_refused(whole: bool) -> None:
    async def small(request: Request) -> None:
        with pytest.raises(Exception, match="over the limit"):
            await request.body(3)
        await send_response(request, json_response("refused"))

    protocol, line, state = connected(App(small))
    protocol.data_received(ASKED if whole else ASKED[:-1])
    await settle(state)
    assert line.said.endswith(b'"refused"')
    protocol.connection_lost(None)


async def test_idle_connection_is_closed() -> None:
    protocol, line, state = connected(App(), keep_alive=0.0)
    # Half a request is no rest: it has a time limit of its own.
    protocol.data_received(ASKED + ASKED[:10])
    await settle(state)
    protocol._idle_timed_out()  # pyright: ignore[reportPrivateUsage]
    assert not line.closed
    protocol.data_received(ASKED[10:])
    await settle(state)
    await until(lambda: line.closed)
    protocol.connection_lost(None)


async def test_an_application_that_fails_or_forgets_to_answer(caplog: pytest.LogCaptureFixture) -> None:
    async def nothing(request: Request) -> None:
        del request

    async def failing(request: Request) -> None:
        raise LookupError("unforeseen")

    async def halfway(request: Request) -> None:
        await request.send({"type": "http.response.start", "status": 200, "headers": []})

    for behave, told in ((nothing, b"500 "), (failing, b"500 "), (halfway, b"200 ")):
        with caplog.at_level(logging.ERROR):
            protocol, line, state = connected(App(behave))
            protocol.data_received(ASKED)
            await settle(state)
        assert line.said.startswith(b"HTTP/1.1 " + told)
        assert line.closed
        protocol.connection_lost(None)
    assert len(caplog.records) == 3


async def test_end_of_request_is_signalled() -> None:
    heard: list[str] = []

    async def listen(request: Request) -> None:
        await request.body()
        heard.append((await request.receive())["type"])

    protocol, _, state = connected(App(listen))
    protocol.data_received(ASKED)
    await anyio.wait_all_tasks_blocked()
    assert heard == []
    protocol.cycle.scope["toolcrib.outlives"] = True  # pyright: ignore[reportOptionalMemberAccess]
    protocol.connection_lost(None)
    await settle(state)
    assert heard == ["http.disconnect"]
