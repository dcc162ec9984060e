"""`toolcrib explain`, in its own process."""

from pathlib import Path

from tests.cli.conftest import Shell
from tests.texts import matches

CONFIG = """
contexts:
  nothing: {tools: []}
overrides:
  "local:*": {rate_limit: 5/min}
"""


REPAIRED = """
from toolcrib import Registry

registry = Registry()
registry.register_tool({"name": "add-note", "parameters": {"properties": {}}}, lambda arguments: arguments)
"""


def test_explain_allowed_tool_lists_steps(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "toolcrib.yaml").write_text(CONFIG)
    done = shell("explain", "get_datetime", "--user", "u1")
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert matches("cli", "explain allowed tool lists steps", lines[0])
    assert "contexts\tpass" in lines
    assert "Names: local:get-datetime, get_datetime, get-datetime" in lines
    assert any(line.startswith("Steps: record > recover > ") and line.endswith(" > local") for line in lines)
    assert any(line.startswith("Changed at registration: the override local:* sets ") for line in lines)


def test_explain_hidden_tool_gives_reason(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "toolcrib.yaml").write_text(CONFIG)
    done = shell("explain", "get-datetime", "--context", "nothing")
    assert done.code == 0
    assert matches("cli", "explain hidden tool gives reason", done.out)


def test_json(shell: Shell) -> None:
    found = shell("explain", "get-datetime", "--json").json
    assert found["visible"] is True
    assert found["steps"][0] == "record"


def test_an_unknown_tool_fails(shell: Shell) -> None:
    done = shell("explain", "get-datetim")
    assert (done.code, done.out) == (1, "")
    assert matches("cli", "an unknown tool fails", done.err)
    unknown = shell("explain", "get-datetim", "--json")
    assert (unknown.code, unknown.json["visible"]) == (1, False)


def test_repaired_name_is_reported(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "explain_repaired.py").write_text(REPAIRED)
    (tmp_path / "toolcrib.yaml").write_text("functions: [explain_repaired]")
    assert matches("cli", "repaired name is reported", shell("explain", "add-note").out)
