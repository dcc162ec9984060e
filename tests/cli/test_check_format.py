"""`toolcrib check --format`: what a provider format cannot express of each tool."""

from itertools import count
from pathlib import Path

import pytest

from tests.cli.conftest import Shell
from tests.texts import matches

TOOLS = '''
from typing import Annotated, Literal

from pydantic import Field

from toolcrib import create_tool


@create_tool(name="say-time")
async def say_time(zone: str, form: Literal["long", "short"] = "long") -> str:
    """Say the time."""
    return "noon"


@create_tool(name="add-up")
async def add_up(step: Annotated[int, Field(multiple_of=5)]) -> int:
    """Add up."""
    return step
'''
ODD = """
from toolcrib import Registry

registry = Registry()
registry.register_tool(
    {
        "name": "say-all",
        "description": "Say it all.",
        "parameters": {"type": "object", "properties": {"a b": {"type": "string"}}, "required": ["a b"]},
    },
    lambda given: "all",
)
"""
_numbers = count()


@pytest.fixture
def module(tmp_path: Path) -> str:
    """A module with one tool that a provider format expresses completely."""
    name = f"told_in_full_{next(_numbers)}"
    (tmp_path / f"{name}.py").write_text(TOOLS)
    return name


@pytest.mark.requirement("F2")
def test_format_losses_are_listed_per_tool(shell: Shell, module: str) -> None:
    done = shell("check", module, "--format", "elevenlabs")
    assert done.code == 0
    lost = [row for row in done.rows if row[0] == "lost"]
    assert ["lost", f"{module}:add-up #/properties/step multipleOf"] in [row[:2] for row in lost]
    assert done.rows[-1] == ["elevenlabs: 0 of 2 tools are declared without loss."]


@pytest.mark.requirement("F2")
def test_exactly_convertible_tool_has_no_losses(shell: Shell, module: str) -> None:
    done = shell("check", module, "--format", "anthropic", "--json")
    assert done.code == 0
    assert done.json == {
        "ok": True,
        "format": "anthropic",
        "tools": {
            f"{module}:say-time": {"declared": True, "exact": True, "losses": []},
            f"{module}:add-up": {"declared": True, "exact": True, "losses": []},
        },
    }
    plain = shell("check", f"{module}.py", "--format", "anthropic")
    assert [row[:2] for row in plain.rows[:2]] == [
        ["exact", f"{module}:say-time"],
        ["exact", f"{module}:add-up"],
    ]


@pytest.mark.requirement("F2")
def test_losses_name_the_place_and_the_keyword(shell: Shell, module: str) -> None:
    tools = shell("check", module, "--format", "gemini", "--json").json["tools"]
    found = tools[f"{module}:add-up"]
    assert (found["declared"], found["exact"]) == (True, False)
    assert {(each["path"], each["keyword"]) for each in found["losses"]} >= {
        ("#/properties/step", "multipleOf")
    }
    assert all(each["message"] for each in found["losses"])


def test_a_tool_that_cannot_be_declared_fails_the_check(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "told_never.py").write_text(ODD)
    done = shell("check", "told_never", "--format", "gemini")
    assert done.code == 1
    assert [row[:2] for row in done.rows if row[0] == "withheld"] == [["withheld", "told_never:say-all"]]
    assert done.rows[-1] == ["1 cannot be declared."]
    said = shell("check", "told_never", "--format", "gemini", "--json").json
    assert said["ok"] is False
    assert said["tools"]["told_never:say-all"]["declared"] is False
    assert "'a b'" in said["tools"]["told_never:say-all"]["reason"]
    assert shell("check", "told_never", "--format", "openai_chat").code == 0


def test_the_tools_of_the_config_are_looked_at_without_a_module(
    shell: Shell, module: str, tmp_path: Path
) -> None:
    (tmp_path / "toolcrib.yaml").write_text(f"functions: [{module}]")
    tools = shell("check", "--format", "openai_responses", "--json").json["tools"]
    assert {f"{module}:say-time", "local:get-datetime"} <= tools.keys()


@pytest.mark.slow
def test_the_tools_of_a_running_gateway(remote: Shell) -> None:
    done = remote("check", "--format", "gemini", "--json")
    assert done.code == 0
    assert any(name.startswith("flashcards:") for name in done.json["tools"])


def test_wrong_use(shell: Shell) -> None:
    unknown = shell("check", "--format", "telex")
    assert unknown.code == 2
    assert "gemini_live" in unknown.err
    both = shell("check", "some_module", "--format", "gemini", "--publish")
    assert both.code == 2
    assert matches("cli", "wrong use", both.err)
    assert shell("check", "no_such_module_anywhere", "--format", "gemini").code != 0
