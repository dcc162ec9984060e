"""In a terminal the glasses are a picture that changes, and keys are shown where they belong."""

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
        self.drawn = ""

    def echoes(self) -> bool:
        """Whether the terminal itself draws what is typed."""
        return bool(termios.tcgetattr(self._keyboard)[3] & termios.ECHO)

    def press(self, keys: bytes) -> None:
        os.write(self._keyboard, keys)

    async def shows(self, text: str) -> None:
        """Wait until something is drawn that was not there before; then forget all before it."""
        with anyio.fail_after(PATIENCE):
            while text not in self.drawn:
                await anyio.wait_readable(self._keyboard)
                self.drawn += os.read(self._keyboard, 65536).decode(errors="replace")
        self.drawn = self.drawn.partition(text)[2]

    async def ended(self) -> int:
        with anyio.fail_after(PATIENCE):
            return await anyio.to_thread.run_sync(self.process.wait, abandon_on_cancel=True)


def _own_terminal() -> None:
    """Make the standard input of a new process the terminal it belongs to, so that Ctrl-C reaches it."""
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


@contextmanager
def terminal(url: str, *options: str) -> Generator[Terminal]:
    keyboard, screen = pty.openpty()
    fcntl.ioctl(screen, termios.TIOCSWINSZ, ROWS_AND_COLUMNS)
    env = {name: value for name, value in environment().items() if name not in ("NO_COLOR", "CI")}
    process = subprocess.Popen(
        (*COMMAND, "device", "simulate", "--url", url, "--no-voice", *options),
        env={**env, "TERM": "xterm-256color", "TOOLCRIB_KEY": ADMIN},
        stdin=screen,
        stdout=screen,
        stderr=screen,
        preexec_fn=_own_terminal,  # noqa: PLW1509 - nothing that the test's threads hold is needed there
    )
    try:
        yield Terminal(keyboard, process)
    finally:
        process.kill()
        process.wait()
        os.close(screen)
        os.close(keyboard)


@pytest.mark.requirement("D16")
@pytest.mark.parametrize("last", [INTERRUPT, END])
async def test_the_glasses_are_drawn_and_keys_are_shown(last: bytes) -> None:
    async with open_demo_gateway(watched=False) as demo_gateway:
        with terminal(demo_gateway.url, "--model", "Even Realities G1") as seat:
            await _tried(demo_gateway, seat)
            seat.press(last)
            assert await seat.ended() == 0
        assert (await demo_gateway.gateway.request("GET", "/api/users/demo")).json["session"] is None


async def _tried(demo_gateway: DemoGateway, seat: Terminal) -> None:
    await seat.shows("demo wears Even Realities G1: 5 lines of 40 characters, phone speaks")
    await seat.shows("connection: open")
    await demo_gateway.data("reminder:add_reminder", text="Buy milk")
    await seat.shows("│ 1. Buy milk                              │")
    await seat.shows("phone speaks: Noted: Buy milk.")
    seat.press(b"remind me to caal")
    await seat.shows("> remind me to caal")
    seat.press(b"\x7f\x7fll Ada")
    await seat.shows("> remind me to call Ada")
    seat.press(b"\n")
    await seat.shows("│ 2. call Ada")
    await seat.shows("you: remind me to call Ada")


async def test_terminal_settings_are_restored() -> None:
    async with open_demo_gateway(watched=False) as demo_gateway:
        with terminal(demo_gateway.url) as seat:
            await seat.shows("connection: open")
            assert not seat.echoes()
            seat.press(INTERRUPT)
            assert await seat.ended() == 0
            assert seat.echoes()
