"""`toolcrib explain`, in its own process."""

from pathlib import Path

from tests.cli.conftest import Shell

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
    assert lines[0] == "local:get-datetime may be used by user:u1 in the context default."
    assert "contexts\tyes" in lines
    assert "Names: local:get-datetime, get_datetime, get-datetime" in lines
    assert any(line.startswith("Steps: record > recover > ") and line.endswith(" > local") for line in lines)
    assert any(line.startswith("Changed on the way in: the override local:* sets ") for line in lines)


def test_explain_hidden_tool_gives_reason(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "toolcrib.yaml").write_text(CONFIG)
    done = shell("explain", "get-datetime", "--context", "nothing")
    assert done.code == 0
    assert "may not be used by local in the context nothing." in done.out
    assert "Reason: local:get-datetime is not selected by the context nothing" in done.out


def test_json(shell: Shell) -> None:
    found = shell("explain", "get-datetime", "--json").json
    assert found["visible"] is True
    assert found["steps"][0] == "record"


def test_an_unknown_tool_fails(shell: Shell) -> None:
    done = shell("explain", "get-datetim")
    assert (done.code, done.out) == (1, "")
    assert "did you mean local:get-datetime?" in done.err
    unknown = shell("explain", "get-datetim", "--json")
    assert (unknown.code, unknown.json["visible"]) == (1, False)


def test_repaired_name_is_reported(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "explain_repaired.py").write_text(REPAIRED)
    (tmp_path / "toolcrib.yaml").write_text("functions: [explain_repaired]")
    assert "Changed on the way in: #/type was missing" in shell("explain", "add-note").out
