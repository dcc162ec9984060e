"""`toolcrib pins`: changed definitions are listed and approved, on a running gateway or in the store."""

import json
import sys
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from tests.cli.conftest import Shell
from tests.cli.processes import PATIENCE, serving
from tests.texts import matches

ROOT = Path(__file__).resolve().parents[2]
CHANGING = """
import os
from tests.servers.plain import Lines, Server, Tool
Lines(Server("changing", {"say": Tool("Say " + os.environ["WORD"], lambda given: given)})).run()
"""


def config(folder: Path, word: str) -> None:
    """A server whose one tool is described by a word."""
    server = {
        "transport": "stdio",
        "command": [sys.executable, "-ES", "-c", CHANGING],
        "cwd": str(ROOT),
        "env": {"WORD": word},
        "pin": "strict",
    }
    (folder / "toolcrib.yaml").write_text(json.dumps({"mcp": {"servers": {"words": server}}}))


def first(shell: Shell) -> dict[str, Any]:
    """Return the one untrusted definition, once the server has listed it."""
    end = monotonic() + PATIENCE
    while not (pins := shell("pins", "list", "--json").json["pins"]):
        assert monotonic() < end
    return pins[0]


@pytest.fixture
def changed(shell: Shell, tmp_path: Path) -> Shell:
    """The shell, where a definition has changed since it was trusted."""
    config(tmp_path, "this")
    made = shell("keys", "create", "any")
    assert made.code == 0, made.err
    assert shell("tools", "--search", "say").rows[0][0] == "words:say"
    config(tmp_path, "that")
    return shell


def test_listed_and_approved_in_the_store(changed: Shell) -> None:
    assert changed("tools", "--search", "say").rows == []
    listed = changed("pins", "list")
    assert (listed.code, listed.err) == (0, "")
    ((name, mode, trusted, seal),) = listed.rows
    assert (name, mode) == ("words:say", "strict")
    assert trusted != seal
    assert changed("pins", "list", "--json").json == {
        "pins": [{"name": name, "trusted": trusted, "seal": seal, "mode": mode}]
    }
    stale = changed("pins", "approve", "words:say", "--seal", "0" * 64)
    assert (stale.code, stale.out) == (2, "")
    assert seal in stale.err
    done = changed("pins", "approve", "words:say", "--seal", seal, "--json")
    assert (done.code, done.json) == (0, {"name": "words:say", "seal": seal})
    assert "next reload" in done.err
    none = changed("pins", "list")
    assert (none.code, none.out) == (0, "")
    assert matches("cli", "listed and approved in the store", none.err)
    assert changed("tools", "--search", "say").rows[0][0] == "words:say"


@pytest.mark.slow
def test_on_a_running_gateway(changed: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(tmp_path) as gateway:
        monkeypatch.setenv("TOOLCRIB_URL", gateway.url)
        monkeypatch.setenv("TOOLCRIB_KEY", gateway.admin_key)
        pin = first(changed)
        listed = changed("pins", "list")
        assert (listed.code, listed.err) == (0, "")
        assert listed.rows == [["words:say", "strict", pin["trusted"], pin["seal"]]]
        done = changed("pins", "approve", "mcp_words_say")
        assert (done.code, done.err) == (0, "")
        assert matches("cli", "changed definition is approved", done.out, seal=pin["seal"][:12])
        assert matches("cli", "on a running gateway 2", changed("pins", "list").err)
        again = changed("pins", "approve", "words:say")
        assert (again.code, again.err) == (1, "toolcrib: there is no changed definition of words:say\n")
        assert changed("tools", "--search", "say").rows[0][0] == "words:say"


def test_nothing_has_changed(shell: Shell, tmp_path: Path) -> None:
    assert shell("pins", "list", "--json").json == {"pins": []}
    assert shell("pins", "approve", "local:get-datetime").code == 1
    assert not (tmp_path / ".toolcrib" / "admin.key").exists()
