"""`toolcrib check --url`: tools of a running gateway are held to the checklist and to what they promise."""

import json
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Shell
from toolcrib.cli.check_run import tool_from_json
from toolcrib.formats.rest import RestFormat
from toolcrib.model import Deprecation, Example, RateLimit
from toolcrib.testing import a_tool

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.requirement("E15")
def test_a_running_gateway_is_checked(remote: Shell) -> None:
    done = remote("check", "--json")
    assert done.code == 0, done.out
    judged = done.json["tools"]["demo:add-numbers"]
    assert len(judged) == 29
    assert judged["registered"]["verdict"] == "pass"
    assert judged["result"]["verdict"] == "person"


@pytest.mark.requirement("E15", "E12")
def test_a_tool_that_takes_longer_than_it_promises_is_short(
    remote: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    from toolcrib.cli.remote_backend import RemoteBackend

    async def usage(desk: RemoteBackend) -> object:
        used = {"errors": 0, "cached": 0, "p50": 1.0, "p95": 70_000.0, "lastUsed": 0.0}
        return {
            "tools": {"demo:add-numbers": {**used, "calls": 20}, "demo:word-count": {**used, "calls": 19}}
        }

    monkeypatch.setattr(RemoteBackend, "usage", usage)
    done = remote("check")
    assert done.code == 1
    ((level, where, what),) = [row for row in done.rows if len(row) == 3]
    assert (level, where) == ("short", "demo:add-numbers response-time")
    assert "70000 ms" in what


@pytest.mark.requirement("E15", "E1a")
def test_server_definition_findings_do_not_fail_the_check(shell: Shell, tmp_path: Path) -> None:
    command = json.dumps([sys.executable, str(EXAMPLES / "notes_server.py")])
    config = f"mcp: {{servers: {{notes: {{transport: stdio, command: {command}}}}}}}"
    (tmp_path / "toolcrib.yaml").write_text(config)
    done = shell("check")
    assert done.code == 0
    told = {row[1]: row[2] for row in done.rows if row[0] == "warning"}
    assert set(told) == {"notes:find_note", "notes:forget_note"}
    assert told["notes:find_note"].startswith("could be improved in parameters, examples, tags: ")
    assert done.rows[-1] == ["All checks pass, with warnings (see above)."]
    shown = shell("check", "--all")
    assert ["short", "notes:find_note tags"] in [row[:2] for row in shown.rows]


def test_a_tool_is_read_back_as_it_was_declared() -> None:
    tool = a_tool(
        "notes:add_note",
        family="mcp",
        description="Add a note.",
        output_schema={"type": "object"},
        cache_ttl=5.0,
        permissions=frozenset({"notes:write"}),
        tags=("notes",),
        examples=(Example(description="One", params={"a": 1}, expected={}),),
        aliases=("note",),
        rate_limit=RateLimit(max_calls=1, window_ms=1000),
        deprecated=Deprecation(since="1.0.0", replacement="add-text", removal_date="2030-01-31"),
        exposed="",
    )
    assert tool_from_json(RestFormat().tool(tool, tool.name), "mcp") == tool
    plain = a_tool("notes:list", exposed="")
    assert tool_from_json(RestFormat().tool(plain, plain.name), "function") == plain
