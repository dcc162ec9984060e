"""The table of commands: all there, each with help, and nothing loaded that is not needed."""

import json
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import click
import pytest

from tests.cli.conftest import Shell
from tests.texts import matches
from toolcrib.cli.commands import COMMANDS, toolcrib
from toolcrib.version import VERSION

HEAVY = ("aiohttp", "anyio", "asyncio", "mcp", "pydantic", "rich", "sqlalchemy", "uvicorn", "yaml")


def test_command_table_matches_command_files() -> None:
    folder = Path(str(import_module("toolcrib.cli").__file__)).parent
    text = "".join(file.read_text() for file in folder.glob("*.py"))
    assert sorted(re.findall(r'^@click\.(?:command|group)\("(\w+)"', text, re.MULTILINE)) == sorted(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_describes_every_command(shell: Shell, name: str) -> None:
    done = shell(name, "--help")
    assert done.code == 0
    assert done.out.startswith(f"Usage: toolcrib {name}")
    command = toolcrib.get_command(click.Context(toolcrib), name)
    assert command is not None
    assert command.help


def test_the_help_lists_the_commands_in_order(shell: Shell) -> None:
    done = shell("--help")
    assert done.code == 0
    places = [done.out.index(f"\n  {name} ") for name in COMMANDS]
    assert places == sorted(places)


def test_no_command_is_wrong_use_and_shows_the_help(shell: Shell) -> None:
    done = shell()
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("Usage: toolcrib")


def test_the_version(shell: Shell) -> None:
    assert shell("--version").out == f"toolcrib {VERSION}\n"


def test_an_unknown_command_is_wrong_use(shell: Shell) -> None:
    done = shell("tolls")
    assert (done.code, done.out) == (2, "")
    assert matches("cli", "an unknown command is wrong use", done.err)
    assert "toolcrib --help" in done.err


@pytest.mark.parametrize("arguments", [["--help"], ["call", "--help"], ["tools", "--nope"]])
def test_help_and_wrong_use_load_nothing_heavy(arguments: list[str]) -> None:
    program = (
        "import json, sys; from toolcrib.cli import run; "
        f"run({arguments!r}); print(json.dumps([each for each in {HEAVY!r} if each in sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout.splitlines()[-1]) == []
