"""The example config holds, warns of nothing, and serves what it says; every example is in the index."""

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
COMMANDS = (EXAMPLES / "README.md").read_text().partition("```sh\n")[2].partition("```")[0].splitlines()


def test_it_has_no_fault_and_no_warning() -> None:
    assert load(CONFIG, env={}).warnings == ()


@pytest.mark.requirement("F4", "I7")
async def test_its_contexts_show_what_they_say(tmp_path: Path) -> None:
    env = {"TOOLCRIB_HOME": str(tmp_path)}
    async with Crib.from_config(CONFIG, env=env) as crib:
        assert [each["name"] for each in crib.tools(context="greetings")] == ["say_hello"]
        assert [each["name"] for each in crib.tools(context="clock")] == ["local:get-datetime"]
        assert (await crib.call("say-hello", {"name": "Ada"})).message.startswith("Hello, Ada!")
        assert crib.explain("say-hello")["overrides"] == ["hello_tool:*"]


def test_every_example_is_in_the_index() -> None:
    listed = set(re.findall(r"\]\(([^)]+)\)", (EXAMPLES / "README.md").read_text()))
    there = {file.name for file in EXAMPLES.iterdir() if file.is_file() and file.name != "README.md"}
    assert listed == there


@pytest.mark.parametrize("line", [line for line in COMMANDS if " serve " not in line])
def test_the_commands_of_the_index_work(tmp_path: Path, line: str) -> None:
    program, *arguments = line.split()
    command = [sys.executable, *(["-m", "toolcrib"] if program == "toolcrib" else []), *arguments]
    env = environment({"TOOLCRIB_HOME": str(tmp_path)})
    done = subprocess.run(command, cwd=EXAMPLES, env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
