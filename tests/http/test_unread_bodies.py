"""Buffered bodies: the excess is dropped once their principals are known."""

import anyio
import pytest

from tests.gateways import ADMIN
from tests.http.test_connection_limits import CALL, LimitedGateway, head, limited_gateway
from tests.http.test_protocol import refusal
from tests.http.test_request_cycle import App, connected, settle
from toolcrib.errors import Refused
from toolcrib.http import Request, connection_limits, json_response, send_response
from toolcrib.http.connection_limits import ConnectionLimits

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("I5")]

SIZE = 20_000
"""More than waits uncounted, and little enough to come in one read."""
HEAD = b"POST /there HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"


async def call(gateway: LimitedGateway, key: str) -> bytes:
    """Make a call on a connection of its own, all in one piece; return the answer."""
    body = CALL.ljust(SIZE)
    more = {"Content-Length": str(SIZE), "Connection": "close"}
    stream = await gateway.connect()
    await stream.send(head("POST", "/api/tools/execute", key, **more) + b"\r\n" + body)
    with anyio.fail_after(10):
        return await stream.receive()


@pytest.mark.slow
async def test_operator_is_served_though_nothing_may_wait() -> None:
    async with limited_gateway("limits: {memory_mb: 0}\n") as gateway:
        shared, key = gateway.crib.server.intake, await gateway.crib.key("k")
        shared.memory.is_high = True
        assert b'"total":3' in await call(gateway, ADMIN)
        status, error = refusal(await call(gateway, key))
        assert (status, error["code"]) == (503, "OVERLOADED")
        shared.memory.is_high = False
        shared.waiting_blocks.total = 0
        assert b'"total":3' in await call(gateway, ADMIN)


class PausedConnection:
    """One connection in memory, where nothing may wait, and an application that waits before it reads."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.read, self.heard = anyio.Event(), list[str]()
        self.intake = ConnectionLimits()
        self.intake.waiting_blocks.total = 0
        app = App(self._behave)
        monkeypatch.setattr(app, "intake", self.intake, raising=False)
        self.protocol, self.line, self.state = connected(app)

    async def _behave(self, request: Request) -> None:
        if not self.read.is_set():
            await self.read.wait()
        try:
            self.heard.append(str(len(await request.body())))
        except Refused as refused:
            self.heard.append(refused.problem.code)
        await send_response(request, json_response("done"))

    @property
    def body(self) -> int:
        assert self.protocol.cycle is not None
        return len(self.protocol.cycle.body)


async def test_body_of_a_stranger_is_kept_for_one_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    held = PausedConnection(monkeypatch)
    held.protocol.data_received(HEAD % (2 * SIZE) + b"x" * SIZE)
    assert (held.body, held.intake.undecided, held.line.paused) == (SIZE, 1, True)
    await anyio.wait_all_tasks_blocked()
    assert (held.body, held.intake.undecided, held.line.paused) == (0, 0, False)
    held.protocol.data_received(b"x" * SIZE)
    held.read.set()
    await settle(held.state)
    assert held.heard == ["OVERLOADED"]
    held.protocol.connection_lost(None)


async def test_whole_body_that_is_dropped_is_no_empty_one(monkeypatch: pytest.MonkeyPatch) -> None:
    held = PausedConnection(monkeypatch)
    held.protocol.data_received(HEAD % SIZE + b"x" * SIZE)
    await anyio.wait_all_tasks_blocked()
    held.read.set()
    await settle(held.state)
    assert held.heard == ["OVERLOADED"]
    held.protocol.connection_lost(None)


async def test_whole_body_that_is_read_at_once_does_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    held = PausedConnection(monkeypatch)
    held.read.set()
    held.protocol.data_received(HEAD % SIZE + b"x" * SIZE)
    await settle(held.state)
    assert held.heard == [str(SIZE)]
    assert held.intake.undecided == 0
    held.protocol.connection_lost(None)


async def test_waiting_bodies_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_limits, "MAX_UNDECIDED", 0)
    held = PausedConnection(monkeypatch)
    held.protocol.data_received(HEAD % SIZE + b"x" * SIZE)
    assert (held.body, held.intake.undecided) == (0, 0)
    held.read.set()
    await settle(held.state)
    assert held.heard == ["OVERLOADED"]
    held.protocol.connection_lost(None)


async def test_body_behind_another_request_is_dropped_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    held = PausedConnection(monkeypatch)
    one = HEAD % SIZE + b"x" * SIZE
    held.protocol.data_received(one + one)
    assert (held.body, held.intake.undecided) == (0, 1)
    held.read.set()
    await settle(held.state)
    assert held.heard == [str(SIZE), "OVERLOADED"]
    held.protocol.connection_lost(None)


async def test_client_that_leaves_before_the_decision_holds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    held = PausedConnection(monkeypatch)
    held.protocol.data_received(HEAD % SIZE + b"x" * SIZE)
    held.protocol.connection_lost(None)
    held.intake.waiting_blocks.total = 8
    await settle(held.state)
    await anyio.wait_all_tasks_blocked()
    assert (held.intake.undecided, held.intake.waiting_blocks.used) == (0, 0)


async def test_unread_body_ends_with_the_answer() -> None:
    async def refuse(request: Request) -> None:
        await send_response(request, json_response("no", 401))

    protocol, line, state = connected(App(refuse))
    protocol.data_received(HEAD % (2 * SIZE) + b"x" * SIZE)
    await settle(state)
    assert protocol.cycle is not None
    assert (len(protocol.cycle.body), line.paused) == (0, False)
    protocol.connection_lost(None)
