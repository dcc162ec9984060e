"""`toolcrib check`: config, withheld tools, idle entries, and the checklist of a good tool."""

from pathlib import Path

import pytest

from tests.cli.conftest import Shell
from toolcrib.cli.findings import of_status

GOOD = '''
from typing import Annotated
from pydantic import Field
from toolcrib import tool

@tool(category="query", tags=["x"], examples=[
    {"description": "One", "params": {"card_id": "c1"}, "expectedResult": {"title": "One"}}
])
async def get_card(card_id: Annotated[str, Field(description="Which card.")]) -> dict[str, str]:
    """Look up one card by its id and return its title. Use it before changing a card."""
    return {"title": card_id}
'''

SHORT = """
from toolcrib import tool

@tool
async def get_datetime(zone: str) -> str:
    \"\"\"Says the time.\"\"\"
    return zone
"""


def test_the_default_is_fine(shell: Shell) -> None:
    done = shell("check")
    assert (done.code, done.out) == (0, "Nothing falls short.\n")


@pytest.mark.parametrize("named", ["check_good_tools", "check_good_tools.py"])
def test_a_good_module(shell: Shell, tmp_path: Path, named: str) -> None:
    (tmp_path / "check_good_tools.py").write_text(GOOD)
    assert shell("check", named).code == 0


def test_a_module_that_falls_short(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "check_short_module.py").write_text(SHORT)
    done = shell("check", "check_short_module", "--json")
    assert (done.code, done.json["ok"]) == (1, False)
    assert {each["where"] for each in done.json["findings"]} == {"check_short_module:get-datetime"}
    assert {each["rule"] for each in done.json["findings"]} == {"description", "examples", "discovery"}


def test_a_module_that_is_not_there(shell: Shell) -> None:
    done = shell("check", "no_such_module_anywhere")
    assert done.code == 1
    assert done.rows[0][:2] == ["fault", "no_such_module_anywhere"]


@pytest.mark.requirement("A4", "F4")
def test_tools_of_the_config_that_are_withheld_or_match_nothing(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "check_first.py").write_text(GOOD)
    (tmp_path / "check_second.py").write_text(GOOD)
    config = (
        "functions: [check_first, check_second]\ncontexts: {few: {tools: [nothing:here]}}\nenergy: {start: 5}"
    )
    (tmp_path / "toolcrib.yaml").write_text(config)
    done = shell("check", "--json")
    assert done.code == 1
    found = {(each["level"], each["rule"], each["where"]) for each in done.json["findings"]}
    assert found == {
        ("warning", "config", "toolcrib.yaml:3 energy"),
        ("fault", "withheld", "check_second:get-card"),
        ("warning", "config", "config"),
    }
    assert any("nothing:here matches no tool" in each["message"] for each in done.json["findings"])


def test_tools_of_the_config_are_held_to_the_checklist(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "check_config_short.py").write_text(SHORT.replace("get_datetime", "say_time"))
    (tmp_path / "toolcrib.yaml").write_text("functions: [check_config_short]")
    done = shell("check")
    assert done.code == 1
    assert {row[0] for row in done.rows} == {"short"}


def test_a_module_of_the_config_that_does_not_import(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "toolcrib.yaml").write_text("functions: [no_such_module_anywhere]")
    done = shell("check")
    assert done.code == 1
    assert done.rows[0][:2] == ["fault", "functions"]
    assert shell("tools").code == 2


def test_a_bad_config_is_all_there_is_to_say(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "toolcrib.yaml").write_text("servr: {}\nlimits: {per_user: fast}\n")
    done = shell("check")
    assert done.code == 1
    assert [row[0] for row in done.rows] == ["fault", "fault"]


def test_a_store_that_cannot_be_opened(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / ".toolcrib").mkdir()
    (tmp_path / ".toolcrib" / "toolcrib.db").write_bytes(b"this is no database" * 100)
    done = shell("check")
    assert done.code == 1
    assert done.rows[0][:2] == ["fault", "store"]


@pytest.mark.requirement("B6")
def test_a_server_that_does_not_start_is_a_fault_and_one_that_sleeps_is_not(
    shell: Shell, tmp_path: Path
) -> None:
    gone = "{transport: stdio, command: [/nowhere/at-all], restart: {enabled: false}}"
    (tmp_path / "toolcrib.yaml").write_text(f"mcp: {{servers: {{gone: {gone}}}}}")
    done = shell("check")
    assert done.code == 1
    ((level, where, what),) = done.rows
    assert (level, where) == ("fault", "gone")
    assert "/nowhere/at-all" in what
    source = {"id": "x", "lastError": None}
    status = {"withheld": [], "warnings": [], "sources": [{**source, "state": "asleep"}]}
    assert of_status(status) == []
    (found,) = of_status({**status, "sources": [{**source, "state": "crash_loop"}]})
    assert (found.level, found.message) == ("fault", "crash_loop")
