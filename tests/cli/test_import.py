"""`toolcrib import`: the servers of other hosts."""

import json
import os
import stat
from pathlib import Path

import pytest

from tests.cli.conftest import Shell
from tests.texts import matches

SERVERS = {
    "mcpServers": {
        "time": {"command": "uvx", "args": ["mcp-server-time"], "timeout": 5},
        "notes": {
            "url": "https://notes.example.com/mcp",
            "headers": {"Authorization": "Bearer ${env:NOTES}"},
        },
    }
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps(SERVERS))
    return path


@pytest.mark.requirement("B9")
def test_it_prints_a_config_that_can_be_used(
    shell: Shell, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = shell("import", file.name)
    assert done.code == 0
    assert done.err.startswith("mcp.json mcpServers.time.timeout: is ignored")
    Path("toolcrib.yaml").write_text(done.out)
    monkeypatch.setenv("NOTES", "a secret")
    assert shell("config", "check").out == "All checks pass.\n"
    exported = shell("config", "export", "--json").json
    assert exported["mcp"]["servers"] == {
        "time": {"transport": "stdio", "command": ["uvx", "mcp-server-time"]},
        "notes": {
            "transport": "http",
            "url": "https://notes.example.com/mcp",
            "headers": {"Authorization": "Bearer ${NOTES}"},
        },
    }


@pytest.mark.requirement("B9")
def test_programs_get_json(shell: Shell, file: Path) -> None:
    done = shell("import", file.name, "--json")
    assert (done.code, done.err) == (0, "")
    assert list(done.json["servers"]) == ["time", "notes"]
    assert len(done.json["warnings"]) == 1
    assert done.json["output"] is None


@pytest.mark.requirement("B9", "I2")
def test_a_file_that_holds_secrets_is_for_its_owner(shell: Shell, file: Path) -> None:
    output = Path("toolcrib.yaml")
    done = shell("import", file.name, "--output", "toolcrib.yaml")
    assert (done.code, done.out) == (0, "")
    assert stat.S_IMODE(output.stat().st_mode) == 0o600
    written = output.read_text()
    output.chmod(0o644)
    assert shell("import", file.name, "--output", "toolcrib.yaml", "--force").code == 0
    assert stat.S_IMODE(output.stat().st_mode) == 0o600
    assert output.read_text() == written
    assert shell("import", file.name, "--output", "o.yaml", "--json").json["output"] == "o.yaml"


def test_a_file_without_secrets_has_the_usual_mode(shell: Shell, file: Path) -> None:
    file.write_text('{"mcpServers": {"a": {"command": "x"}}}')
    before = os.umask(0o022)
    try:
        assert shell("import", file.name, "--output", "toolcrib.yaml").code == 0
    finally:
        os.umask(before)
    assert stat.S_IMODE(Path("toolcrib.yaml").stat().st_mode) == 0o644


def test_nothing_is_written_over_unasked(shell: Shell, file: Path) -> None:
    Path("toolcrib.yaml").write_text("mine")
    done = shell("import", file.name, "--output", "toolcrib.yaml")
    assert (done.code, done.out) == (2, "")
    assert matches("cli", "nothing is written over unasked", done.err)
    assert Path("toolcrib.yaml").read_text() == "mine"


@pytest.mark.parametrize(
    "text, said",
    [
        ('{\n"mcpServers": {', "mcp.json:2: is not valid JSON: "),
        ("{}", "mcp.json: contains no MCP servers: it has neither mcpServers nor servers"),
        (
            '{"mcpServers": {"a": {}}}',
            "mcp.json mcpServers.a: is skipped: it has neither a command nor a url",
        ),
    ],
)
def test_nothing_to_import_is_a_failure(shell: Shell, file: Path, text: str, said: str) -> None:
    file.write_text(text)
    done = shell("import", file.name, "--output", "toolcrib.yaml")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith(said)
    assert done.err.endswith("toolcrib: no server was imported\n")
    assert not Path("toolcrib.yaml").exists()
    done = shell("import", file.name, "--json")
    assert done.code == 1
    assert done.json["servers"] == {}
    assert done.json["warnings"][0].startswith(said)


def test_a_file_that_is_not_there(shell: Shell) -> None:
    done = shell("import", "gone.json")
    assert done.code == 1
    assert matches("cli", "a file that is not there", done.err)
