"""`toolcrib link`, and the file by which commands find the gateway that runs with a folder's state."""

import json
import signal
from pathlib import Path

import pytest

from tests.cli.conftest import Shell
from tests.cli.processes import Serving, serving
from toolcrib.cli import discovery, keys
from toolcrib.cli.backend import Target
from toolcrib.cli.discovery import GATEWAY_FILE, publish_address, running_address

pytestmark = pytest.mark.requirement("I1")


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the command believe that a person reads what it prints."""
    monkeypatch.setattr(keys, "may_show_secrets", lambda: True)


@pytest.mark.slow
@pytest.mark.usefixtures("terminal")
def test_link_of_a_named_gateway(remote: Shell, gateway: Serving) -> None:
    made = remote("link")
    assert (made.code, made.err) == (0, "")
    assert f"{gateway.url}/#token=tc_link_" in made.out


@pytest.mark.slow
@pytest.mark.usefixtures("terminal")
def test_link_needs_a_key_that_may(remote: Shell, monkeypatch: pytest.MonkeyPatch, gateway: Serving) -> None:
    monkeypatch.setenv("TOOLCRIB_KEY", "unknown")
    refused = remote("link", "--url", gateway.url)
    assert (refused.code, refused.out) == (1, "")


@pytest.mark.usefixtures("terminal")
def test_link_without_gateway_is_an_error(shell: Shell) -> None:
    refused = shell("link")
    assert (refused.code, refused.out) == (2, "")
    assert "toolcrib serve" in refused.err


def test_link_is_not_printed_to_a_pipe(shell: Shell) -> None:
    refused = shell("link")
    assert (refused.code, refused.out) == (2, "")
    assert "/api/signin" in refused.err


@pytest.mark.slow
def test_commands_find_the_gateway_of_the_folder(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del shell
    home = tmp_path / ".toolcrib"
    with serving(tmp_path) as served:
        assert discovery.find_gateway(Target()) == (served.url, served.admin_key)
        assert (home / GATEWAY_FILE).stat().st_mode & 0o777 == 0o600
        assert served.admin_key not in (home / GATEWAY_FILE).read_text()
        served.end(signal.SIGTERM)
    assert running_address(home) is None
    with serving(tmp_path) as served:
        served.process.kill()
        served.process.wait()
        # What a killed gateway leaves behind counts for nothing: another program may have its port by now.
        assert json.loads((home / GATEWAY_FILE).read_text())["url"] == served.url
        assert running_address(home) is None
    monkeypatch.setenv("TOOLCRIB_HOME", str(tmp_path / "elsewhere"))
    assert running_address(tmp_path / "elsewhere") is None


def test_first_gateway_keeps_the_file(tmp_path: Path) -> None:
    with publish_address(tmp_path, "http://127.0.0.1:1"):
        with publish_address(tmp_path, "http://127.0.0.1:2"):
            assert running_address(tmp_path) == "http://127.0.0.1:1"
        assert running_address(tmp_path) == "http://127.0.0.1:1"
    assert running_address(tmp_path) is None


def test_folder_that_cannot_be_written_is_no_obstacle(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    with publish_address(file, "http://127.0.0.1:1"):
        assert running_address(file) is None


@pytest.mark.parametrize("text", ["", "{", "[]", '{"url": 1}', "{}"])
def test_damaged_file_names_no_gateway(tmp_path: Path, text: str) -> None:
    with publish_address(tmp_path, "http://127.0.0.1:1"):
        (tmp_path / GATEWAY_FILE).write_text(text)
        assert running_address(tmp_path) is None
