"""A server over its standard streams: many requests at once, and nothing it writes does harm."""

import logging
import os
from pathlib import Path
from typing import Any

import anyio
import orjson
import pytest

from tests.sources.mcp.marked_servers import MarkedServers, ask, files, lost, servers
from tests.texts import matches
from tests.waiting import until
from toolcrib.model import Progress
from toolcrib.sources.mcp import process_streams, request_multiplexer, stdio_transport
from toolcrib.sources.mcp.connection import (
    ConnectionLost,
    InvalidResponse,
    NotSent,
    RequestCallbacks,
    ResponseTooLarge,
)

__all__ = ["servers"]

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

MESSAGES = "toolcrib.sources.mcp"


@pytest.fixture(scope="module", params=[False, True], ids=["asyncio", "uvloop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, bool]]:
    return ("asyncio", {"use_uvloop": request.param})


async def test_many_requests_run_at_once(servers: MarkedServers) -> None:
    found: dict[int, Any] = {}

    async def one(number: int) -> None:
        found[number] = await ask(connection, "echo", number=number)

    async with servers.dial() as connection, anyio.create_task_group() as tasks:
        connection.use_revision("legacy", "2025-06-18")
        await connection.notify("notifications/initialized", b"{}")
        for number in range(200):
            tasks.start_soon(one, number)
    assert found == {number: {"number": number} for number in range(200)}


async def test_a_server_has_the_environment_and_folder_it_was_given(
    servers: MarkedServers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLCRIB_ADMIN_KEY", "s3cret")
    async with servers.dial(cwd=tmp_path, env={"TOKEN": "given"}) as connection:
        told = await ask(connection, "environment")
        assert connection.details()["pid"] == told["pid"]
    assert told["cwd"] == str(tmp_path)
    assert told["env"]["TOKEN"] == "given"
    assert told["env"]["PATH"] == os.environ["PATH"]
    assert "TOOLCRIB_ADMIN_KEY" not in told["env"]
    assert told["session"] == told["pid"] != os.getsid(0)


@pytest.mark.requirement("C3")
@pytest.mark.parametrize(
    "noise",
    [
        "Listening on stdio...\n",
        "\n\r\n   \n",
        "\xff\xfe\x00garbage\n",
        '{"level":30,"msg":"started"}\n',
        '{"jsonrpc":"2.0","id":99,"result":{}}\n',
        "[" * 5000 + "\n",
        "x" * 100_000 + "\n",
    ],
    ids=lambda noise: repr(noise[:8]),
)
async def test_noise_on_stdout_is_ignored(servers: MarkedServers, noise: str) -> None:
    async with servers.dial() as connection:
        assert await ask(connection, "raw", text=noise) == {"done": True}
        assert await ask(connection, "echo", a=1) == {"a": 1}


@pytest.mark.requirement("C3")
async def test_noise_is_logged_without_secrets_and_counted(
    servers: MarkedServers, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger=MESSAGES)

    def redact(text: str) -> str:
        return text.replace("s3cret", "***")

    async with servers.dial(redact=redact, server="fs") as connection:
        await ask(connection, "raw", text="the key is s3cret\n" * 200)
        await ask(connection, "raw", text='{"jsonrpc":"2.0","id":99,"result":{}}\n')
        details = connection.details()
    assert (details["stray_lines"], details["unclaimed_answers"]) == (200, 1)
    assert matches("sources", "line of stdout that is no message", caplog.messages[0])
    assert matches("sources", "noise is logged without secrets and counted", caplog.messages[-1])
    assert "s3cret" not in caplog.text


@pytest.mark.parametrize(
    "text",
    [
        '{"jsonrpc":"2.0","id":ID,"result":{"a":NaN}}\n',
        '{"jsonrpc":"2.0","id":ID,"result":{"a":"\xff"}}\n',
        '{"jsonrpc":"2.0","id":ID,"result":' + "[" * 100 + "]" * 100 + "}\r\n",
        '{"result":{"a":1e},"jsonrpc":"2.0","id":ID}\n',
        '{"jsonrpc":"2.0","id":ID,"result":[1]}\n',
    ],
    ids=lambda text: repr(text[-16:]),
)
async def test_an_answer_that_cannot_be_read_ends_its_request_alone(
    servers: MarkedServers, text: str
) -> None:
    async with servers.dial() as connection:
        with pytest.raises(InvalidResponse):
            await ask(connection, "raw", text=text, answer=False)
        assert await ask(connection, "echo", a=1) == {"a": 1}


async def test_a_large_answer_is_taken_up_to_the_cap(servers: MarkedServers) -> None:
    async with servers.dial() as connection:
        answer = await ask(connection, "huge", size=(8 << 20) - 100, first=True)
        assert len(answer["text"]) == (8 << 20) - 100


@pytest.mark.parametrize("first", [True, False])
async def test_an_answer_over_the_cap_ends_its_request_alone(servers: MarkedServers, first: bool) -> None:
    async with servers.dial() as connection:
        with pytest.raises(ResponseTooLarge, match="over 8 MiB"):
            await ask(connection, "huge", size=20 << 20, first=first)
        assert await ask(connection, "echo", a=1) == {"a": 1}


async def test_a_line_over_the_cap_that_is_no_answer_is_noise(servers: MarkedServers) -> None:
    async with servers.dial() as connection:
        await ask(connection, "raw", text="x" * (9 << 20) + "\n")
        assert connection.details()["stray_lines"] == 1


async def test_a_line_without_an_end_is_the_end_of_the_connection(servers: MarkedServers) -> None:
    async with servers.dial(patience=0.1) as connection:
        with pytest.raises(ConnectionLost) as raised:
            await ask(connection, "endless")
        assert matches("sources", "a line without an end is the end of the connection", str(raised.value))
        assert "64 MiB" in await lost(connection)
        with pytest.raises(NotSent):
            await ask(connection, "echo")


async def test_a_flood_of_messages_is_taken_in_slices(
    servers: MarkedServers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_streams, "_MESSAGES_PER_SLICE", 10)
    monkeypatch.setattr(request_multiplexer, "MAX_MESSAGES_PER_SECOND", 10_000)
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            await anyio.lowlevel.checkpoint()
            turns += 1

    async with servers.dial() as connection, anyio.create_task_group() as tasks:
        tasks.start_soon(others)
        assert await ask(connection, "notes", count=5_000) == {"count": 5_000}
        assert [params["n"] for _, params in servers.heard] == [*range(5_000)]
        assert await ask(connection, "echo", a=1) == {"a": 1}
        assert turns > 100
        tasks.cancel_scope.cancel()


async def test_output_before_exit_is_read_completely(
    servers: MarkedServers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_streams, "_MESSAGES_PER_SLICE", 10)
    monkeypatch.setattr(request_multiplexer, "MAX_MESSAGES_PER_SECOND", 10_000)
    async with servers.dial() as connection:
        with pytest.raises(ConnectionLost) as raised:
            await ask(connection, "notes", count=5_000, leave=True)
        assert matches("sources", "output before exit is read completely", str(raised.value))
        assert len(servers.heard) == 5_000


async def test_requests_of_the_server_are_answered(servers: MarkedServers) -> None:
    async with servers.dial() as connection:
        told = await ask(connection, "ask", methods=["ping", "sampling/createMessage"])
    ping, sampling = told["answers"]
    assert ping == {"jsonrpc": "2.0", "id": "s0", "result": {}}
    assert sampling["error"]["code"] == -32601


async def test_answers_to_non_reading_server_are_bounded(
    servers: MarkedServers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stdio_transport, "MAX_UNREAD_BYTES", 10_000)
    monkeypatch.setattr(request_multiplexer, "MAX_MESSAGES_PER_SECOND", 100_000)
    async with servers.dial(patience=0.1) as connection:
        await ask(connection, "beg", count=20_000)
        assert connection.details()["requests_not_answered"] > 1_000


async def test_progress_is_passed_on(servers: MarkedServers) -> None:
    told: list[Progress] = []

    async def report(news: Progress) -> None:
        told.append(news)

    async with servers.dial() as connection:
        answer = await connection.request("progress", b"{}", callbacks=RequestCallbacks(report))
    assert answer["token"] == 1
    assert told == [Progress(done=step, total=3, message=f"step {step}") for step in range(3)]


@pytest.mark.requirement("C4")
async def test_a_cancelled_request_is_cancelled_at_the_server(servers: MarkedServers) -> None:
    async with servers.dial() as connection:
        with anyio.move_on_after(0.01):
            await connection.request("silent", b"{}")
        (silent, cancelled, _) = (await ask(connection, "history"))["messages"]
    assert cancelled["method"] == "notifications/cancelled"
    assert cancelled["params"]["requestId"] == silent["id"]


async def test_requests_wait_while_a_server_does_not_read(servers: MarkedServers, tmp_path: Path) -> None:
    text, done = "x" * 100_000, list[int]()

    async def one(number: int) -> None:
        await connection.request("echo", orjson.dumps({"text": text}))
        done.append(number)

    async with servers.dial() as connection, anyio.create_task_group() as tasks:
        await ask(connection, "deaf", until=str(tmp_path / "go"))
        for number in range(20):
            tasks.start_soon(one, number)
        await anyio.wait_all_tasks_blocked()
        with anyio.move_on_after(0.05) as unsent:
            await connection.notify("notifications/never_sent", b"{}")
        assert unsent.cancelled_caught
        with anyio.move_on_after(0.05) as unsent:
            await ask(connection, "never_sent")
        assert unsent.cancelled_caught
        (tmp_path / "go").touch()
        await until(lambda: len(done) == 20)
        messages = (await ask(connection, "history"))["messages"]
        assert [message["method"] for message in messages] == ["deaf", *["echo"] * 20, "history"]


async def test_waiting_writers_are_notified_of_the_end(servers: MarkedServers) -> None:
    faults: list[str] = []

    async def one() -> None:
        try:
            await connection.request("echo", orjson.dumps({"text": "x" * 100_000}))
        except (ConnectionLost, NotSent) as fault:
            faults.append(f"{type(fault).__name__}: {fault}")

    async with servers.dial(patience=0.1) as connection:
        await ask(connection, "stubborn")
        async with anyio.create_task_group() as tasks:
            for _ in range(10):
                tasks.start_soon(one)
            await anyio.wait_all_tasks_blocked()
            os.kill(connection.details()["pid"], 9)
    sent, unsent = (sum(fault.startswith(kind) for fault in faults) for kind in ("ConnectionLost", "NotSent"))
    assert sent + unsent == len(faults) == 10
    assert sent
    assert unsent
    assert "ConnectionLost: it was killed by signal 9" in faults


@pytest.mark.requirement("C3")
async def test_standard_error_is_shown_and_logged_without_secrets(
    servers: MarkedServers, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger=MESSAGES)

    def redact(text: str) -> str:
        return text.replace("s3cret", "***")

    async with servers.dial(redact=redact) as connection:
        await ask(connection, "errors", text="the key is s3cret\n\x1b[31mred\xff\n")
        await until(lambda: len(connection.details()["stderr_tail"]) == 2)
        assert connection.details()["stderr_tail"] == ["the key is ***", "red\ufffd"]
    assert "s3cret" not in caplog.text
    assert "wrote to its standard error: the key is ***" in caplog.text


@pytest.mark.requirement("C3")
async def test_a_flood_of_errors_makes_the_server_wait_not_us(servers: MarkedServers) -> None:
    async with servers.dial() as connection:
        await ask(connection, "errors", text="x" * 99 + "\n", times=25_000)
        await ask(connection, "errors", text="last\n")
        await until(lambda: connection.details()["stderr_tail"][-1:] == ["last"])
        assert len(connection.details()["stderr_tail"]) == 50


async def test_repeated_connects_leave_no_open_files(servers: MarkedServers) -> None:
    async with servers.dial():
        pass
    before = files()
    for _ in range(5):
        async with servers.dial() as connection:
            await ask(connection, "echo")
    assert files() == before
