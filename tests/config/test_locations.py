"""Where the config file and the state are."""

from pathlib import Path

import pytest

from toolcrib.config import find, home


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_command_line_takes_precedence(here: Path) -> None:
    (here / "toolcrib.yaml").touch()
    assert find("mine.yaml", {"TOOLCRIB_CONFIG": "theirs.yaml"}) == Path("mine.yaml")


def test_then_the_environment(here: Path) -> None:
    (here / "toolcrib.yaml").touch()
    assert find(None, {"TOOLCRIB_CONFIG": "theirs.yaml"}) == Path("theirs.yaml")


def test_then_the_working_directory(here: Path) -> None:
    (here / "toolcrib.yaml").touch()
    assert find(None, {"TOOLCRIB_CONFIG": ""}) == Path("toolcrib.yaml")


def test_then_none() -> None:
    assert find(None, {}) is None


def test_state_folder_follows_environment() -> None:
    assert home({"TOOLCRIB_HOME": "/var/lib/toolcrib"}) == Path("/var/lib/toolcrib")
    assert home({"TOOLCRIB_HOME": ""}) == Path(".toolcrib")
    assert home({}) == Path(".toolcrib")
