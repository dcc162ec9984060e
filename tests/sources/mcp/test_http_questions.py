"""Over HTTP a question comes on the stream of its call, or on the one a server speaks by unasked."""

from typing import Any

import anyio
import pytest
from aiohttp import web

from tests.sources.mcp.recording_channel import ALL, FORM, RecordingChannel, never
from tests.sources.mcp.upstream import Told, answer, dialled, event, serving, stream
from tests.waiting import until
from toolcrib.model import JsonObject
from toolcrib.sources.mcp.connection import Connection, ConnectionLost, NotSent, RequestCallbacks

pytestmark = pytest.mark.anyio

ELICIT = "elicitation/create"
SAID = {"action": "accept", "content": {"name": "ann"}}


def question(name: Any, method: str = ELICIT, **params: Any) -> bytes:
    return event({"jsonrpc": "2.0", "id": name, "method": method, "params": params or FORM})


class Web:
    """A legacy server: calls are answered when the test says so, answers to its questions are kept."""

    def __init__(self, *, status: int = 202) -> None:
        self.answers: list[JsonObject] = []
        self.calls: dict[int, web.StreamResponse] = {}
        self.unasked: web.StreamResponse | None = None
        self._status = status
        self._over = anyio.Event()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        if request.method == "GET":
            self.unasked = await stream(request, b": hello\n\n")
            await self._over.wait()
            return self.unasked
        body = await request.json()
        if "method" not in body:
            self.answers.append(body)
            return web.Response(status=self._status)
        if "id" not in body:
            return web.Response(status=202)
        if body["method"] == "plain":
            await self._over.wait()
            return answer(body, {"plain": True})
        response = self.calls[body["id"]] = await stream(request, b": begun\n\n")
        await self._over.wait()
        return response

    async def finish(self, call: int) -> None:
        await self.calls[call].write(event({"jsonrpc": "2.0", "id": call, "result": {}}))

    def end(self) -> None:
        self._over.set()


async def ask(connection: Connection, channel: RecordingChannel, method: str = "x") -> None:
    await connection.request(method, b"{}", callbacks=RequestCallbacks(None, channel))


def legacy(connection: Connection, *, relay: bool = True) -> None:
    connection.use_revision("legacy", "2025-11-25")
    if relay:
        connection.relay(ALL)


@pytest.mark.requirement("D14")
async def test_a_question_on_a_calls_own_stream_is_that_calls() -> None:
    server, ann, ben = Web(), RecordingChannel("ann"), RecordingChannel("ben")
    async with serving(server.handle) as url, dialled(url) as connection, anyio.create_task_group() as tasks:
        legacy(connection)
        tasks.start_soon(ask, connection, ann)
        await until(lambda: 1 in server.calls)
        tasks.start_soon(ask, connection, ben)
        await until(lambda: 2 in server.calls)
        await server.calls[1].write(question("a"))
        await server.calls[1].write(event({"method": "notifications/message", "params": {"data": 1}}))
        await until(lambda: len(server.answers) == 1)
        assert server.answers[0] == {"jsonrpc": "2.0", "id": "a", "result": SAID}
        assert (len(ann.questions), ann.told, ben.questions) == (1, [{"data": 1}], [])
        for call in (1, 2):
            await server.finish(call)
        server.end()


@pytest.mark.requirement("D14")
async def test_a_question_on_the_other_stream_is_the_newest_calls() -> None:
    server, ann = Web(), RecordingChannel("ann")
    async with serving(server.handle) as url, dialled(url) as connection, anyio.create_task_group() as tasks:
        legacy(connection)
        tasks.start_soon(connection.receive)
        # This one's answer is no stream, so there is no other way to ask in it.
        tasks.start_soon(ask, connection, ann, "plain")
        await until(lambda: server.unasked is not None)
        assert server.unasked is not None
        await server.unasked.write(question("a"))
        await server.unasked.write(event({"method": "notifications/message", "params": {"data": 1}}))
        await until(lambda: len(server.answers) == 1)
        await until(lambda: bool(ann.told))
        server.end()
        tasks.cancel_scope.cancel()
    assert server.answers[0]["result"] == SAID


async def test_message_on_get_stream_reaches_running_call() -> None:
    server, told, ann = Web(), Told(), RecordingChannel(capabilities={})
    async with serving(server.handle) as url, dialled(url, told) as connection:
        legacy(connection, relay=False)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(connection.receive)
            await until(lambda: server.unasked is not None)
            assert server.unasked is not None
            async with anyio.create_task_group() as calls:
                calls.start_soon(ask, connection, ann)
                await until(lambda: 1 in server.calls)
                await server.unasked.write(event({"method": "notifications/message", "params": {"data": 1}}))
                await server.unasked.write(event({"method": "notifications/odd"}))
                await until(lambda: bool(told.heard))
                await server.finish(1)
            tasks.cancel_scope.cancel()
        server.end()
    assert ann.told == [{"data": 1}]
    assert [method for method, _ in told.heard] == ["notifications/odd"]


@pytest.mark.requirement("D14")
async def test_question_cancelled_over_http_ends() -> None:
    server, ann = Web(), RecordingChannel(answer=never)
    async with serving(server.handle) as url, dialled(url) as connection, anyio.create_task_group() as tasks:
        legacy(connection)
        tasks.start_soon(ask, connection, ann)
        await until(lambda: 1 in server.calls)
        await server.calls[1].write(question("a"))
        await until(lambda: bool(ann.questions))
        await server.calls[1].write(
            event({"method": "notifications/cancelled", "params": {"requestId": "a"}})
        )
        await until(lambda: ann.given_up == 1)
        await server.calls[1].write(question("b"))
        await until(lambda: len(ann.questions) == 2)
        await server.finish(1)
        server.end()
    assert ann.given_up == 2
    assert not [each for each in server.answers if each["id"] == "a"]


@pytest.mark.parametrize("status", [400, 404, 500])
async def test_an_answer_the_server_does_not_want_is_its_own_affair(status: int) -> None:
    server, ann = Web(status=status), RecordingChannel()
    async with serving(server.handle) as url, dialled(url) as connection, anyio.create_task_group() as tasks:
        legacy(connection)
        tasks.start_soon(ask, connection, ann)
        await until(lambda: 1 in server.calls)
        await server.calls[1].write(question("a"))
        await until(lambda: bool(server.answers))
        await server.finish(1)
        server.end()


async def test_an_answer_that_is_never_taken_does_not_hold_up_the_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("toolcrib.sources.mcp.server_messages.ANSWER_GRACE_SECONDS", 0.01)
    server, ann, posted = Web(), RecordingChannel(), anyio.Event()

    async def handle(request: web.Request) -> web.StreamResponse:
        if "method" not in await request.json():
            posted.set()
            await anyio.sleep_forever()
        return await server.handle(request)

    async with serving(handle) as url, dialled(url) as connection, anyio.create_task_group() as tasks:
        legacy(connection)
        tasks.start_soon(ask, connection, ann)
        await until(lambda: 1 in server.calls)
        await server.calls[1].write(question("a"))
        await posted.wait()
        await server.finish(1)
        server.end()


async def test_lost_connection_during_question_ends_the_call() -> None:
    server, ann = Web(), RecordingChannel(answer=never)
    ended: list[Exception] = []

    async def call(connection: Connection) -> None:
        try:
            await ask(connection, ann)
        except (ConnectionLost, NotSent) as fault:
            ended.append(fault)

    async with serving(server.handle) as url, anyio.create_task_group() as tasks:
        async with dialled(url) as connection:
            legacy(connection)
            tasks.start_soon(call, connection)
            await until(lambda: 1 in server.calls)
            await server.calls[1].write(question("a", "roots/list"))
            await until(lambda: bool(ann.questions))
        await until(lambda: bool(ended))
        server.end()
    assert isinstance(ended[0], ConnectionLost)
    assert ann.given_up == 1
