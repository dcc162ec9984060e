"""`toolcrib reload`: the reported changes, and how the running gateway is found."""

import json
import sys
import threading
from collections.abc import AsyncGenerator, Generator, Iterator
from contextlib import asynccontextmanager, contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.cli.conftest import Shell
from tests.cli.processes import Serving, serving
from tests.parts.ports import free_port
from tests.texts import matches

pytestmark = [pytest.mark.requirement("C5"), pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[2]
PLAN: dict[str, Any] = {
    "added": ["weather"],
    "removed": [],
    "changed": ["files", "notes"],
    "untouched": ["search", "memory"],
    "deferred": {"files": ["c1"], "notes": ["c1", "c2", "c3", "c4", "c5", "c6"]},
    "applied": ["contexts", "pins"],
    "restart": ["server"],
    "warnings": ["contexts.x.tools: y matches no tool (yet)"],
    "dry_run": False,
}
EMPTY: dict[str, Any] = {**{name: [] for name in PLAN}, "deferred": {}, "dry_run": False}


class Answering(HTTPServer):
    """A gateway with one fixed answer that records its requests."""

    def __init__(self, status: int, answer: Any) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.status, self.answer = status, json.dumps(answer).encode()
        self.asked: list[tuple[str, str | None]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Answer(BaseHTTPRequestHandler):
    server: Answering  # pyright: ignore[reportIncompatibleVariableOverride]

    def do_POST(self) -> None:
        self.server.asked.append((self.path, self.headers["Authorization"]))
        self.send_response(self.server.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(self.server.answer)))
        self.end_headers()
        self.wfile.write(self.server.answer)

    def log_message(self, format: str, *args: object) -> None:
        del format, args


@contextmanager
def answering(status: int, answer: Any) -> Generator[Answering]:
    with Answering(status, answer) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def key(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    del shell
    monkeypatch.setenv("TOOLCRIB_KEY", "some-key")


def error(code: str, message: str, **more: Any) -> Any:
    return {"success": False, "error": {"code": code, "message": message, **more}}


def test_the_plan_as_a_table(shell: Shell) -> None:
    with answering(200, PLAN) as gateway:
        done = shell("reload", "--url", gateway.url)
    assert (done.code, done.err) == (0, "")
    assert done.rows == [
        ["added", "weather"],
        ["changed", "files, notes"],
        ["untouched", "search, memory"],
        ["deferred", "files (until this call ends: c1)"],
        ["deferred", "notes (until 6 calls end: c1, c2, c3, c4, c5, …)"],
        ["applied", "contexts, pins"],
        ["restart", "server (after a restart of the gateway)"],
        ["warning", "contexts.x.tools: y matches no tool (yet)"],
    ]
    assert gateway.asked == [("/reload", "Bearer some-key")]


def test_dry_run_is_marked_as_such(shell: Shell) -> None:
    with answering(200, EMPTY) as gateway:
        done = shell("reload", "--dry-run", "--url", gateway.url)
        assert shell("reload", "--dry-run", "--json", "--url", gateway.url).json == EMPTY
    assert (done.code, done.out) == (0, "")
    assert matches("cli", "dry run is marked as such", done.err)
    assert {path for path, _ in gateway.asked} == {"/reload?dry_run=true"}


FAULTS = [
    {"where": "server.port", "message": "must be a whole number", "file": "toolcrib.yaml", "line": 2},
    {"where": "mcp.servers.x", "message": "is wrong", "file": "overlay", "line": None},
    {"where": "", "message": "cannot be read", "file": "", "line": None},
]


def test_a_refused_config_is_a_line_for_each_fault(shell: Shell) -> None:
    with answering(400, error("INVALID_REQUEST", "no", details={"faults": FAULTS})) as gateway:
        done = shell("reload", "--url", gateway.url)
        spelled = shell("reload", "--url", gateway.url, "--json")
    assert (done.code, done.out) == (1, "")
    assert done.err.splitlines() == [
        "toolcrib: the config is invalid; the gateway keeps its current config",
        "toolcrib: toolcrib.yaml:2 server.port: must be a whole number",
        "toolcrib: overlay mcp.servers.x: is wrong",
        "toolcrib: cannot be read",
    ]
    assert (spelled.code, spelled.json["success"]) == (1, False)
    assert spelled.json["error"]["details"]["faults"] == FAULTS


def test_other_errors_are_unchanged(shell: Shell) -> None:
    with answering(403, error("SCOPE_DENIED", "needs crib:servers", details="none")) as gateway:
        done = shell("reload", "--url", gateway.url)
    assert (done.code, done.err) == (1, "toolcrib: needs crib:servers\n")


def nearby(folder: Path, port: int, more: str = "") -> None:
    (folder / "toolcrib.yaml").write_text(f"server: {{port: {port}}}\n{more}")


def test_without_an_address_it_is_the_gateway_of_the_config_here(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with answering(200, EMPTY) as gateway:
        nearby(tmp_path, gateway.server_port)
        assert shell("reload").code == 0
        monkeypatch.delenv("TOOLCRIB_KEY")
        monkeypatch.setenv("TOOLCRIB_ADMIN_KEY", "the-key-of-the-environment-in-this-test")
        assert shell("reload").code == 0
        monkeypatch.delenv("TOOLCRIB_ADMIN_KEY")
        nearby(tmp_path, gateway.server_port, "auth: {admin_key: the-key-of-the-config-file-in-this-test}")
        assert shell("reload", "-c", "toolcrib.yaml").code == 0
        nearby(tmp_path, gateway.server_port)
        (tmp_path / ".toolcrib").mkdir()
        file = tmp_path / ".toolcrib" / "admin.key"
        file.write_text("the-key-of-the-state-folder-in-this-test\n")
        file.chmod(0o600)
        assert shell("reload").code == 0
    keys = [key for _, key in gateway.asked]
    places = ("environment", "config-file", "state-folder")
    assert keys == ["Bearer some-key", *(f"Bearer the-key-of-the-{place}-in-this-test" for place in places)]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The addresses that would be requested."""
    urls: list[str] = []

    async def reload(*, dry_run: bool) -> dict[str, Any]:
        del dry_run
        return EMPTY

    @asynccontextmanager
    async def remote_backend(url: str, key: str) -> AsyncGenerator[SimpleNamespace]:
        del key
        urls.append(url)
        yield SimpleNamespace(reload=reload)

    monkeypatch.setattr("toolcrib.cli.remote_backend.remote_backend", remote_backend)
    return urls


@pytest.mark.parametrize(
    "text, url",
    [
        ("server: {host: 0.0.0.0}", "http://127.0.0.1:6740"),
        ("server: {host: '::', port: 6741}", "http://[::1]:6741"),
        ("server: {host: 127.0.0.9}", "http://127.0.0.9:6740"),
        ("", "http://127.0.0.1:6740"),
        ("server: {prot: 1}", "http://127.0.0.1:6740"),
    ],
)
def test_where_a_gateway_would_listen(
    shell: Shell, tmp_path: Path, asked: list[str], text: str, url: str
) -> None:
    key = "auth: {admin_key: an-operators-key-of-this-test-alone}"
    (tmp_path / "toolcrib.yaml").write_text(f"{key}\n{text}\n")
    assert shell("reload").code == 0
    assert asked == [url]


def test_a_config_that_is_not_there(shell: Shell, asked: list[str]) -> None:
    missing = shell("reload", "-c", "nowhere.yaml")
    assert (missing.code, missing.out, asked) == (2, "", [])
    assert matches("cli", "a config that is not there", missing.err)


def test_missing_gateway_error_gives_advice(shell: Shell, tmp_path: Path) -> None:
    nearby(tmp_path, free_port())
    done = shell("reload")
    assert (done.code, done.out) == (2, "")
    assert matches("cli", "missing gateway error gives advice", done.err)
    assert "`toolcrib serve`" in done.err
    assert "--url" in done.err
    assert shell("reload", "--json").json["error"]["code"] == "INVALID_REQUEST"


def test_a_key_that_does_not_fit_and_none_at_all(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with answering(401, error("UNAUTHENTICATED", "unknown key")) as gateway:
        nearby(tmp_path, gateway.server_port)
        done = shell("reload")
        assert (done.code, done.out) == (2, "")
        assert matches("cli", "a key that does not fit and none at all", done.err)
        monkeypatch.delenv("TOOLCRIB_KEY")
        none = shell("reload")
        assert (none.code, none.out) == (2, "")
        assert matches("cli", "a key that does not fit and none at all 2", none.err)
    assert not (tmp_path / ".toolcrib").exists()


def test_faulty_local_gateway_error_is_reported(shell: Shell, tmp_path: Path) -> None:
    with answering(200, ["no", "gateway"]) as gateway:
        nearby(tmp_path, gateway.server_port)
        done = shell("reload")
    assert (done.code, done.out) == (1, "")
    assert matches("cli", "faulty local gateway error is reported", done.err)


@pytest.fixture(scope="module")
def reloading(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """A real gateway that reads a config file."""
    folder, port = tmp_path_factory.mktemp("reloading"), free_port()
    nearby(folder, port)
    with serving(folder, "--port", str(port)) as running:
        yield running


def test_a_real_gateway(shell: Shell, reloading: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(reloading.folder)
    monkeypatch.delenv("TOOLCRIB_KEY")
    command = [sys.executable, "-ES", "-m", "tests.servers.ledger", str(reloading.folder)]
    server = {"transport": "stdio", "command": command, "cwd": str(ROOT)}
    port = int(reloading.url.rpartition(":")[2])
    nearby(reloading.folder, port, json.dumps({"mcp": {"servers": {"books": server}}})[1:-1])
    assert shell("reload", "--dry-run").rows == [["added", "books"]]
    done = shell("reload")
    assert (done.code, done.rows) == (0, [["added", "books"]])
    monkeypatch.setenv("TOOLCRIB_URL", reloading.url)
    monkeypatch.setenv("TOOLCRIB_KEY", reloading.admin_key)
    called = shell("call", "books:append", "op_id=one")
    assert called.code == 0, called.err
    nearby(reloading.folder, port, "contexts: {few: {toools: []}}")
    refused = shell("reload")
    assert (refused.code, refused.out) == (1, "")
    assert matches("cli", "a real gateway", refused.err)
