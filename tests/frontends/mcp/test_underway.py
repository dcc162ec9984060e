"""What is under way with a client: requests it takes back, questions it answers, answers that take long."""

import json
from functools import partial
from typing import Any

import anyio
import pytest

from tests.texts import matches
from tests.waiting import until
from toolcrib.frontends.mcp import client_requests as module
from toolcrib.frontends.mcp.client_requests import ClientRequests, RunningRequests
from toolcrib.frontends.mcp.request import JsonRpcReply
from toolcrib.frontends.mcp.stdio import LineReader
from toolcrib.frontends.mcp.streamable_http import HttpResponseChannel, OpenResponses
from toolcrib.http import Request
from toolcrib.mcp.lines import OverlongLine
from toolcrib.model import Unanswered

pytestmark = pytest.mark.anyio


class Sent:
    """A wire that keeps what is sent."""

    def __init__(self, *, streams: bool = True) -> None:
        self.streams = streams
        self.messages: list[bytes] = []

    async def send(self, message: bytes) -> None:
        self.messages.append(message)


async def answer() -> JsonRpcReply:
    return JsonRpcReply(b"answer")


async def never() -> JsonRpcReply:
    await anyio.sleep_forever()
    raise AssertionError


async def test_a_request_that_was_taken_back_has_no_answer() -> None:
    running, found = RunningRequests(), list[JsonRpcReply | None]()

    async def ask(id: int, work: Any) -> None:
        found.append(await running.run(id, work))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask, 1, never())
        await until(lambda: bool(running))
        running.cancel("1")
        running.cancel(True)
        running.cancel([1])
        await anyio.wait_all_tasks_blocked()
        assert not found
        running.cancel(1)
        running.cancel(1)
    assert found == [None]
    assert not running
    assert await running.run(1, answer()) == JsonRpcReply(b"answer")


async def test_externally_cancelled_request_is_not_answered() -> None:
    running = RunningRequests()
    async with anyio.create_task_group() as tasks:

        async def ask() -> None:
            await running.run(1, never())
            pytest.fail("it went on after it was cancelled")

        tasks.start_soon(ask)
        await until(lambda: bool(running))
        tasks.cancel_scope.cancel()
    assert not running


async def test_a_question_is_answered_once_by_its_own_name() -> None:
    questions, wire, found = ClientRequests(), Sent(), list[Any]()

    async def ask(method: str) -> None:
        try:
            found.append(await questions.ask(method, {}, wire))
        except Unanswered as refusal:
            found.append((refusal.code, str(refusal)))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask, "roots/list")
        tasks.start_soon(ask, "sampling/createMessage")
        await until(lambda: len(wire.messages) == 2)
        assert b'"id":"crib-2"' in wire.messages[1]
        assert not questions.take({"id": "crib-3", "result": {}})
        assert not questions.take({"id": 1, "result": {}})
        assert questions.take({"id": "crib-2", "error": {"code": -1, "message": "the user said no"}})
        assert questions.take({"id": "crib-1", "result": {"roots": []}})
        assert not questions.take({"id": "crib-1", "result": {"roots": ["again"]}})
    assert sorted(found, key=str) == [(-1, "the user said no"), {"roots": []}]
    assert not questions


@pytest.mark.parametrize("said", [{"result": 5}, {"error": "no"}, {"error": {"code": "x"}}])
async def test_an_answer_that_is_none_is_a_refusal(said: dict[str, Any]) -> None:
    questions, wire = ClientRequests(), Sent()
    async with anyio.create_task_group() as tasks:

        async def ask() -> None:
            with pytest.raises(Unanswered) as raised:
                await questions.ask("roots/list", {}, wire)
            assert matches("mcp", "an answer that is none is a refusal", str(raised.value))

        tasks.start_soon(ask)
        await until(lambda: bool(wire.messages))
        questions.take({"id": "crib-1", **said})


async def test_wait_for_answer_has_a_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    questions = ClientRequests()
    with pytest.raises(Unanswered) as raised:
        await questions.ask("roots/list", {}, Sent(streams=False))
    assert matches("mcp", "wait for answer has a timeout", str(raised.value))
    monkeypatch.setattr(module, "ANSWER_TIMEOUT_SECONDS", 0.01)
    wire = Sent()
    with pytest.raises(Unanswered) as raised:
        await questions.ask("roots/list", {}, wire)
    assert matches("mcp", "wait for answer has a timeout 2", str(raised.value))
    assert not questions
    assert taken_back(wire) == "crib-1"


async def test_disconnected_client_is_not_asked() -> None:
    questions, wire = ClientRequests(), Sent()

    async def ask() -> None:
        with pytest.raises(Unanswered) as raised:
            await questions.ask("roots/list", {}, wire)
        assert matches("mcp", "disconnected client is not asked", str(raised.value))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        await until(lambda: bool(wire.messages))
        questions.close("we are stopping")
        questions.close("we are stopping")
    await ask()
    assert not questions


def taken_back(wire: Sent) -> str:
    """The question that the client need not answer any more."""
    message = json.loads(wire.messages[-1])
    assert message["method"] == "notifications/cancelled"
    return message["params"]["requestId"]


@pytest.mark.parametrize("whose", ["the server's", "the client's"])
async def test_withdrawn_question_is_cancelled_at_the_client(whose: str) -> None:
    """Withdrawn by the server that asked, or along with its request."""
    questions, running, wire = ClientRequests(), RunningRequests(), Sent()

    async def ask() -> JsonRpcReply:
        await questions.ask("elicitation/create", {}, wire)
        raise AssertionError

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(running.run, 1, ask())
        await until(lambda: bool(wire.messages))
        if whose == "the server's":
            tasks.cancel_scope.cancel()
        else:
            running.cancel(1)
    assert taken_back(wire) == "crib-1"
    assert not questions


async def test_cancellation_to_disconnected_client_is_skipped() -> None:
    class Gone(Sent):
        async def send(self, message: bytes) -> None:
            await super().send(message)
            if len(self.messages) > 1:
                raise BrokenPipeError

    wire = Gone()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(partial(ClientRequests().ask, "elicitation/create", {}, wire))
        await until(lambda: bool(wire.messages))
        tasks.cancel_scope.cancel()
    assert len(wire.messages) == 2


def a_request(said: list[dict[str, Any]]) -> Request:
    async def send(part: Any) -> None:
        said.append(dict(part))

    async def receive() -> dict[str, Any]:
        raise AssertionError

    scope: dict[str, Any] = {
        "type": "http",
        "method": "POST",
        "path": "/mcp",
        "query_string": b"",
        "headers": [],
    }
    return Request(scope, receive, send)


async def test_an_answer_that_takes_long_keeps_proxies_patient() -> None:
    said: list[dict[str, Any]] = []
    silent: list[dict[str, Any]] = []
    wires, wire, mute = (
        OpenResponses(0.05),
        HttpResponseChannel(a_request(said)),
        HttpResponseChannel(a_request(silent), streams=False),
    )
    wires.add(wire)
    wires.add(mute)
    await until(lambda: len(said) >= 3)
    assert said[0]["type"] == "http.response.start"
    assert {part["body"] for part in said[1:]} == {b": still running\n\n"}
    wires.discard(wire)
    wires.discard(mute)
    assert await wire.finish(b"{}", 400) is None
    assert said[-2]["body"] == b"event: message\ndata: {}\n\n"
    assert said[-1] == {"type": "http.response.body", "body": b""}
    await wire.comment()
    assert said[-1] == {"type": "http.response.body", "body": b""}
    await mute.send(b"dropped")
    found = await mute.finish(b"{}", 400)
    assert found is not None
    assert (found.status, found.body, silent) == (400, b"{}", [])


class Pieces:
    def __init__(self, *pieces: bytes) -> None:
        self._pieces = list(pieces)

    async def read(self, most: int, /) -> bytes:
        del most
        return self._pieces.pop(0) if self._pieces else b""


async def test_lines_come_whole_and_long_ones_are_skipped() -> None:
    source = Pieces(b"on", b"e\n\n  \ntwo\n" + b"x" * 11, b"x\nthree\n", b"0123456789", b"a\r\n", b"last")
    found = [line if isinstance(line, bytes) else None async for line in LineReader(source, limit=10)]
    assert found == [b"one", b"two", None, b"three", None, b"last"]


async def test_an_endless_line_takes_no_memory() -> None:
    source = Pieces(*[b"x" * 100] * 100, b"\nshort")
    lines = LineReader(source, limit=150)
    assert [isinstance(line, OverlongLine) for line in [line async for line in lines]] == [True, False]
