"""The source against servers of the official SDK, over every transport and in both eras."""

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.sources.mcp.scripted_connection import RecordingLink
from tests.sources.mcp.upstream import official
from tests.texts import matches
from tests.waiting import until
from toolcrib.egress import Egress
from toolcrib.errors import Lost, ToolcribError
from toolcrib.model import Call, Progress
from toolcrib.sources.mcp import handshake
from toolcrib.sources.mcp.connection import McpSettings
from toolcrib.sources.mcp.http_transport import HttpTransport
from toolcrib.sources.mcp.source import McpSource
from toolcrib.sources.mcp.sse_transport import SseTransport
from toolcrib.sources.mcp.stdio_transport import StdioTransport
from toolcrib.testing import a_call, a_tool

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

PROGRAM = str(Path(__file__).with_name("real_server.py"))
NAMES = [
    f"real:{name}" for name in ("echo", "add", "fail", "grow", "linger", "steps", "die", "route", "touch")
]
FREE = Egress(guarded=False)
ERAS = pytest.mark.parametrize("era", ["both", "old"])
WAYS = pytest.mark.parametrize("way", ["stdio", "http"])


@pytest.fixture(autouse=True)
def slow_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that starts too slowly for this time is taken for a legacy server."""
    monkeypatch.setattr(handshake, "DISCOVERY_TIMEOUT_SECONDS", 60.0)


@asynccontextmanager
async def served(port: int, era: str) -> AsyncGenerator[anyio.abc.Process]:
    command = [sys.executable, PROGRAM, str(port), era]
    process = await anyio.open_process(command, stdin=None, stdout=None, stderr=None)
    try:
        with anyio.fail_after(60):
            while True:
                try:
                    await (await anyio.connect_tcp("127.0.0.1", port)).aclose()
                    break
                except OSError:
                    assert process.returncode is None
                    await anyio.sleep(0.02)
        yield process
    finally:
        with anyio.CancelScope(shield=True):
            if process.returncode is None:
                process.kill()
            await process.aclose()


class Running:
    """A source that runs, and the link it talks to."""

    def __init__(self, source: McpSource) -> None:
        self.source, self.link = source, RecordingLink()
        self.ended: list[BaseException] = []

    async def run(self) -> None:
        try:
            await self.source.run(self.link)
        except Exception as error:  # noqa: BLE001 - the tests look at it
            self.ended.append(error)

    def call(self, name: str, arguments: dict[str, Any] | None = None, **fields: Any) -> Call:
        (tool,) = (tool for tool in self.link.offers[-1].tools if tool.local == name)
        return a_call(tool, arguments=arguments or {}, **fields)


@asynccontextmanager
async def running(source: McpSource) -> AsyncGenerator[Running]:
    it = Running(source)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(it.run)
        with anyio.fail_after(60):
            while not it.link.offers:
                assert not it.ended, it.ended
                await anyio.sleep(0.01)
        yield it
        tasks.cancel_scope.cancel()


def over_stdio(era: str) -> McpSource:
    command = (sys.executable, PROGRAM, "stdio", era)
    settings = McpSettings(id="real", start_timeout=60.0)
    return McpSource(settings, StdioTransport(command=command).dial)


def over_http(port: int) -> McpSource:
    url = f"http://127.0.0.1:{port}/mcp"
    return McpSource(McpSettings(id="real", transport="http"), HttpTransport(url=url, egress=FREE).dial)


@asynccontextmanager
async def real(way: str, era: str, port: int) -> AsyncGenerator[Running]:
    if way == "stdio":
        async with running(over_stdio(era)) as it:
            yield it
    else:
        async with served(port, era), running(over_http(port)) as it:
            yield it


@pytest.mark.requirement("B2")
@ERAS
@WAYS
async def test_tools_are_listed_and_called(way: str, era: str, free_port: int) -> None:
    async with real(way, era, free_port) as it:
        assert it.link.names() == NAMES
        details = it.source.details()
        assert details["era"] == ("modern" if era == "both" else "legacy")
        assert (details["server_name"], details["server_version"]) == ("real", "1.2.3")
        echo = await it.source.call(it.call("echo", {"text": "héllo"}))
        assert (echo.data, echo.structured) == ("héllo", False)
        add = await it.source.call(it.call("add", {"numbers": [1, 2]}))
        assert (add.data, add.structured, add.meta) == ({"sum": 3}, True, {"vendor/unit": "one"})
        fail = await it.source.call(it.call("fail"))
        assert fail.problem is not None
        assert "closed on Sundays" in fail.problem.message
        await it.source.check()


@pytest.mark.requirement("B2")
@ERAS
@WAYS
async def test_a_list_that_grows_is_seen(way: str, era: str, free_port: int) -> None:
    async with real(way, era, free_port) as it:
        # Until the server has taken our subscription it has nobody to tell.
        with anyio.fail_after(20):
            while it.link.names() == NAMES:
                await it.source.call(it.call("grow"))
                await anyio.sleep(0.1)
        assert it.link.names() == [*NAMES, "real:grown"]
        await follows(it)


async def follows(it: Running) -> None:
    """A resource is read, and followed on whatever way the server tells by."""
    door = a_tool("real:resources/read", family="mcp")
    read = await it.source.call(a_call(door, arguments={"uri": "real://note"}))
    assert read.data == {"contents": [{"uri": "real://note", "text": "noted"}]}
    follow = a_tool("real:resources/subscribe", family="mcp")
    assert (await it.source.call(a_call(follow, arguments={"uri": "real://note"}))).data == {}
    await it.source.call(it.call("touch"))
    await until(lambda: it.link.updates == ["real://note"])


@ERAS
@WAYS
async def test_progress_comes_through(way: str, era: str, free_port: int) -> None:
    heard: list[Progress] = []

    async def report(progress: Progress) -> None:
        heard.append(progress)

    async with real(way, era, free_port) as it:
        done = await it.source.call(it.call("steps", report=report))
    assert done.data == "done"
    assert heard == [Progress(done=1, total=2, message="half")]


@pytest.mark.requirement("C4")
@ERAS
@WAYS
async def test_abandoned_call_does_not_affect_others(way: str, era: str, free_port: int) -> None:
    async with real(way, era, free_port) as it:
        with anyio.move_on_after(0.1) as limit:
            await it.source.call(it.call("linger"))
        assert limit.cancelled_caught
        assert (await it.source.call(it.call("echo", {"text": "on"}))).data == "on"


@pytest.mark.check(41)
async def test_a_hundred_calls_at_once_get_their_own_answers() -> None:
    answers: dict[int, Any] = {}
    async with running(over_stdio("both")) as it:

        async def one(number: int) -> None:
            answers[number] = (await it.source.call(it.call("echo", {"text": f"n{number}"}))).data

        async with anyio.create_task_group() as tasks:
            for number in range(100):
                tasks.start_soon(one, number)
    assert answers == {number: f"n{number}" for number in range(100)}


@ERAS
async def test_arguments_in_headers_pass_the_servers_own_check(era: str, free_port: int) -> None:
    async with real("http", era, free_port) as it:
        for region in ("eu", "Köln", " edge ", ""):
            assert (await it.source.call(it.call("route", {"region": region}))).data == region
        assert (await it.source.call(it.call("route"))).data == "nowhere"


@ERAS
async def test_process_that_dies_during_call_is_restarted(era: str) -> None:
    source = over_stdio(era)
    for _ in range(2):
        async with running(source) as it:
            with pytest.raises(Lost) as caught:
                await source.call(it.call("die"))
            assert caught.value.problem.code == "OUTCOME_UNKNOWN"
            await until(lambda it=it: bool(it.ended))
            assert type(it.ended[0]) is ConnectionError
            assert it.link.downs == [str(it.ended[0])]


@ERAS
async def test_a_web_server_that_dies_is_noticed_by_the_next_call(era: str, free_port: int) -> None:
    async with served(free_port, era) as process, running(over_http(free_port)) as it:
        process.kill()
        await process.wait()
        with pytest.raises(ToolcribError):
            await it.source.call(it.call("echo", {"text": "anyone?"}))
        await until(lambda: bool(it.ended))
        assert isinstance(it.ended[0], ConnectionError)
        assert it.link.downs


@pytest.mark.requirement("B2")
async def test_a_server_over_sse(free_port: int) -> None:
    async with official("sse", free_port) as url:
        source = McpSource(McpSettings(id="real", transport="sse"), SseTransport(url=url, egress=FREE).dial)
        async with running(source) as it:
            assert (await source.call(it.call("add", {"a": 2, "b": 3}))).data == {"result": 5}
            assert source.details()["era"] == "legacy"


@pytest.mark.parametrize(
    "command, why",
    [
        (("no-such-program-anywhere",), "there is no program"),
        ((sys.executable, "-c", "raise SystemExit(7)"), "7"),
    ],
)
async def test_failed_start_reports_the_reason(command: tuple[str, ...], why: str) -> None:
    source = McpSource(McpSettings(id="real"), StdioTransport(command=command).dial)
    with pytest.raises(ConnectionError, match=why):
        await source.run(RecordingLink())


async def test_last_stderr_lines_explain_the_exit() -> None:
    program = "import sys; print('no such option: --speed', file=sys.stderr); sys.exit(2)"
    dial = StdioTransport(command=(sys.executable, "-c", program)).dial
    source = McpSource(McpSettings(id="real"), dial)
    with anyio.fail_after(60), pytest.raises(ConnectionError) as death:
        await source.run(RecordingLink())
    assert matches("sources", "last stderr lines explain the exit", str(death.value))
    assert "pid" not in source.details()


async def test_missing_process_has_no_stderr_lines(tmp_path: Path) -> None:
    program = tmp_path / "server"
    await anyio.Path(program).write_text("#!/bin/sh\necho wrong >&2\nexit 1\n")
    await anyio.Path(program).chmod(0o700)
    source = McpSource(McpSettings(id="real"), StdioTransport(command=(str(program),)).dial)
    for said in ("it wrote last: wrong", "there is no program at"):
        with anyio.fail_after(60), pytest.raises(ConnectionError, match=said) as death:
            await source.run(RecordingLink())
        assert ("wrote last" in str(death.value)) == ("wrote last" in said)
        await anyio.Path(program).unlink(missing_ok=True)
