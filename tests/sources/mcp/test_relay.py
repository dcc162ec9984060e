"""Real servers of both eras ask the real caller, over every transport."""

import subprocess
import sys
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.servers.third_party import npm
from tests.sources.mcp.recording_channel import RecordingChannel, never
from tests.sources.mcp.test_real_servers import Running, running
from tests.sources.mcp.upstream import FREE, official
from tests.texts import matches
from tests.waiting import until
from toolcrib.errors import Failed
from toolcrib.mcp.revisions import Era
from toolcrib.model import JsonObject, Progress, Result
from toolcrib.sources.mcp import handshake
from toolcrib.sources.mcp.connection import (
    Connection,
    Dial,
    JsonRpcError,
    McpSettings,
    Notify,
    RequestCallbacks,
)
from toolcrib.sources.mcp.http_transport import HttpTransport
from toolcrib.sources.mcp.source import McpSource
from toolcrib.sources.mcp.sse_transport import SseTransport
from toolcrib.sources.mcp.stdio_transport import StdioTransport

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

ROOT = Path(__file__).parents[3]
FIXTURE = (sys.executable, "-m", "tests.conformance.fixture")
EVERYTHING: JsonObject = {"elicitation": {}, "sampling": {}, "roots": {"listChanged": True}}


class Old:
    """A connection over which nobody speaks the modern way."""

    def __init__(self, inner: Connection) -> None:
        self._inner = inner
        self.relay, self.notify, self.receive = inner.relay, inner.notify, inner.receive
        self.lost, self.details = inner.lost, inner.details

    def use_revision(self, era: Era, revision: str) -> None:
        self._inner.use_revision(era, revision)

    async def request(
        self,
        method: str,
        params: bytes,
        *,
        name: str | None = None,
        headers: Mapping[str, str] | None = None,
        callbacks: RequestCallbacks | None = None,
    ) -> JsonObject:
        if method == "server/discover":
            raise JsonRpcError(-32601, "Method not found")
        return await self._inner.request(method, params, name=name, headers=headers, callbacks=callbacks)


def old(dial: Dial) -> Dial:
    @asynccontextmanager
    async def dialled(heard: Notify) -> AsyncGenerator[Connection]:
        async with dial(heard) as connection:
            yield Old(connection)

    return dialled


@pytest.fixture(scope="module")
def url() -> Generator[str]:
    """The fixture of the conformance suite, which speaks both eras."""
    with subprocess.Popen(FIXTURE, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.kill()


def over_http(url: str, era: Era) -> McpSource:
    dial = HttpTransport(url=url, egress=FREE).dial
    return McpSource(McpSettings(id="real", transport="http"), old(dial) if era == "legacy" else dial)


def over_stdio(era: Era) -> McpSource:
    dial = StdioTransport(command=(*FIXTURE, "stdio"), cwd=ROOT, patience=0.2).dial
    settings = McpSettings(id="real", start_timeout=60.0, timeout=60.0)
    return McpSource(settings, old(dial) if era == "legacy" else dial)


async def answered(method: str, _params: JsonObject) -> JsonObject:
    """Answer as a client would."""
    await anyio.lowlevel.checkpoint()
    if method == "elicitation/create":
        return {"action": "accept", "content": {"name": "Ann", "username": "ann", "email": "ann@example.com"}}
    if method == "roots/list":
        return {"roots": [{"uri": "file:///home/ann"}]}
    return {"role": "assistant", "model": "m", "content": {"type": "text", "text": "Paris"}}


async def call(it: Running, tool: str, channel: RecordingChannel | None = None, /, **fields: Any) -> Result:
    with anyio.fail_after(60):
        return await it.source.call(it.call(tool, fields.pop("arguments", None), channel=channel, **fields))


# A handshake-era server asks in the middle of a call


@pytest.mark.requirement("D14")
async def test_legacy_http_server_question_reaches_caller(url: str) -> None:
    ann = RecordingChannel(capabilities=EVERYTHING, answer=answered, level="debug")
    heard: list[Progress] = []

    async def report(progress: Progress) -> None:
        heard.append(progress)

    async with running(over_http(url, "legacy")) as it:
        assert it.source.details()["era"] == "legacy"
        everything = await call(it, "test_input_required_result_multiple_inputs", ann)
        for part in ('"name": "Ann"', '"Paris"', "file:///home/ann"):
            assert part in str(everything.data)
        assert [method for method, _ in ann.questions] == [
            "elicitation/create",
            "sampling/createMessage",
            "roots/list",
        ]
        await call(it, "test_elicitation_sep1330_enums", ann)
        schema = ann.questions[-1][1]["requestedSchema"]["properties"]
        assert schema["legacyEnum"]["enumNames"] == ["Option One", "Option Two"]
        await call(it, "test_tool_with_logging", ann)
        assert [each["data"] for each in ann.told] == ["started", "at work", "completed"]
        await call(it, "test_tool_with_progress", ann, report=report)
        assert [each.done for each in heard] == [0, 50, 100]
        assert it.source.details()["lanes"] == 1


@pytest.mark.requirement("D14")
async def test_sessions_at_a_legacy_web_server_never_cross(url: str) -> None:
    async def work(it: Running, owner: str) -> None:
        channel = RecordingChannel(owner, {"elicitation": {}})
        for _ in range(5):
            result = await call(it, "test_elicitation", channel, arguments={"message": owner})
            assert f'"name": "{owner}"' in str(result.data)
        assert {params["message"] for _, params in channel.questions} == {owner}
        assert len(channel.questions) == 5

    async with running(over_http(url, "legacy")) as it, anyio.create_task_group() as tasks:
        for number in range(8):
            tasks.start_soon(work, it, f"owner-{number}")


@pytest.mark.requirement("D14")
async def test_a_call_that_is_given_up_takes_its_question_along(url: str) -> None:
    ann = RecordingChannel(capabilities=EVERYTHING, answer=never)
    async with running(over_http(url, "legacy")) as it:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call, it, "test_streaming_elicitation", ann)
            await until(lambda: bool(ann.questions))
            tasks.cancel_scope.cancel()
        assert ann.given_up == 1
        assert (await call(it, "test_simple_text", ann)).data == "Plain words."


@pytest.mark.requirement("D14")
async def test_server_learns_unsupported_questions(url: str) -> None:
    for era in ("legacy", "modern"):
        async with running(over_http(url, era)) as it:
            with pytest.raises(Failed) as caught:
                await call(it, "test_missing_capability", RecordingChannel(capabilities={"elicitation": {}}))
        problem = caught.value.problem
        assert problem.tool_code == "-32021"
        assert problem.details["data"] == {"requiredCapabilities": {"sampling": {}}}


@pytest.mark.requirement("D14")
async def test_legacy_stdio_server_question_reaches_caller() -> None:
    ann = RecordingChannel(capabilities=EVERYTHING, answer=answered, level="info")
    async with running(over_stdio("legacy")) as it:
        result = await call(it, "test_input_required_result_capabilities", ann)
        assert "Paris" in str(result.data)
        # What callers have on their own machines is kept from programs on ours.
        assert "roots/list" not in [method for method, _ in ann.questions]
        await call(it, "test_tool_with_logging", ann)
        assert len(ann.told) == 3


@pytest.mark.requirement("D14")
async def test_sse_server_question_reaches_caller(free_port: int) -> None:
    async with official("sse", free_port) as address:
        source = McpSource(
            McpSettings(id="real", transport="sse"), SseTransport(url=address, egress=FREE).dial
        )
        async with running(source) as it:
            ann, ben = (
                RecordingChannel(capabilities={"elicitation": {}}),
                RecordingChannel("ben", {"elicitation": {}}, alone=True),
            )
            for channel in (ann, ben):
                assert (await call(it, "ask", channel)).data == {"result": "accept"}
                assert channel.questions[0][1]["message"] == "Who are you?"
            assert (await call(it, "ask")).data == {"result": "decline"}


# A modern one answers with its questions


@pytest.mark.requirement("D14")
@pytest.mark.parametrize("way", ["http", "stdio"])
async def test_a_modern_server_answers_with_its_questions(
    way: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A program that starts too slowly for this time is taken for a legacy server.
    monkeypatch.setattr(handshake, "DISCOVERY_TIMEOUT_SECONDS", 60.0)
    ann = RecordingChannel(capabilities=EVERYTHING, level="info")
    async with running(over_http(url, "modern") if way == "http" else over_stdio("modern")) as it:
        first = await call(it, "test_input_required_result_request_state", ann)
        assert first.ask is not None
        assert first.ask.questions["confirm"]["method"] == "elicitation/create"
        assert first.ask.state
        answers = {"confirm": {"action": "accept", "content": {"ok": True}}}
        again = {"answers": answers, "state": first.ask.state}
        last = await call(it, "test_input_required_result_request_state", ann, **again)
        assert str(last.data).startswith("state-ok")
        with pytest.raises(Failed) as raised:
            await call(it, "test_input_required_result_request_state", ann, answers=answers, state="x.y")
        assert matches("sources", "a modern server answers with its questions", str(raised.value))
        narrow = await call(
            it, "test_input_required_result_capabilities", RecordingChannel(capabilities={"sampling": {}})
        )
        assert narrow.ask is not None
        assert list(narrow.ask.questions) == ["greeting"]
        await call(it, "test_tool_with_logging", ann)
        assert [each["data"] for each in ann.told] == ["started", "at work", "completed"]
        # Who has a session and names no level hears what the server says; who has none, nothing.
        for alone in (False, True):
            ben = RecordingChannel(capabilities=EVERYTHING, alone=alone)
            await call(it, "test_tool_with_logging", ben)
            assert bool(ben.told) is not alone
        assert "lanes" not in it.source.details()
        assert not ann.questions


# Somebody else's server


@pytest.mark.needs("node", "npm_servers")
@pytest.mark.requirement("D14")
async def test_everything_server_question_reaches_caller() -> None:
    relay: frozenset[Any] = frozenset(EVERYTHING)
    dial = StdioTransport(command=npm("mcp-server-everything", "stdio")).dial
    settings = McpSettings(id="real", start_timeout=60.0, timeout=60.0, relay=relay)
    async with running(McpSource(settings, dial)) as it:
        ann = RecordingChannel(capabilities=EVERYTHING, answer=answered)
        sampled = await call(it, "trigger-sampling-request", ann, arguments={"prompt": "Where?"})
        assert "Paris" in str(sampled.content)
        elicited = await call(it, "trigger-elicitation-request", ann)
        assert "Ann" in str(elicited.content)
        assert "file:///home/ann" in str((await call(it, "get-roots-list", ann)).content)
        assert it.source.details()["lanes"] == 1
