"""The example app, step by step along its README: added, run, published, installed, used."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cli.processes import COMMAND, PATIENCE, Serving, environment, serving

EXAMPLES = Path(__file__).parents[2] / "examples"
README = (EXAMPLES / "README.md").read_text()
PACKAGE = "com.example.reminder"

pytestmark = pytest.mark.slow


def step(beginning: str) -> str:
    """A command of the README, with the lines it goes on for."""
    found = re.search(rf"^{re.escape(beginning)}(?:.*\\\n)*.*$", README, re.MULTILINE)
    assert found is not None, beginning
    return found[0]


def shell(command: str, env: dict[str, str]) -> str:
    own = Path(sys.executable).parent
    path = {"PATH": f"{own}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=EXAMPLES,
        env={**env, **path},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@contextmanager
def running(env: dict[str, str], port: int) -> Generator[None]:
    """The app in a process of its own, once it answers."""
    process = subprocess.Popen(
        [sys.executable, "reminder_app.py"], cwd=EXAMPLES, env=env, stderr=subprocess.PIPE
    )
    try:
        assert process.stderr is not None
        while b"Uvicorn running" not in (line := process.stderr.readline()):
            assert line, "the app has ended"
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=PATIENCE) as health:
            assert json.load(health)["app"] == PACKAGE
        yield
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE)


@contextmanager
def wearing(served: Serving, env: dict[str, str]) -> Generator["subprocess.Popen[str]"]:
    arguments = ("device", "simulate", "--model", "Even Realities G1", "--user", "ada", "--no-voice")
    process = subprocess.Popen(
        (*COMMAND, *arguments),
        cwd=served.folder,
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.communicate(timeout=PATIENCE)


def lines_until(process: "subprocess.Popen[str]", text: str) -> list[str]:
    assert process.stdout is not None
    lines: list[str] = []
    while not (lines and text in lines[-1]):
        line = process.stdout.readline()
        assert line, lines
        lines.append(line.rstrip())
    return lines


@pytest.mark.requirement("D2", "D7", "D15", "D16")
def test_app_follows_its_readme(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with serving(tmp_path) as served:
        env = environment({"TOOLCRIB_URL": served.url, "TOOLCRIB_KEY": served.admin_key, "PORT": str(port)})
        adding = step('curl -s -X PUT "$TOOLCRIB_URL/api/apps').replace(":7010", f":{port}")
        env["REMINDER_KEY"] = json.loads(shell(adding, env))["apiKey"]
        with running(env, port):
            published = shell(step("toolcrib apps publish"), env)
            assert "com.example.reminder: published version" in published
            assert "add_reminder" in published
            shell(step('curl -s -X PUT "$TOOLCRIB_URL/api/users'), env)
            with wearing(served, env) as glasses:
                lines_until(glasses, "connection: open")
                called: Any = shell(step("toolcrib call com.example.reminder"), env)
                assert "Noted: Buy milk." in called
                lines = lines_until(glasses, "phone speaks: Noted: Buy milk.")
                assert "│ Buy milk                                 │" in lines
