"""`toolcrib audit`, in its own process and at a running gateway; and what other commands leave there."""

import sqlite3
from pathlib import Path

import pytest

from tests.cli.conftest import Shell
from tests.cli.processes import Serving

pytestmark = pytest.mark.requirement("I8")


def tamper(folder: Path, statement: str) -> None:
    """Change the table as somebody does who owns the file."""
    connection = sqlite3.connect(folder / ".toolcrib" / "toolcrib.db")
    connection.execute("DROP TRIGGER toolcrib_audit_update")
    connection.execute("DROP TRIGGER toolcrib_audit_delete")
    connection.execute(statement)
    connection.commit()
    connection.close()


def test_commands_are_listed_newest_first(shell: Shell) -> None:
    shell("keys", "create", "ci")
    shell("keys", "create", "not a name")
    shell("keys", "rotate", "ci")
    shell("keys", "revoke", "ci")
    shell("config", "export")
    rows = shell("audit").rows
    assert [(row[0], row[4], row[5], row[6]) for row in rows] == [
        ("5", "config.export", "", "success"),
        ("4", "keys.revoke", "ci", "success"),
        ("3", "keys.rotate", "ci", "success"),
        ("2", "keys.create", "not a name", "INVALID_REQUEST"),
        ("1", "keys.create", "ci", "success"),
    ]
    assert {row[2].partition(":")[0] for row in rows} == {"command_line"}
    assert {row[3] for row in rows} == {"cli"}
    (key,) = shell("keys", "list", "--json").json["keys"]
    assert key["createdBy"].startswith("command_line")
    assert shell("keys", "list").rows[0][8:] == [key["createdBy"], "never", "never"]


def test_list_is_filtered(shell: Shell) -> None:
    shell("keys", "create", "a")
    shell("keys", "revoke", "a")
    assert [each["action"] for each in shell("audit", "--json", "--limit", "1").json["records"]] == [
        "keys.revoke"
    ]
    assert len(shell("audit", "--action", "keys").rows) == 2
    assert len(shell("audit", "--action", "keys.create").rows) == 1
    assert shell("audit", "--actor", "nobody").rows == []
    for since, count in (("2020-01-31", 2), ("2020-01-31T10:00", 2), ("1", 2), ("2999-01-01T00:00+01:00", 0)):
        assert len(shell("audit", "--since", since).rows) == count
    assert shell("audit", "--since", "yesterday").code == 2
    assert shell("audit", "--limit", "0").code == 2


def test_verify_prints_the_head_and_finds_a_noted_one(shell: Shell) -> None:
    shell("keys", "create", "a")
    first = shell("audit", "verify")
    assert first.code == 0
    shell("keys", "create", "b")
    second = shell("audit", "verify", "--head", first.out.strip(), "--json")
    assert (second.code, second.json["intact"], second.json["records"]) == (0, True, 2)
    assert (second.json["headFound"], second.json["broken"]) == (True, None)
    assert second.json["head"] != first.out.strip()
    assert shell("audit", "verify", "--head", "0" * 64).code == 1


def test_verify_does_not_pass_without_a_store(shell: Shell, tmp_path: Path) -> None:
    for options in ((), ("--allow-empty",)):
        absent = shell("audit", "verify", *options)
        assert (absent.code, absent.out, "there is no store at" in absent.err) == (1, "", True)
    assert shell("audit", "verify", "--json").json["error"]["code"] == "NOT_FOUND"
    shell("keys", "create", "a")
    head = shell("audit", "verify").out.strip()
    (tmp_path / ".toolcrib" / "toolcrib.db").unlink()
    assert shell("audit", "verify", "--head", head).code == 1


def test_verify_without_records_needs_an_option(shell: Shell, tmp_path: Path) -> None:
    shell("keys", "create", "a")
    tamper(tmp_path, "DELETE FROM toolcrib_audit")
    empty = shell("audit", "verify")
    assert (empty.code, empty.out, "has no records" in empty.err) == (1, "", True)
    told = shell("audit", "verify", "--json")
    assert (told.code, told.json["intact"], told.json["records"]) == (1, False, 0)
    allowed = shell("audit", "verify", "--allow-empty")
    assert (allowed.code, allowed.out) == (0, "none\n")
    assert shell("audit", "verify", "--allow-empty", "--head", "0" * 64).code == 1


@pytest.mark.parametrize(
    "statement, number",
    [
        ("UPDATE toolcrib_audit SET actor = 'eve' WHERE number = 2", 2),
        ("DELETE FROM toolcrib_audit WHERE number = 1", 1),
    ],
)
def test_verify_names_the_first_broken_record(
    shell: Shell, tmp_path: Path, statement: str, number: int
) -> None:
    for name in "abc":
        shell("keys", "create", name)
    tamper(tmp_path, statement)
    found = shell("audit", "verify")
    assert (found.code, found.out) == (1, "")
    assert f"record {number} " in found.err
    assert shell("audit", "verify", "--json").json["broken"]["number"] == number


def test_verify_finds_a_cut_end_by_a_noted_head(shell: Shell, tmp_path: Path) -> None:
    for name in "abc":
        shell("keys", "create", name)
    head = shell("audit", "verify").out.strip()
    tamper(tmp_path, "DELETE FROM toolcrib_audit WHERE number = 3")
    assert shell("audit", "verify").code == 0
    cut = shell("audit", "verify", "--head", head)
    assert (cut.code, cut.out) == (1, "")
    assert shell("audit", "verify", "--head", head, "--json").json["headFound"] is False


def test_migration_of_the_store_is_recorded(shell: Shell) -> None:
    shell("keys", "create", "a")
    assert shell("migrate", "--store", "--dry-run").code == 0
    assert shell("migrate", "--store").code == 0
    (record, _) = shell("audit", "--json").json["records"]
    assert (record["action"], record["after"]) == ("store.migrate", {"undo": False, "changed": []})


@pytest.mark.slow
def test_running_gateway_lists_and_verifies(
    shell: Shell, gateway: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLCRIB_URL", gateway.url)
    monkeypatch.setenv("TOOLCRIB_KEY", gateway.admin_key)
    shell("keys", "create", "remote")
    (row, *rest) = shell("audit").rows
    assert (row[2], row[3], row[4], row[5]) == ("admin", "rest 127.0.0.1", "keys.create", "remote")
    assert rest == [], "a start that prints no sign-in link makes none"
    verified = shell("audit", "verify", "--json").json
    assert (verified["intact"], verified["records"]) == (True, 1 + len(rest))
    assert shell("audit", "verify", "--head", verified["head"]).code == 0
