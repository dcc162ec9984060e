"""A server's program is found before anything is started, and sees little of our environment."""

import os
import sys
from pathlib import Path

import anyio
import pytest

from tests.texts import matches
from toolcrib.sources.mcp import server_process as module
from toolcrib.sources.mcp.connection import NotSent
from toolcrib.sources.mcp.server_process import environment, find, launch

pytestmark = pytest.mark.anyio


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "serve"
    path.write_text("#!/bin/sh\nexit 0\n")
    path.chmod(0o755)
    return path


def test_a_program_is_found_on_the_path_of_its_server(program: Path) -> None:
    assert find(["serve", "--stdio"], {"PATH": str(program.parent)}, None) == str(program)
    with pytest.raises(NotSent) as raised:
        find(["serve"], {"PATH": "/nowhere"}, None)
    assert matches("sources", "a program is found on the path of its server", str(raised.value))


def test_without_a_path_the_usual_places_are_searched() -> None:
    assert find(["sh"], {}, None).endswith("/sh")


def test_a_path_is_taken_as_it_is_and_from_where_the_server_runs(program: Path, tmp_path: Path) -> None:
    assert find([str(program)], {}, None) == str(program)
    assert Path(find(["./serve"], {}, tmp_path)).samefile(program)
    with pytest.raises(NotSent) as raised:
        find(["./other"], {}, tmp_path)
    assert matches("sources", "a path is taken as it is and from where the server runs", str(raised.value))
    with pytest.raises(NotSent) as raised:
        find([str(tmp_path)], {}, None)


def test_non_executable_file_is_reported(program: Path) -> None:
    program.chmod(0o644)
    if os.access(program, os.X_OK):  # a superuser of some systems may run anything
        pytest.skip("everything is executable here")
    with pytest.raises(NotSent) as raised:
        find([str(program)], {}, None)
    assert matches("sources", "non executable file is reported", str(raised.value))


def test_a_command_and_its_folder_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(NotSent) as raised:
        find([], {}, None)
    assert matches("sources", "a command and its folder must be there", str(raised.value))
    with pytest.raises(NotSent) as raised:
        find(["sh"], {}, tmp_path / "gone")


def test_non_posix_system_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.sys, "platform", "win32")
    with pytest.raises(NotSent) as raised:
        find(["sh"], {}, None)
    assert matches("sources", "non posix system is reported", str(raised.value))


def test_a_server_sees_little_of_our_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", {"HOME": "/h", "PATH": "/p", "TZ": "UTC", "TOOLCRIB_ADMIN_KEY": "x"})
    assert environment({"PATH": "/q", "TOKEN": "t"}) == {
        "HOME": "/h",
        "PATH": "/q",
        "TZ": "UTC",
        "TOKEN": "t",
    }


@pytest.mark.parametrize("argument", ["a\0b", "x" * (4 << 20)])
async def test_failed_spawn_is_reported_without_open_files(argument: str) -> None:
    before = len(os.listdir("/dev/fd"))  # noqa: PTH208 - only their number counts
    with pytest.raises(NotSent) as raised:
        launch(sys.executable, ["python", argument], env={}, cwd=None, grace=1, ended=lambda _: None)
    assert matches("sources", f"failed spawn with {argument[:3]!r} is reported", str(raised.value))
    await anyio.lowlevel.checkpoint()
    assert len(os.listdir("/dev/fd")) == before  # noqa: PTH208 - the same
