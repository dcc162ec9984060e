"""`toolcrib keys`, in its own process: the store is changed directly."""

from pathlib import Path

import pytest

from tests.cli.conftest import Shell
from tests.texts import matches

HINT = "applies this within seconds"


def test_a_key_from_birth_to_end(shell: Shell, tmp_path: Path) -> None:
    made = shell("keys", "create", "ci", "--permission", "cards:read", "--permission", "dice:*", "--act-as")
    assert made.code == 0
    key = made.out.strip()
    assert key.startswith("tc_")
    assert HINT in made.err
    assert [row[:6] for row in shell("keys", "list").rows] == [
        ["ci", "live", "default", "all", "cards:read dice:*", "yes"]
    ]
    again = shell("keys", "rotate", "ci")
    assert again.out.startswith("tc_")
    assert again.out.strip() != key
    assert shell("keys", "revoke", "ci").code == 0
    assert shell("keys", "list").rows[0][1] == "revoked"
    gone = shell("keys", "revoke", "ci")
    assert (gone.code, gone.err) == (1, "toolcrib: there is no live key named ci\n")
    assert key.encode() not in (tmp_path / ".toolcrib" / "toolcrib.db").read_bytes()


def test_json(shell: Shell) -> None:
    made = shell("keys", "create", "ci", "--json").json
    assert made["name"] == "ci"
    assert made["key"].startswith("tc_")
    (listed,) = shell("keys", "list", "--json").json["keys"]
    assert listed == {name: value for name, value in made.items() if name != "key"}
    assert shell("keys", "rotate", "ci", "--json").json["key"] != made["key"]
    assert shell("keys", "revoke", "ci", "--json").json == {"name": "ci", "revoked": True}
    again = shell("keys", "create", "ci", "--json")
    assert (again.code, again.json["error"]["code"]) == (1, "ALREADY_EXISTS")


def test_contexts_and_the_home_among_them(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "toolcrib.yaml").write_text("contexts: {one: {}, two: {}}")
    made = shell("keys", "create", "a", "--context", "one", "--context", "two", "--json").json
    assert (made["contexts"], made["home"]) == (["one", "two"], "one")
    other = shell(
        "keys", "create", "b", "--context", "one", "--context", "two", "--home", "two", "--json"
    ).json
    assert other["home"] == "two"
    assert shell("keys", "list").rows[1][2:4] == ["two", "one two"]


@pytest.mark.requirement("I1")
def test_a_key_of_a_user(shell: Shell) -> None:
    made = shell("keys", "create", "anns", "--user", "ann@example.org", "--json").json
    assert made["user"] == "ann@example.org"
    shell("keys", "create", "plain")
    assert [row[6] for row in shell("keys", "list").rows] == ["ann@example.org", "none"]


@pytest.mark.requirement("I1")
def test_a_key_that_expires(shell: Shell) -> None:
    made = shell("keys", "create", "brief", "--expires", "30d", "--json").json
    assert 29.9 < (made["expires"] - made["created"]) / 86_400 < 30.1
    dated = shell("keys", "create", "dated", "--expires", "2999-01-31", "--json").json
    assert dated["expires"] == 32474736000.0
    assert [row[9] for row in shell("keys", "list").rows][1] == "2999-01-31 00:00"
    for wrong in ("soon", "30", "2001-01-01", "1y"):
        assert shell("keys", "create", "wrong", "--expires", wrong).code == 2


@pytest.mark.requirement("I1")
def test_a_rotation_with_an_overlap(shell: Shell) -> None:
    shell("keys", "create", "worker")
    made = shell("keys", "rotate", "worker", "--overlap", "1h", "--json").json
    assert 3599 < made["previousUntil"] - made["rotated"] < 3601
    assert shell("keys", "list").rows[0][1].startswith("live, old secret until ")
    assert shell("keys", "rotate", "worker", "--overlap", "often").code == 2
    assert shell("keys", "rotate", "worker", "--json").json["previousUntil"] is None


def test_no_keys_yet(shell: Shell) -> None:
    done = shell("keys", "list")
    assert (done.code, done.out) == (0, "")
    assert matches("cli", "no keys yet", done.err)


@pytest.mark.parametrize(
    "arguments,code,said",
    [
        (["create", "bad name!"], 2, "a key's name has"),
        (["create", "ci", "--permission", "everything"], 2, "write resource:action"),
        (["create", "ci", "--context", "nowhere"], 1, "there is no context named nowhere"),
        (["rotate", "ci"], 1, "there is no live key named ci"),
        (["create"], 2, "NAME"),
        (["steal", "ci"], 2, "No such command 'steal'"),
    ],
)
def test_invalid_key_operations(shell: Shell, arguments: list[str], code: int, said: str) -> None:
    done = shell("keys", *arguments)
    assert (done.code, done.out) == (code, "")
    assert said in done.err
