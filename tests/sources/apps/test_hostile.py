"""Apps that misbehave in every way: each gives an error of its own kind, and harms nobody else's calls."""

import signal
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import anyio
import pytest
from aiohttp import web

from tests.egress.peers import Peer, peer
from tests.sources.apps.registered import (
    MUSIC,
    TODO,
    Answer,
    app_at,
    call_to,
    record,
    saying,
    sourced,
    tool_in,
)
from tests.texts import matches
from toolcrib.apps.signature import KEY_HEADER
from toolcrib.errors import ToolcribError
from toolcrib.interfaces.apps import AppRecord
from toolcrib.model import Call, Problem, Result, Tool
from toolcrib.sources.apps import AppSource
from toolcrib.steps.attempt import Attempt

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

PLAYED = {"success": True, "content": "played"}
MOST = 8 << 20

DOOMED = """
import os, signal, socket
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
connection, _ = listener.accept()
listener.close()
connection.recv(1)
os.kill(os.getpid(), signal.SIGKILL)
"""


async def answered(source: AppSource, call: Call, within: float = 30.0) -> Result:
    """Make one try, as the gateway does."""
    stage = Attempt(lambda keeper: within if keeper == source.id else None).fit(call.tool)
    with anyio.fail_after(60):
        return await stage(call, source.call)


async def problem_of(source: AppSource, app: AppRecord, within: float = 30.0, **changes: Any) -> Problem:
    tool = tool_with(app, **changes)
    with pytest.raises(ToolcribError) as error:
        await answered(source, call_to(app, tool=tool), within)
    return error.value.problem


def tool_with(app: AppRecord, **changes: Any) -> Tool:
    """The app's tool, as the operator may have overridden it."""
    return replace(tool_in(app), **changes)


@asynccontextmanager
async def beside(answer: Answer) -> AsyncGenerator[tuple[AppSource, AppRecord]]:
    """An app that answers so, and another one that plays, which must still do so afterwards."""
    async with app_at(answer) as url, app_at(saying(PLAYED)) as other:
        bad, good = record(TODO, url), record(MUSIC, other)
        async with sourced(bad, good, most_bytes=MOST) as source:
            yield source, bad
            assert (await answered(source, call_to(good))).data == "played"


def plain(body: bytes, *, status: int = 200, kind: str = "application/json", **headers: str) -> Answer:
    async def answer(_request: web.Request) -> web.StreamResponse:
        return web.Response(body=body, status=status, content_type=kind, headers=headers)

    return answer


@pytest.mark.requirement("D5")
@pytest.mark.parametrize(
    "answer, code, words, retryable",
    [
        pytest.param(
            plain(b"<!doctype html><html><body>Hi</body></html>", kind="text/html"),
            "CONTRACT_VIOLATION",
            "HTML",
            False,
            id="html",
        ),
        pytest.param(plain(b"\x00\x01garbage"), "CONTRACT_VIOLATION", "not JSON", False, id="garbage"),
        pytest.param(plain(b'{"ok": true}'), "CONTRACT_VIOLATION", "neither", False, id="another shape"),
        pytest.param(plain(b""), "CONTRACT_VIOLATION", "empty", False, id="nothing"),
        pytest.param(plain(b"x" * (20 << 20)), "RESULT_TOO_LARGE", "8,388,608", False, id="20 MB"),
        pytest.param(
            plain(b"", status=302, Location="http://169.254.169.254/"),
            "HTTP_ERROR",
            "redirects are not followed",
            False,
            id="redirect",
        ),
        pytest.param(
            saying({"success": False, "error": {"code": "TOOL_NOT_FOUND", "message": "No tool add."}}, 404),
            "HTTP_ERROR",
            "No tool add. (HTTP 404)",
            False,
            id="404",
        ),
        pytest.param(
            saying({"status": "error", "message": "kaput"}, 500),
            "HTTP_ERROR",
            "kaput (HTTP 500)",
            True,
            id="500 as the older SDK says it",
        ),
        pytest.param(
            plain(b"<html><pre>Error<br> at /srv/app.js:7</pre></html>", status=500, kind="text/html"),
            "HTTP_ERROR",
            "the app did not answer properly (HTTP 500)",
            True,
            id="500 with a stack trace",
        ),
    ],
)
async def test_an_answer_that_is_none_is_an_error_of_its_kind(
    answer: Answer, code: str, words: str, retryable: bool
) -> None:
    async with beside(answer) as (source, app):
        problem = await problem_of(source, app)
    assert (problem.code, problem.retryable) == (code, retryable)
    assert words in problem.message
    assert "/srv/app.js" not in problem.message


@pytest.mark.requirement("D5")
@pytest.mark.parametrize("dripping", [True, False], ids=["slow drip", "silence"])
async def test_an_app_that_does_not_answer_in_time(dripping: bool) -> None:
    left = anyio.Event()

    async def answer(request: web.Request) -> web.StreamResponse:
        try:
            response = web.StreamResponse(headers={"Content-Length": "1000000"})
            if dripping:
                await response.prepare(request)
            while True:
                if dripping:
                    await response.write(b" ")
                await anyio.sleep(0.01)
        finally:
            left.set()

    async with beside(answer) as (source, app):
        unknown = await problem_of(source, app, 0.2)
        safe = await problem_of(source, app, 0.2, category="query")
        with anyio.fail_after(10):
            await left.wait()
    assert (unknown.code, unknown.retryable) == ("OUTCOME_UNKNOWN", False)
    assert (safe.code, safe.retryable) == ("TIMEOUT", True)


async def close(peer: Peer) -> None:
    await peer.request()


async def close_halfway(peer: Peer) -> None:
    await peer.request()
    await peer.say(b'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"success"')


async def babble(peer: Peer) -> None:
    await peer.request()
    await peer.say(b"220 mail.example ESMTP\r\n")


@pytest.mark.requirement("D5")
@pytest.mark.parametrize("behave", [close, close_halfway, babble])
async def test_aborted_app_answer_has_unknown_outcome(
    behave: Callable[[Peer], Awaitable[None]],
) -> None:
    async with peer(behave) as url:
        app = record(url=str(url.origin()))
        async with sourced(app) as source:
            unknown = await problem_of(source, app)
            safe = (
                await problem_of(source, app, category="query"),
                await problem_of(source, app, idempotent=True),
            )
    assert (unknown.code, unknown.retryable) == ("OUTCOME_UNKNOWN", False)
    assert matches("sources", "aborted app answer has unknown outcome", unknown.message)
    assert [(each.code, each.retryable) for each in safe] == [("NETWORK_ERROR", True)] * 2


@asynccontextmanager
async def doomed() -> AsyncGenerator[str]:
    """A process that dies of its first request; its URL."""
    process = await anyio.open_process([sys.executable, "-c", DOOMED], stdin=None, stderr=None)
    async with process:
        assert process.stdout is not None
        port = int(await process.stdout.receive())
        yield f"http://127.0.0.1:{port}"
        with anyio.fail_after(10):
            assert await process.wait() == -signal.SIGKILL


@pytest.mark.requirement("D5")
async def test_an_app_killed_in_the_middle_of_a_call() -> None:
    async with app_at(saying(PLAYED)) as other, doomed() as url:
        bad, good = record(TODO, url), record(MUSIC, other)
        async with sourced(bad, good) as source:
            lost = await problem_of(source, bad)
            gone = await problem_of(source, bad)
            played = await answered(source, call_to(good))
    assert (lost.code, lost.retryable) == ("OUTCOME_UNKNOWN", False)
    assert (gone.code, gone.retryable) == ("NETWORK_ERROR", True)
    assert matches("sources", "an app killed in the middle of a call", gone.message)
    assert played.data == "played"


async def test_an_app_that_never_answers_keeps_no_other_waiting() -> None:
    asked, answers = anyio.Event(), list[object]()

    async def hang(_request: web.Request) -> web.StreamResponse:
        asked.set()
        await anyio.sleep_forever()
        raise AssertionError

    async with beside(hang) as (source, app), anyio.create_task_group() as tasks:
        for _ in range(50):
            tasks.start_soon(answered, source, call_to(app), 60.0)
        await asked.wait()
        other = source.find(MUSIC)
        assert other is not None
        for _ in range(10):
            answers.append((await answered(source, call_to(other))).data)
        tasks.cancel_scope.cancel()
    assert answers == ["played"] * 10


async def test_call_is_sent_exactly_once() -> None:
    asked = 0

    async def fail(_request: web.Request) -> web.StreamResponse:
        nonlocal asked
        asked += 1
        return web.json_response({}, status=503)

    async with beside(fail) as (source, app):
        assert (await problem_of(source, app, category="query")).code == "HTTP_ERROR"
    assert asked == 1


@pytest.mark.requirement("I5")
@pytest.mark.parametrize("well", [True, False])
async def test_app_echo_of_its_credentials_is_redacted(*, well: bool) -> None:
    async def repeats(request: web.Request) -> web.StreamResponse:
        return web.json_response(
            {"success": well, "content": dict(request.headers), "error": request.headers[KEY_HEADER]}
        )

    async with beside(repeats) as (source, app):
        result = await answered(source, call_to(app))
    assert app.digest is not None
    assert (result.problem is None) is well
    assert "[redacted]" in str(result)
    assert app.digest not in str(result)
