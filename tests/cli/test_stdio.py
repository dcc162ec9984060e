"""`toolcrib stdio` as a process of its own: protocol on standard output, everything else elsewhere."""

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.processes import COMMAND, PATIENCE, environment, finished
from tests.texts import matches

HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}

LOUD = '''
from toolcrib import create_tool

@create_tool(category="query", tags=["test"])
async def make_noise() -> str:
    """Prints to standard output, where only the protocol belongs."""
    print("NOISE")
    return "done"
'''


class Client:
    """An MCP client of a few lines."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.process = subprocess.Popen(
            (*COMMAND, "stdio", *arguments),
            cwd=folder,
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._number = 0

    def ask(self, method: str, params: dict[str, Any]) -> Any:
        """Send one request and return its result."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._number += 1
        message = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())["result"]

    def end(self) -> tuple[int, str]:
        """Hang up; return the exit code and the log."""
        out, err = self.process.communicate(timeout=PATIENCE)
        assert out == ""
        return self.process.returncode, err


def test_a_client_lists_calls_and_hangs_up(tmp_path: Path) -> None:
    (tmp_path / "stdio_loud_tools.py").write_text(LOUD)
    (tmp_path / "toolcrib.yaml").write_text(
        "functions: [stdio_loud_tools]\ncontexts: {few: {tools: [make_noise, get_datetime]}}"
    )
    client = Client(tmp_path, "--context", "few")
    assert client.ask("initialize", HELLO)["serverInfo"]["name"] == "toolcrib"
    names = [tool["name"] for tool in client.ask("tools/list", {})["tools"]]
    assert names == ["make_noise", "get_datetime"]
    answer = client.ask("tools/call", {"name": "make_noise", "arguments": {}})
    assert answer["content"][0]["text"] == "done"
    code, log = client.end()
    assert code == 0
    assert '"tool":"stdio_loud_tools:make-noise"' in log


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.slow
def test_a_signal_ends_it_while_the_client_is_silent(tmp_path: Path, number: int) -> None:
    client = Client(tmp_path, "--demo")
    client.ask("initialize", HELLO)
    client.process.send_signal(number)
    assert client.process.wait(PATIENCE) == 0
    assert client.end() == (0, "")


def test_an_unknown_context(tmp_path: Path) -> None:
    done = finished(tmp_path, "stdio", "--context", "nowhere")
    assert (done.returncode, done.stdout) == (1, "")
    assert matches("cli", "an unknown context", done.stderr)


def test_a_bad_config(tmp_path: Path) -> None:
    done = finished(tmp_path, "stdio", "-c", "none.yaml")
    assert (done.returncode, done.stdout) == (2, "")
    assert matches("cli", "a bad config", done.stderr)
