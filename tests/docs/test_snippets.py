"""What a reader copies works: Python runs, commands answer, configs pass their check, JSON parses."""

import ast
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.docs.pages import README, Fence, fences, name_of, pages
from tests.docs.snippets import BIN, FRAGMENT, Reader, is_typed, needs_gateway, served, surroundings
from tests.parts.ports import free_port
from tests.parts.registry import may_skip
from toolcrib.config import ConfigError, parse

ENVIRONMENT = {
    "TOOLCRIB_ADMIN_KEY": "the-operators-own-key-of-these-snippets",
    "DB_PASSWORD": "secret",
    "SEARCH_TOKEN": "secret",
    "COLLECTOR_KEY": "secret",
}


def blocks(language: str) -> list[tuple[Path, Fence]]:
    found = [
        (page, fence) for page in pages() for fence in fences(page.read_text(encoding="utf-8"), language)
    ]
    assert found, f"there are no {language} blocks: the gate looks past them"
    return found


def place_of(page: Path, fence: Fence) -> str:
    return f"{name_of(page)}:{fence.line}"


def faults_of_yaml(code: str) -> list[str]:
    """Return the findings for a config; warnings count, since an example must have an effect."""
    try:
        document = parse(code, "the example", ENVIRONMENT)
    except ConfigError as error:
        return [str(error)]
    return [str(each) for each in document.warnings]


def test_every_config_passes_the_check() -> None:
    found = {place_of(page, fence): faults_of_yaml(fence.code) for page, fence in blocks("yaml")}
    assert {place: faults for place, faults in found.items() if faults} == {}


def test_every_json_block_parses() -> None:
    for page, fence in blocks("json"):
        assert json.loads(fence.code) is not None, place_of(page, fence)


def test_every_python_block_compiles() -> None:
    for page, fence in blocks("python"):
        ast.parse(fence.code, place_of(page, fence))


def test_all_python_of_the_readme_is_run() -> None:
    assert [fence.mark for fence in fences(README.read_text(encoding="utf-8"), "python")].count(FRAGMENT) == 0


@pytest.mark.slow
@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_page_snippets_give_the_documented_output(page: Path, tmp_path: Path) -> None:
    text = page.read_text(encoding="utf-8")
    if not needs_gateway(text):
        assert Reader(tmp_path).follow(text) == []
        return
    if shutil.which("curl") is None and may_skip():
        pytest.skip("needs curl")
    port = free_port()
    with served(tmp_path, port):
        key = (tmp_path / ".toolcrib" / "admin.key").read_text().strip()
        # The README sets these itself; every other page builds on it.
        known = {"TOOLCRIB_KEY": key, "TOOLCRIB_URL": f"http://127.0.0.1:{port}"}
        reader = Reader(tmp_path, port, {} if page == README else known)
        assert reader.follow(text) == []


@pytest.mark.slow
def test_documented_stdio_command_starts(tmp_path: Path) -> None:
    (tmp_path / "toolcrib.yaml").write_text("functions: []\n")
    (tmp_path / ".venv").symlink_to(BIN.parent)
    told = [
        server
        for _, fence in blocks("json")
        for server in json.loads(fence.code).get("mcpServers", {}).values()
        if "command" in server
    ]
    assert told
    for server in told:
        command = [server["command"], *server["args"]]
        done = subprocess.run(
            command,
            cwd=tmp_path,
            env=surroundings({}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr.decode()


def test_the_readme_shows_commands_that_are_run() -> None:
    typed = [fence for fence in fences(README.read_text(encoding="utf-8"), "sh") if is_typed(fence)]
    said = "".join(fence.code for fence in typed)
    assert "curl" in said
    assert "toolcrib call" in said


@pytest.mark.parametrize(
    "page",
    [
        "```python\nraise SystemExit(3)\n```\n",
        "```python\nimport warnings\nwarnings.warn('x')\n```\n",
        "```sh\ntoolcrib call no-such-tool\n```\n",
        "```sh\ncurl -s http://127.0.0.1:6740/health\n```\n",
        "```sh\ntoolcrib serve --no-such-option\ntoolcrib --version\n```\n",
    ],
)
def test_the_gate_of_snippets_can_fail(page: str, tmp_path: Path) -> None:
    closed = free_port()
    assert len(Reader(tmp_path, closed).follow(page)) == 1


def test_a_reader_saves_files_and_keeps_exports(tmp_path: Path) -> None:
    page = (
        "```python\n# mine.py\nVALUE = 7\n```\n"
        "```yaml\n# toolcrib.yaml\nlegacy: true\n```\n"
        "```python\nfrom mine import VALUE\n\nassert VALUE == 7\n```\n"
        "```python fragment\nraise OSError\n```\n"
        '```sh\nexport WORD="here"\n```\n'
        '```sh\nexport OTHER="$WORD"; test "$OTHER" = here\n```\n'
        "```sh\nmake run\n```\n"
    )
    assert Reader(tmp_path).follow(page) == []
    assert (tmp_path / "toolcrib.yaml").read_text().endswith("legacy: true\n")


def test_the_gate_of_configs_can_fail() -> None:
    assert faults_of_yaml("limits: {per_user: often}\n")
    assert faults_of_yaml("openapi: {a: {document: x}}\n")
    assert faults_of_yaml("server: {prot: 1}\n")
    assert faults_of_yaml("functions: [my_tools]\n") == []
