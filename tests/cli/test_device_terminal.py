"""In a terminal, the glasses are drawn in place and typed keys are shown in the input line."""

import fcntl
import os
import pty
import struct
import subprocess
import termios
from collections.abc import Generator
from contextlib import contextmanager

import anyio
import pytest

from tests.cli.processes import COMMAND, environment
from tests.demo.demo_gateway import DemoGateway, open_demo_gateway
from tests.gateways import ADMIN

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

ROWS_AND_COLUMNS = struct.pack("HHHH", 40, 80, 0, 0)
INTERRUPT, END = b"\x03", b"\x04"
PATIENCE = 60.0


class Terminal:
    """The master side of a pseudo-terminal."""

    def __init__(self, keyboard: int, process: "subprocess.Popen[bytes]") -> None:
        self._keyboard, self.process = keyboard, process
        self.output = ""

    def echoes(self) -> bool:
        """Whether the terminal echoes typed keys."""
        return bool(termios.tcgetattr(self._keyboard)[3] & termios.ECHO)

    def press(self, keys: bytes) -> None:
        os.write(self._keyboard, keys)

    async def wait_for(self, text: str) -> None:
        """Wait until the text is drawn; discard the output up to it."""
        with anyio.fail_after(PATIENCE):
            while text not in self.output:
                await anyio.wait_readable(self._keyboard)
                self.output += os.read(self._keyboard, 65536).decode(errors="replace")
        self.output = self.output.partition(text)[2]

    async def wait_exit(self) -> int:
        with anyio.fail_after(PATIENCE):
            return await anyio.to_thread.run_sync(self.process.wait, abandon_on_cancel=True)


def _own_terminal() -> None:
    """Make stdin the controlling terminal of the new process, so that Ctrl-C sends it SIGINT."""
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


@contextmanager
def open_terminal(url: str, *options: str) -> Generator[Terminal]:
    keyboard, screen = pty.openpty()
    fcntl.ioctl(screen, termios.TIOCSWINSZ, ROWS_AND_COLUMNS)
    env = {name: value for name, value in environment().items() if name not in ("NO_COLOR", "CI")}
    process = subprocess.Popen(
        (*COMMAND, "device", "simulate", "--url", url, "--no-voice", *options),
        env={**env, "TERM": "xterm-256color", "TOOLCRIB_KEY": ADMIN},
        stdin=screen,
        stdout=screen,
        stderr=screen,
        preexec_fn=_own_terminal,  # noqa: PLW1509 - it takes no locks that threads of the test may hold
    )
    try:
        yield Terminal(keyboard, process)
    finally:
        process.kill()
        process.wait()
        os.close(screen)
        os.close(keyboard)


@pytest.mark.requirement("D16")
@pytest.mark.parametrize("last_key", [INTERRUPT, END])
async def test_glasses_are_drawn_and_keys_are_shown(last_key: bytes) -> None:
    async with open_demo_gateway(watched=False) as demo_gateway:
        with open_terminal(demo_gateway.url, "--model", "Even Realities G1") as terminal:
            await _add_reminders(demo_gateway, terminal)
            terminal.press(last_key)
            assert await terminal.wait_exit() == 0
        assert (await demo_gateway.gateway.request("GET", "/api/users/demo")).json["session"] is None


async def _add_reminders(demo_gateway: DemoGateway, terminal: Terminal) -> None:
    await terminal.wait_for("demo wears Even Realities G1: 5 lines of 40 characters, phone speaks")
    await terminal.wait_for("connection: open")
    await demo_gateway.data("reminder:add_reminder", text="Buy milk")
    await terminal.wait_for("│ 1. Buy milk                              │")
    await terminal.wait_for("phone speaks: Noted: Buy milk.")
    terminal.press(b"remind me to caal")
    await terminal.wait_for("> remind me to caal")
    terminal.press(b"\x7f\x7fll Ada")
    await terminal.wait_for("> remind me to call Ada")
    terminal.press(b"\n")
    await terminal.wait_for("│ 2. call Ada")
    await terminal.wait_for("you: remind me to call Ada")


async def test_terminal_settings_are_restored() -> None:
    async with open_demo_gateway(watched=False) as demo_gateway:
        with open_terminal(demo_gateway.url) as terminal:
            await terminal.wait_for("connection: open")
            assert not terminal.echoes()
            terminal.press(INTERRUPT)
            assert await terminal.wait_exit() == 0
            assert terminal.echoes()
