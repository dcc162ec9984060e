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


class Simulation:
    """A `toolcrib device simulate` process and the lines it has printed."""

    def __init__(self, process: Process) -> None:
        assert process.stdout is not None
        self.process, self._out = process, BufferedByteReceiveStream(process.stdout)
        self.lines: list[str] = []

    async def wait_for(self, text: str) -> int:
        """Wait for a line that contains a text; return its index."""
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

    async def wait_exit(self) -> int:
        with anyio.fail_after(PATIENCE):
            return await self.process.wait()


@asynccontextmanager
async def simulated(url: str, *options: str, key: str = ADMIN) -> AsyncGenerator[Simulation]:
    command = (*COMMAND, "device", "simulate", "--url", url, "--no-voice", *options)
    env = environment({"TOOLCRIB_KEY": key})
    async with await anyio.open_process(command, env=env, stdin=PIPE, stdout=PIPE, stderr=PIPE) as process:
        try:
            yield Simulation(process)
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
        simulated(demo_gateway.url, "--model", "Even Realities G1") as simulation,
    ):
        await simulation.wait_for("connection: open")
        assert matches("cli", "display and speech are printed and input is sent", simulation.lines[0])
        await demo_gateway.data("reminder:add_reminder", text="Buy milk")
        frame = await simulation.wait_for("┌─ main · com.toolcrib.reminder")
        await simulation.wait_for("└───")
        assert simulation.lines[frame + 1 :] == [
            "│ Reminders                                │",
            "│ 1. Buy milk                              │",
            *["│                                          │"] * 3,
            "└──────────────────────────────────────────┘",
        ]
        await simulation.wait_for("phone speaks: Noted: Buy milk.")
        await simulation.type("remind me to call Ada\n")
        await simulation.wait_for("you: remind me to call Ada")
        await simulation.wait_for("phone speaks: Noted: call Ada.")
        assert await session_of(demo_gateway) is not None
        await simulation.end_input()
        assert await simulation.wait_exit() == 0
        assert await session_of(demo_gateway) is None


@pytest.mark.slow
async def test_json_output_has_one_event_per_line() -> None:
    async with (
        open_demo_gateway(watched=False) as demo_gateway,
        simulated(demo_gateway.url, "--json", "--language", "de") as simulation,
    ):
        await simulation.wait_for('"open"')
        await demo_gateway.data("reminder:add_reminder", text="Milch")
        await simulation.wait_for('"speak"')
        events = [json.loads(line) for line in simulation.lines]
        assert events[0]["event"] == "session"
        assert events[0]["data"]["language"] == "de"
        (shown,) = [each["data"] for each in events if each["event"] == "display"]
        assert shown["layout"]["text"] == "1. Milch"
        assert {"event": "connection", "data": {"state": "open"}} in events


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
async def test_signal_ends_the_session(number: signal.Signals) -> None:
    async with (
        open_demo_gateway(watched=False) as demo_gateway,
        simulated(demo_gateway.url, "--model", "Mentra Live") as simulation,
    ):
        await simulation.wait_for("connection: open")
        simulation.process.send_signal(number)
        assert await simulation.wait_exit() == 0
        assert await session_of(demo_gateway) is None


@pytest.mark.slow
async def test_timed_layout_is_cleared() -> None:
    async with (
        open_demo_gateway(watched=False) as demo_gateway,
        simulated(demo_gateway.url, "--model", "Mentra Display") as simulation,
    ):
        await simulation.wait_for("connection: open")
        await demo_gateway.data("reminder:list_reminders")
        await simulation.wait_for("Nothing to do.")
        layout = {"layoutType": "text_wall", "text": "soon gone"}
        event = UserEvent("display", {"view": "main", "layout": layout, "durationMs": 50})
        demo_gateway.gateway.runtime.sessions.publish("demo", event)
        shown = await simulation.wait_for("soon gone")
        cleared = await simulation.wait_for("display main: clear")
        assert shown < cleared


@pytest.mark.slow
async def test_lost_connection_is_reopened() -> None:
    async with open_demo_gateway(watched=False) as demo_gateway, simulated(demo_gateway.url) as simulation:
        await simulation.wait_for("connection: open")
        # Simulates a restarted gateway that has lost the session.
        await demo_gateway.gateway.request("DELETE", "/api/users/demo/session")
        demo_gateway.gateway.server.drain()
        demo_gateway.gateway.server.draining = False
        await simulation.wait_for("connection: lost")
        await simulation.wait_for("connection: open")
        assert await session_of(demo_gateway) is not None
        await demo_gateway.data("reminder:add_reminder", text="Buy milk")
        await simulation.wait_for("│ 1. Buy milk")


@pytest.mark.slow
async def test_unsent_input_is_reported() -> None:
    async with open_demo_gateway(watched=False) as demo_gateway, simulated(demo_gateway.url) as simulation:
        await simulation.wait_for("connection: open")
        await demo_gateway.gateway.request("DELETE", "/api/users/demo/session")
        await simulation.type("hello\n")
        await simulation.wait_for("connection: not heard, demo has no session")
        await simulation.end_input()
        assert await simulation.wait_exit() == 0


@pytest.mark.slow
async def test_revoked_key_ends_the_simulation() -> None:
    async with open_demo_gateway(watched=False) as demo_gateway:
        key = await demo_gateway.gateway.key("glasses", permissions=["crib:users"])
        async with simulated(demo_gateway.url, key=key) as simulation:
            await simulation.wait_for("connection: open")
            assert (await demo_gateway.gateway.request("DELETE", "/api/keys/glasses")).status == 200
            assert await simulation.wait_exit() == 1


@pytest.mark.slow
async def test_stay_option_keeps_the_session_after_input() -> None:
    async with (
        open_demo_gateway(watched=False) as demo_gateway,
        simulated(demo_gateway.url, "--stay", "3600") as simulation,
    ):
        await simulation.wait_for("connection: open")
        await simulation.type("last words")
        await simulation.end_input()
        await simulation.wait_for("you: last words")
        await demo_gateway.data("reminder:add_reminder", text="Buy milk")
        await simulation.wait_for("│ 1. Buy milk")
        assert simulation.process.returncode is None


@pytest.mark.slow
async def test_rejected_key_is_reported() -> None:
    async with (
        open_demo_gateway(watched=False) as demo_gateway,
        simulated(demo_gateway.url, key="tc_wrong") as simulation,
    ):
        assert await simulation.wait_exit() == 1
        assert simulation.process.stderr is not None
        message = (await simulation.process.stderr.receive()).decode()
        assert "TOOLCRIB_KEY" in message


@pytest.mark.parametrize(
    "options, code, message",
    [
        (("--url", "http://127.0.0.1:{port}"), 1, "no gateway responds at"),
        (("--url", "nonsense"), 2, "--url must be the URL of a gateway"),
        (("--user", "a\nb"), 2, "--user must be printable text"),
        (("--stay", "-1"), 2, "--stay"),
        ((), 2, "no admin key was found here"),
    ],
)
def test_invalid_options_and_missing_gateway_fail(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, options: Sequence[str], code: int, message: str
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        if options:
            monkeypatch.setenv("TOOLCRIB_KEY", "tc_key")
        given = [each.format(port=taken.getsockname()[1]) for each in options]
        done = shell("device", "simulate", *given)
    assert (done.code, done.out) == (code, "")
    assert message in done.err
