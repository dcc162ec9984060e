"""`toolcrib serve` as a process of its own: what it prints works when it is pasted, and how it ends."""

import json
import re
import shlex
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

from tests.cli.processes import COMMAND, PATIENCE, Serving, environment, finished, serving
from tests.texts import matches
from toolcrib.version import VERSION

pytestmark = pytest.mark.slow

SECRET = "a-key-that-nobody-should-ever-see-printed"


def fact(served: Serving, name: str) -> str:
    found = re.search(rf"^{name}: (.+)$", served.welcome, re.MULTILINE)
    assert found is not None, served.welcome
    return found[1]


def test_serve_output(gateway: Serving) -> None:
    assert gateway.welcome.startswith(f"Toolcrib {VERSION} is listening on http://127.0.0.1:")
    assert fact(gateway, "MCP") == f"{gateway.url}/mcp"
    assert matches("cli", "serve output", fact(gateway, "Tools"))
    assert fact(gateway, "Admin key") == "in .toolcrib/admin.key"
    assert gateway.admin_key not in gateway.welcome


@pytest.mark.requirement("I1")
def test_no_link_is_printed_to_a_pipe(gateway: Serving) -> None:
    assert "token" not in gateway.welcome
    page = fact(gateway, "Web page")
    assert page.startswith(f"{gateway.url}/ ")
    assert "toolcrib link" in page


def test_the_curl_works_as_it_is_printed(gateway: Serving) -> None:
    found = re.search(r"^Try it:\n(curl .+\n.+)$", gateway.welcome, re.MULTILINE)
    assert found is not None, gateway.welcome
    done = subprocess.run(
        ["bash", "-c", found[1]], cwd=gateway.folder, env=environment(), capture_output=True, check=True
    )
    assert json.loads(done.stdout)["data"]["timezone"] == "UTC"


@pytest.mark.slow
@pytest.mark.requirement("D7", "D16")
def test_printed_demo_commands_work(gateway: Serving) -> None:
    found = re.search(
        r"^Simulate smart .+:\n(.+ toolcrib device simulate .+)\nThen .+:\n(curl .+\n.+)$",
        gateway.welcome,
        re.MULTILINE,
    )
    assert found is not None, gateway.welcome
    glasses = found[1].replace(" toolcrib ", f" {shlex.join(COMMAND)} ")
    with subprocess.Popen(
        ["bash", "-c", f"{glasses} --no-voice"],
        cwd=gateway.folder,
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert any("connection: open" in line for line in process.stdout)
        done = subprocess.run(
            ["bash", "-c", found[2]], cwd=gateway.folder, env=environment(), capture_output=True, check=True
        )
        assert json.loads(done.stdout)["message"] == "Noted: Buy milk."
        assert any("│ 1. Buy milk" in line for line in process.stdout)
        process.communicate(timeout=PATIENCE)
    assert process.returncode == 0


def test_client_snippet_is_valid_client_config(gateway: Serving) -> None:
    snippet = json.loads(gateway.welcome.splitlines()[-1])
    server = snippet["mcpServers"]["toolcrib"]
    assert server["url"] == f"{gateway.url}/mcp"
    assert server["headers"] == {"Authorization": "Bearer ${TOOLCRIB_KEY}"}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.slow
def test_it_ends_cleanly(tmp_path: Path, number: int) -> None:
    with serving(tmp_path) as served:
        assert served.end(number) == (0, "")


@pytest.mark.requirement("C5")
@pytest.mark.slow
def test_sighup_reads_the_config_again(tmp_path: Path) -> None:
    config = tmp_path / "toolcrib.yaml"
    config.write_text("log: {file: gateway.log}")
    with serving(tmp_path) as served:
        for text, said in (
            (
                "log: {file: gateway.log}\nmcp: {servers: {gone: {transport: stdio, command: [/nowhere]}}}",
                "added gone",
            ),
            ("log: [", "SIGHUP: the config is refused, and the running one stays"),
        ):
            config.write_text(text)
            served.process.send_signal(signal.SIGHUP)
            wait_for(tmp_path / "gateway.log", said)
        assert served.end(signal.SIGTERM) == (0, "")


def wait_for(file: Path, text: str) -> None:
    until = time.monotonic() + PATIENCE
    while text not in file.read_text():
        assert time.monotonic() < until, file.read_text()
        time.sleep(0.02)


@pytest.mark.slow
def test_a_key_of_ones_own_a_public_address_and_warnings(tmp_path: Path) -> None:
    lines = ("server: {public_url: https://tools.example/}", f"auth: {{admin_key: {SECRET}}}")
    config = [*lines, "openapi: {petstore: {document: petstore.yaml}}"]
    (tmp_path / "toolcrib.yaml").write_text("\n".join(config))
    with serving(tmp_path) as served:
        assert "listening on https://tools.example\n" in served.welcome
        assert fact(served, "MCP") == "https://tools.example/mcp"
        assert fact(served, "Admin key") == "auth.admin_key of toolcrib.yaml"
        assert '"Authorization: Bearer $TOOLCRIB_KEY"' in served.welcome
        assert "Warning: toolcrib.yaml:3 openapi: " in served.welcome
        assert SECRET not in served.welcome


@pytest.mark.slow
def test_a_key_from_the_environment(tmp_path: Path) -> None:
    with serving(tmp_path, env={"TOOLCRIB_ADMIN_KEY": SECRET}) as served:
        assert fact(served, "Admin key") == "in $TOOLCRIB_ADMIN_KEY"
        assert '"Authorization: Bearer $TOOLCRIB_ADMIN_KEY"' in served.welcome
        assert not (tmp_path / ".toolcrib" / "admin.key").exists()


@pytest.mark.requirement("F7")
def test_port_in_use_is_one_error_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        done = finished(tmp_path, "serve", "--port", str(port))
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"toolcrib: port {port} on 127.0.0.1 is taken by ")


def test_a_bad_config_is_listed_fault_by_fault(tmp_path: Path) -> None:
    (tmp_path / "wrong.yaml").write_text("server:\n  port: many\nautth: {}\n")
    done = finished(tmp_path, "serve", "-c", "wrong.yaml")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines() == [
        "toolcrib: wrong.yaml:2 server.port: must be a whole number",
        "toolcrib: wrong.yaml:3 autth: is not a setting; did you mean auth?",
    ]
    assert not (tmp_path / ".toolcrib").exists()


@pytest.mark.requirement("I1")
@pytest.mark.check(17)
def test_a_trusting_mode_stays_on_this_machine(tmp_path: Path) -> None:
    (tmp_path / "toolcrib.yaml").write_text("auth: {mode: trust_header}")
    done = finished(tmp_path, "serve", "--host", "0.0.0.0", "--port", "0")
    assert (done.returncode, done.stdout) == (2, "")
    assert "command line auth.mode" in done.stderr


@pytest.mark.slow
@pytest.mark.check(17)
def test_a_key_file_that_others_can_read(tmp_path: Path) -> None:
    (tmp_path / ".toolcrib").mkdir(mode=0o700)
    key = tmp_path / ".toolcrib" / "admin.key"
    key.write_text("x" * 40)
    key.chmod(0o644)
    done = finished(tmp_path, "serve", "--port", "0")
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert "chmod 600 .toolcrib/admin.key" in line


@pytest.mark.slow
def test_a_module_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "toolcrib.yaml").write_text("functions: [no_such_module_anywhere]")
    done = finished(tmp_path, "serve", "--port", "0")
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert "no_such_module_anywhere" in line
