"""The example config is valid without warnings and serves its tools; every example is in the index."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.processes import environment
from toolcrib.config import load
from toolcrib.crib import Crib

EXAMPLES = Path(__file__).parents[2] / "examples"
CONFIG = EXAMPLES / "toolcrib.yaml"
SERVERS = EXAMPLES / "servers.yaml"
COMMANDS = (EXAMPLES / "README.md").read_text().partition("```sh\n")[2].partition("```")[0].splitlines()


@pytest.mark.parametrize("config", [CONFIG, SERVERS], ids=lambda path: path.name)
def test_it_has_no_fault_and_no_warning(config: Path) -> None:
    assert load(config, env={}).warnings == ()


@pytest.mark.requirement("F4", "I7")
async def test_contexts_list_their_tools(tmp_path: Path) -> None:
    env = {"TOOLCRIB_HOME": str(tmp_path)}
    async with Crib.from_config(CONFIG, env=env) as crib:
        assert [each["name"] for each in crib.tools(context="greetings")] == ["say_hello"]
        assert [each["name"] for each in crib.tools(context="clock")] == ["local:get-datetime"]
        assert (await crib.call("say-hello", {"name": "Ada"})).message.startswith("Hello, Ada!")
        assert crib.explain("say-hello")["overrides"] == ["hello_tool:*"]


@pytest.mark.requirement("B7")
@pytest.mark.slow
async def test_server_behind_example_lists_allowed_tools(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    async with Crib.from_config(SERVERS, env={"TOOLCRIB_HOME": str(tmp_path)}) as crib:
        assert [each["name"] for each in crib.tools(search="note")] == ["notes:find_note"]
        found = await crib.call("mcp_notes_find_note", {"about": "milk"})
        assert (found.data, found.message) == (
            {"about": "milk", "text": "Buy two bottles."},
            "Buy two bottles.",
        )
        again = await crib.call("notes:find_note", {"about": "milk"})
        assert again.metadata is not None
        assert again.metadata.cached
        refused = await crib.call("notes:forget_note", {"about": "milk"})
        assert refused.problem is not None
        assert refused.problem.code == "TOOL_NOT_FOUND"


def test_every_example_is_in_the_index() -> None:
    listed = set(re.findall(r"\]\(([^)]+)\)", (EXAMPLES / "README.md").read_text()))
    there = {file.name for file in EXAMPLES.iterdir() if file.is_file() and file.name != "README.md"}
    assert listed == there


@pytest.mark.slow
@pytest.mark.parametrize("line", [line for line in COMMANDS if " serve " not in line])
def test_the_commands_of_the_index_work(tmp_path: Path, line: str) -> None:
    program, *arguments = line.split()
    command = [sys.executable, *(["-m", "toolcrib"] if program == "toolcrib" else []), *arguments]
    own = Path(sys.executable).parent
    env = environment({"TOOLCRIB_HOME": str(tmp_path), "PATH": f"{own}:{os.environ['PATH']}"})
    done = subprocess.run(command, cwd=EXAMPLES, env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
