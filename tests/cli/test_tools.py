"""`toolcrib tools`, in its own process."""

from pathlib import Path

import pytest

from tests.cli.conftest import Shell
from tests.texts import matches

LOCAL = ["local:get-datetime", "local:control-volume", "local:search-web"]
CORE = ["crib:search_tools", "crib:mcp_add_server", "crib:mcp_list_servers"]


def test_a_pipe_gets_a_line_for_each_tool(shell: Shell) -> None:
    done = shell("tools")
    assert (done.code, done.err) == (0, "")
    assert [row[0] for row in done.rows] == LOCAL + CORE
    assert done.rows[0][1:] == ["query", "Tell the current date and time in a time zone."]


def test_listing_is_not_recorded(shell: Shell, tmp_path: Path) -> None:
    assert shell("tools").code == 0
    assert shell("call", "get-datetime").code == 0
    assert shell("explain", "get-datetime").code == 0
    assert shell("keys", "list").code == 0
    assert shell("pins", "list").code == 0
    assert shell("check").code == 0
    assert shell("config", "export").code == 0
    assert list(tmp_path.iterdir()) == []


def test_json_output_equals_rest_response(shell: Shell) -> None:
    tools = shell("tools", "--json", "--demo").json["tools"]
    add = next(tool for tool in tools if tool["name"] == "demo:add-numbers")
    assert add["names"] == {"qualified": "demo:add-numbers", "safe": "add_numbers", "flat": "add-numbers"}
    assert add["inputSchema"]["required"] == ["numbers"]


@pytest.mark.requirement("F8")
def test_search_sorts_by_relevance(shell: Shell) -> None:
    done = shell("tools", "--demo", "--search", "NUMBERS total")
    assert done.rows[0][0] == "demo:add-numbers"
    assert "local:get-datetime" not in [row[0] for row in done.rows]


def test_a_format_and_a_style(shell: Shell) -> None:
    tools = shell("tools", "--format", "mcp", "--style", "flat").json["tools"]
    assert tools[0]["name"] == "get-datetime"
    assert "annotations" in tools[0]


def test_a_context_shows_its_own_in_its_own_style(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "toolcrib.yaml").write_text("contexts: {few: {tools: [get_datetime], style: safe}}")
    assert [row[0] for row in shell("tools", "--context", "few").rows] == ["get_datetime"]


def test_empty_list_is_reported_on_stderr(shell: Shell) -> None:
    done = shell("tools", "--search", "nothing-of-the-kind")
    assert (done.code, done.out) == (0, "")
    assert matches("cli", "empty list is reported on stderr", done.err)


def test_an_unknown_context_fails(shell: Shell) -> None:
    done = shell("tools", "--context", "nowhere")
    assert (done.code, done.out) == (1, "")
    assert matches("cli", "an unknown context fails", done.err)


@pytest.mark.parametrize(
    "arguments,said",
    [
        (["--format", "morse"], "there is no format named morse; there are rest, mcp"),
        (["--style", "loud"], "--style"),
        (["--user", "a\nb"], "--user must be printable text"),
        (["--format", "mcp", "--style", "qualified"], "qualified"),
    ],
)
def test_wrong_use(shell: Shell, arguments: list[str], said: str) -> None:
    done = shell("tools", *arguments)
    assert (done.code, done.out) == (2, "")
    assert said in done.err


def test_wrong_use_in_json(shell: Shell) -> None:
    done = shell("tools", "--nope", "--json")
    assert (done.code, done.err) == (2, "")
    assert done.json["success"] is False
    assert done.json["error"]["code"] == "INVALID_REQUEST"
    assert "--nope" in done.json["error"]["message"]
