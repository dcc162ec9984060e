"""In a terminal things are drawn: tables, a panel, progress; Ctrl-C there ends a gateway."""

import fcntl
import json
import os
import pty
import struct
import subprocess
import termios
import urllib.error
import urllib.request
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import pytest

from tests.cli.processes import COMMAND, PATIENCE, environment, finished, serving

pytestmark = pytest.mark.slow

ROWS_AND_COLUMNS = struct.pack("HHHH", 40, 80, 0, 0)
INTERRUPT = b"\x03"


def _own_terminal() -> None:
    """Make the standard input of a new process the terminal it belongs to, so that Ctrl-C reaches it."""
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def token_in(drawn: str) -> str:
    """Return the token of the link, which is on one line however narrow the terminal is."""
    link = next(line for line in drawn.splitlines() if "/#token=" in line)
    token = link.partition("#token=")[2].replace("\x1b[0m", "").strip()
    assert len(token) == len("tc_link_") + 43
    return token


def exchanged(url: str, token: str) -> dict[str, str]:
    request = urllib.request.Request(
        f"{url}/api/signin/exchange",
        data=json.dumps({"token": token}).encode(),
        headers={"Content-Type": "application/json", "Origin": url},
    )
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        return json.load(answer)


def watched(
    folder: Path,
    *arguments: str,
    interrupt_at: str | None = None,
    close_at: str | None = None,
    env: Mapping[str, str] | None = None,
) -> tuple[int, str]:
    """Run a command in a terminal, which may be closed; return its exit code and all it drew."""
    keyboard, screen = pty.openpty()
    fcntl.ioctl(screen, termios.TIOCSWINSZ, ROWS_AND_COLUMNS)
    plain = {name: value for name, value in environment().items() if name not in ("NO_COLOR", "CI")}
    process = subprocess.Popen(
        (*COMMAND, *arguments),
        cwd=folder,
        env={**plain, "TERM": "xterm-256color", **(env or {})},
        stdin=screen,
        stdout=screen,
        stderr=screen,
        preexec_fn=_own_terminal,  # noqa: PLW1509 - the test has no other threads that hold locks
    )
    os.close(screen)
    drawn = b""
    # The end of a terminal is an error on Linux and an empty read elsewhere.
    with suppress(OSError):
        while part := os.read(keyboard, 65536):
            drawn += part
            if interrupt_at is not None and interrupt_at.encode() in drawn:
                os.write(keyboard, INTERRUPT)
                interrupt_at = None
            if close_at is not None and close_at.encode() in drawn:
                break
    os.close(keyboard)
    return process.wait(PATIENCE), drawn.decode()


def test_a_table_is_drawn(tmp_path: Path) -> None:
    code, drawn = watched(tmp_path, "tools")
    assert code == 0
    assert "What it does" in drawn
    assert "────" in drawn
    assert "\x1b[1m" in drawn
    assert "Call one: toolcrib call NAME" in drawn


def test_progress_is_drawn_and_taken_away(tmp_path: Path) -> None:
    code, drawn = watched(tmp_path, "call", "slow-countdown", "seconds=0.5", "steps=2", "--demo")
    assert code == 0
    assert "2 to go" in drawn
    assert "Lift-off after 0.5 seconds." in drawn
    assert drawn.index("1 to go") < drawn.index("Lift-off")
    assert '"steps"' in drawn


def test_a_gateway_draws_its_panel_and_ends_with_ctrl_c(tmp_path: Path) -> None:
    (tmp_path / "toolcrib.yaml").write_text("openapi: {petstore: {document: petstore.yaml}}")
    code, drawn = watched(tmp_path, "serve", "--port", "0", interrupt_at="Press Ctrl-C to stop.")
    assert code == 0
    assert "╭─" in drawn
    assert "Warning: toolcrib.yaml:1 openapi" in drawn
    assert token_in(drawn)
    assert "Traceback" not in drawn


@pytest.mark.requirement("I1")
def test_link_is_drawn_in_a_terminal_alone(tmp_path: Path) -> None:
    (tmp_path / "toolcrib.yaml").write_text("log: {level: debug, file: gateway.log}")
    with serving(tmp_path) as served:
        code, drawn = watched(tmp_path, "link")
        assert code == 0
        token = token_in(drawn)
        assert f"{served.url}/#token={token}" in drawn
        secret = exchanged(served.url, token)["secret"]
        with pytest.raises(urllib.error.HTTPError) as again:
            exchanged(served.url, token)
        again.value.close()
        assert again.value.code == 401
        kept, kept_drawn = watched(tmp_path, "link", env={"CI": "true"})
        piped = finished(tmp_path, "link")
    assert (kept, piped.returncode) == (2, 2)
    log = (tmp_path / "gateway.log").read_text()
    assert "tc_link_" not in kept_drawn + piped.stdout + piped.stderr + log
    assert secret not in log


@pytest.mark.requirement("I1")
def test_a_terminal_that_is_kept_shows_no_link(tmp_path: Path) -> None:
    code, drawn = watched(
        tmp_path, "serve", "--port", "0", interrupt_at="Press Ctrl-C to stop.", env={"CI": "true"}
    )
    assert code == 0
    assert "toolcrib link" in drawn
    assert "tc_link_" not in drawn


def test_a_new_key_comes_with_advice(tmp_path: Path) -> None:
    code, drawn = watched(tmp_path, "keys", "create", "ci")
    assert code == 0
    assert "Store it now: it cannot be shown again." in drawn


def test_closing_the_terminal_ends_the_gateway(tmp_path: Path) -> None:
    # The exit status is not checked: the terminal can no longer be read by then.
    _, drawn = watched(tmp_path, "serve", "--port", "0", close_at="mcpServers")
    assert "mcpServers" in drawn
