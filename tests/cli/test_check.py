"""`toolcrib check`: config, withheld tools, idle entries, and the checklist of a good tool."""

from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Shell
from tests.testing.modules import ACTING, GOOD, SHORT
from tests.texts import matches
from toolcrib.cli.check_run import degraded_findings, status_findings
from toolcrib.sdk.checklist import ITEMS


def test_the_default_is_fine(shell: Shell) -> None:
    done = shell("check")
    assert (done.code, done.out) == (0, "All checks pass.\n")


@pytest.mark.requirement("E15")
def test_good_module_leaves_human_review_items(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "check_good_tools.py").write_text(GOOD)
    done = shell("check", "check_good_tools")
    assert done.code == 0
    assert [row[:2] for row in done.rows] == [
        ["person", "check_good_tools:get-card description"],
        ["person", "check_good_tools:get-card tests"],
        ["check_good_tools:get-card: 27 of 29 checks pass, 2 need a human"],
        ["All checks pass."],
    ]
    assert shell("check", "check_good_tools.py").out == done.out


@pytest.mark.requirement("E15")
def test_a_module_that_falls_short(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "check_short_module.py").write_text(SHORT)
    done = shell("check", "check_short_module", "--json")
    assert (done.code, done.json["ok"]) == (1, False)
    assert {each["where"] for each in done.json["findings"]} == {"check_short_module:say-time"}
    assert {each["level"] for each in done.json["findings"]} == {"short"}
    assert {each["rule"] for each in done.json["findings"]} == {
        "description",
        "parameters",
        "examples",
        "tags",
    }
    judged = done.json["tools"]["check_short_module:say-time"]
    assert list(judged) == [item.id for item in ITEMS]
    assert judged["tags"]["verdict"] == "short"
    assert judged["tags"]["message"].startswith("there is no tag")
    assert judged["description"].keys() == {"verdict", "message"}


@pytest.mark.requirement("E15")
def test_every_item_is_shown_on_request(shell: Shell, tmp_path: Path) -> None:
    text = SHORT.replace("@create_tool", '@create_tool(deprecated={"since": "1.0.0"})')
    (tmp_path / "check_all_module.py").write_text(text)
    done = shell("check", "check_all_module", "--all")
    mine = [row for row in done.rows if len(row) == 3 and row[1].startswith("check_all_module:say-time ")]
    assert [row[1].split()[1] for row in mine] == [*(item.id for item in ITEMS), "deprecated", "deprecated"]
    assert {row[0] for row in mine} == {"pass", "short", "person", "n/a"}
    assert any(row[0].startswith("local:get-datetime: 24 of 29 ") for row in done.rows)


@pytest.mark.requirement("E15")
def test_mutating_tools_run_only_with_option(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "check_acting.py").write_text(ACTING)
    assert shell("check", "check_acting").code == 0
    assert not (tmp_path / "check_acting.done").exists()
    assert shell("check", "check_acting", "--run-mutations", "--user", "u1").code == 0
    assert (tmp_path / "check_acting.done").exists()


def test_a_module_that_is_not_there(shell: Shell) -> None:
    done = shell("check", "no_such_module_anywhere")
    assert done.code == 1
    assert [row[:2] for row in done.rows] == [["fault", "no_such_module_anywhere"]]


@pytest.mark.requirement("A4", "F4")
def test_tools_of_the_config_that_are_withheld_or_match_nothing(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "check_first.py").write_text(GOOD)
    (tmp_path / "check_second.py").write_text(GOOD)
    config = "functions: [check_first, check_second]\ncontexts: {few: {tools: [nothing:here]}}"
    (tmp_path / "toolcrib.yaml").write_text(config)
    done = shell("check", "--json")
    assert done.code == 1
    found = {(each["level"], each["rule"], each["where"]) for each in done.json["findings"]}
    assert found == {
        ("fault", "withheld", "check_second:get-card"),
        ("warning", "config", "config"),
    }
    assert any("nothing:here matches no tool" in each["message"] for each in done.json["findings"])


@pytest.mark.requirement("E15")
def test_tools_of_the_config_are_held_to_the_checklist_once(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "check_config_short.py").write_text(SHORT)
    (tmp_path / "toolcrib.yaml").write_text("functions: [check_config_short]")
    alone = shell("check")
    assert alone.code == 1
    assert {row[0] for row in alone.rows if len(row) == 3} == {"short", "person"}
    assert shell("check", "check_config_short.py").out == alone.out


def test_import_error_is_one_finding_others_are_checked(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "check_broken.py").write_text("raise OSError('no disk')")
    (tmp_path / "check_beside.py").write_text(SHORT)
    (tmp_path / "toolcrib.yaml").write_text("functions: [check_broken, check_beside]")
    done = shell("check", "check_broken")
    assert done.code == 1
    assert [row[:2] for row in done.rows if row[0] == "fault"] == [["fault", "functions"]]
    assert "check_beside:say-time tags" in {row[1] for row in done.rows if len(row) == 3}
    assert shell("tools").code == 2


def test_invalid_config_ends_the_check(shell: Shell, tmp_path: Path) -> None:
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
def test_failed_server_is_a_fault_idle_server_is_not(shell: Shell, tmp_path: Path) -> None:
    gone = "{transport: stdio, command: [/nowhere/at-all], restart: {enabled: false}}"
    (tmp_path / "toolcrib.yaml").write_text(f"mcp: {{servers: {{gone: {gone}}}}}")
    done = shell("check")
    assert done.code == 1
    ((level, where, what),) = done.rows
    assert (level, where) == ("fault", "gone")
    assert "/nowhere/at-all" in what
    source = {"id": "x", "lastError": None}
    status = {"withheld": [], "warnings": [], "sources": [{**source, "state": "asleep"}]}
    assert status_findings(status) == []
    (found,) = status_findings({**status, "sources": [{**source, "state": "crash_loop"}]})
    assert (found.level, found.message) == ("fault", "crash_loop")


def test_tools_whose_source_is_down_are_named() -> None:
    def listed(source: str, tool: str, *, degraded: bool) -> dict[str, Any]:
        return {"source": source, "names": {"qualified": f"{source}:{tool}"}, "degraded": degraded}

    tools = [
        listed("atis", "get", degraded=True),
        listed("notes", "add", degraded=False),
        listed("atis", "put", degraded=True),
    ]
    (found,) = degraded_findings(tools)
    assert (found.level, found.where) == ("warning", "atis")
    assert found.message.endswith("atis:get, atis:put")


@pytest.mark.requirement("E16")
def test_breaking_change_of_published_definition_fails(shell: Shell, tmp_path: Path) -> None:
    kept = tmp_path / "check_kept.published.json"
    (tmp_path / "check_kept.py").write_text(GOOD)
    done = shell("check", "check_kept", "--publish")
    assert (done.code, done.err) == (0, f"published in {kept}\n")
    kept.write_text(kept.read_text().replace('"required": [\n', '"required_before": [\n'))
    done = shell("check", "check_kept", "--publish")
    assert done.code == 1
    assert matches("cli", "breaking change of published definition fails", done.err)
    (row,) = [row for row in done.rows if row[0] == "short"]
    assert row[1] == "check_kept:get-card published"
    assert "params.card_id: required is True, was False" in row[2]


def test_only_a_module_can_be_published(shell: Shell) -> None:
    done = shell("check", "--publish")
    assert done.code == 2
    assert "MODULE" in done.err


@pytest.mark.requirement("A4")
def test_a_flat_name_that_leads_to_another_tool_is_a_warning() -> None:
    shadowed = [{"name": "evil:read", "source": "evil", "reason": "its flat name read leads to files:read"}]
    (found,) = status_findings({"withheld": [], "shadowed": shadowed, "warnings": [], "sources": []})
    assert (found.level, found.rule, found.where) == ("warning", "flat_name", "evil:read")
