"""Simulated glasses in their own process: what they print, receive, and leave behind at exit."""

import json
import signal
import socket
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from subprocess import PIPE

import anyio
import pytest
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from tests.cli.conftest import Shell
from tests.cli.processes import COMMAND, environment
from tests.demo.demo_gateway import DemoGateway, open_demo_gateway
from tests.gateways import ADMIN
from tests.texts import matches
from toolcrib.sessions import UserEvent

pytestmark = pytest.mark.anyio

PATIENCE = 60.0


class Worn:
    """A process that wears glasses, and what it has printed."""

    def __init__(self, process: Process) -> None:
        assert process.stdout is not None
        self.process, self._out = process, BufferedByteReceiveStream(process.stdout)
        self.lines: list[str] = []

    async def printed(self, text: str) -> int:
        """Wait for a line that holds a text; its place."""
        with anyio.fail_after(PATIENCE):
            while not (self.lines and text in self.lines[-1]):
                self.lines.append((await self._out.receive_until(b"\n", 65536)).decode())
        return len(self.lines) - 1

    async def type(self, text: str) -> None:
        assert self.process.stdin is not None
        await self.process.stdin.send(text.encode())

    async def end_input(self) -> None:
        assert self.process.stdin is not None
        await self.process.stdin.aclose()

    async def ended(self) -> int:
        with anyio.fail_after(PATIENCE):
            return await self.process.wait()


@asynccontextmanager
async def worn(url: str, *options: str, key: str = ADMIN) -> AsyncGenerator[Worn]:
    command = (*COMMAND, "device", "simulate", "--url", url, "--no-voice", *options)
    env = environment({"TOOLCRIB_KEY": key})
    async with await anyio.open_process(command, env=env, stdin=PIPE, stdout=PIPE, stderr=PIPE) as process:
        try:
            yield Worn(process)
        finally:
            if process.returncode is None:
                process.kill()


async def session_of(demo_gateway: DemoGateway) -> object:
    return (await demo_gateway.gateway.request("GET", "/api/users/demo")).json["session"]


@pytest.mark.slow
@pytest.mark.requirement("D16")
async def test_display_and_speech_are_printed_and_input_is_sent() -> None:
    async with (
        open_demo_gateway(watched=False) as demo_gateway,
        worn(demo_gateway.url, "--model", "Even Realities G1") as glasses,
    ):
        await glasses.printed("connection: open")
        assert matches("cli", "display and speech are printed and input is sent", glasses.lines[0])
        await demo_gateway.data("reminder:add_reminder", text="Buy milk")
        frame = await glasses.printed("┌─ main · com.toolcrib.reminder")
        await glasses.printed("└───")
        assert glasses.lines[frame + 1 :] == [
            "│ Reminders                                │",
            "│ 1. Buy milk                              │",
            *["│                                          │"] * 3,
            "└──────────────────────────────────────────┘",
        ]
        await glasses.printed("phone speaks: Noted: Buy milk.")
        await glasses.type("remind me to call Ada\n")
        await glasses.printed("you: remind me to call Ada")
        await glasses.printed("phone speaks: Noted: call Ada.")
        assert await session_of(demo_gateway) is not None
        await glasses.end_input()
        assert await glasses.ended() == 0
        assert await session_of(demo_gateway) is None


@pytest.mark.slow
async def test_as_json_every_line_is_an_event() -> None:
    async with (
        open_demo_gateway(watched=False) as demo_gateway,
        worn(demo_gateway.url, "--json", "--language", "de") as glasses,
    ):
        await glasses.printed('"open"')
        await demo_gateway.data("reminder:add_reminder", text="Milch")
        await glasses.printed('"speak"')
        events = [json.loads(line) for line in glasses.lines]
        assert events[0]["event"] == "session"
        assert events[0]["data"]["language"] == "de"
        (shown,) = [each["data"] for each in events if each["event"] == "display"]
        assert shown["layout"]["text"] == "1. Milch"
        assert {"event": "connection", "data": {"state": "open"}} in events


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
async def test_a_signal_takes_them_off(number: signal.Signals) -> None:
    async with (
        open_demo_gateway(watched=False) as demo_gateway,
        worn(demo_gateway.url, "--model", "Mentra Live") as glasses,
    ):
        await glasses.printed("connection: open")
        glasses.process.send_signal(number)
        assert await glasses.ended() == 0
        assert await session_of(demo_gateway) is None


@pytest.mark.slow
async def test_timed_layout_is_cleared() -> None:
    async with (
        open_demo_gateway(watched=False) as demo_gateway,
        worn(demo_gateway.url, "--model", "Mentra Display") as glasses,
    ):
        await glasses.printed("connection: open")
        await demo_gateway.data("reminder:list_reminders")
        await glasses.printed("Nothing to do.")
        layout = {"layoutType": "text_wall", "text": "soon gone"}
        event = UserEvent("display", {"view": "main", "layout": layout, "durationMs": 50})
        demo_gateway.gateway.runtime.sessions.publish("demo", event)
        shown = await glasses.printed("soon gone")
        cleared = await glasses.printed("display main: clear")
        assert shown < cleared


@pytest.mark.slow
async def test_a_line_that_breaks_is_opened_again() -> None:
    async with open_demo_gateway(watched=False) as demo_gateway, worn(demo_gateway.url) as glasses:
        await glasses.printed("connection: open")
        # As if the gateway had been started again and had forgotten everything.
        await demo_gateway.gateway.request("DELETE", "/api/users/demo/session")
        demo_gateway.gateway.server.drain()
        demo_gateway.gateway.server.draining = False
        await glasses.printed("connection: lost")
        await glasses.printed("connection: open")
        assert await session_of(demo_gateway) is not None
        await demo_gateway.data("reminder:add_reminder", text="Buy milk")
        await glasses.printed("│ 1. Buy milk")


@pytest.mark.slow
async def test_unheard_input_is_reported() -> None:
    async with open_demo_gateway(watched=False) as demo_gateway, worn(demo_gateway.url) as glasses:
        await glasses.printed("connection: open")
        await demo_gateway.gateway.request("DELETE", "/api/users/demo/session")
        await glasses.type("hello\n")
        await glasses.printed("connection: not heard, demo has no session")
        await glasses.end_input()
        assert await glasses.ended() == 0


@pytest.mark.slow
async def test_a_key_that_is_revoked_ends_them() -> None:
    async with open_demo_gateway(watched=False) as demo_gateway:
        key = await demo_gateway.gateway.key("glasses", permissions=["crib:users"])
        async with worn(demo_gateway.url, key=key) as glasses:
            await glasses.printed("connection: open")
            assert (await demo_gateway.gateway.request("DELETE", "/api/keys/glasses")).status == 200
            assert await glasses.ended() == 1


@pytest.mark.slow
async def test_they_stay_after_the_input_where_that_is_wished() -> None:
    async with (
        open_demo_gateway(watched=False) as demo_gateway,
        worn(demo_gateway.url, "--stay", "3600") as glasses,
    ):
        await glasses.printed("connection: open")
        await glasses.type("last words")
        await glasses.end_input()
        await glasses.printed("you: last words")
        await demo_gateway.data("reminder:add_reminder", text="Buy milk")
        await glasses.printed("│ 1. Buy milk")
        assert glasses.process.returncode is None


@pytest.mark.slow
async def test_rejected_key_is_reported() -> None:
    async with (
        open_demo_gateway(watched=False) as demo_gateway,
        worn(demo_gateway.url, key="tc_wrong") as glasses,
    ):
        assert await glasses.ended() == 1
        assert glasses.process.stderr is not None
        said = (await glasses.process.stderr.receive()).decode()
        assert "TOOLCRIB_KEY" in said


@pytest.mark.parametrize(
    "options, code, said",
    [
        (("--url", "http://127.0.0.1:{port}"), 1, "no gateway responds at"),
        (("--url", "nonsense"), 2, "--url must be the URL of a gateway"),
        (("--user", "a\nb"), 2, "--user must be printable text"),
        (("--stay", "-1"), 2, "--stay"),
        ((), 2, "no admin key was found here"),
    ],
)
def test_wrong_use_and_no_gateway(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, options: Sequence[str], code: int, said: str
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        if options:
            monkeypatch.setenv("TOOLCRIB_KEY", "tc_key")
        given = [each.format(port=taken.getsockname()[1]) for each in options]
        done = shell("device", "simulate", *given)
    assert (done.code, done.out) == (code, "")
    assert said in done.err
