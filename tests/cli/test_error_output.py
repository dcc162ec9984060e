"""Errors are one line with advice, never a traceback, and have their exit status."""

from collections.abc import Callable
from pathlib import Path

import click
import pytest

from tests.cli.conftest import Shell
from tests.texts import matches
from toolcrib.cli.error_output import report_error
from toolcrib.errors import CODES, Refused


def raising(error: BaseException) -> Callable[..., object]:
    def fail(*_arguments: object, **_more: object) -> object:
        raise error

    return fail


def test_the_unforeseen_shows_nothing_but_its_kind(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolcrib.cli.tools.with_backend", raising(ValueError("password=hunter2")))
    done = shell("tools")
    assert (done.code, done.out) == (1, "")
    assert matches("cli", "the unforeseen shows nothing but its kind", done.err)
    assert shell("tools", "--json").json["error"]["code"] == "EXECUTION_ERROR"
    monkeypatch.setenv("TOOLCRIB_DEBUG", "1")
    assert "Traceback" in shell("tools").err


@pytest.mark.parametrize(
    "error,code,said",
    [
        (Refused("NOT_FOUND", "not here"), 1, "not here"),
        (Refused("INVALID_REQUEST", "not so"), 2, "not so"),
        (ExceptionGroup("", [ExceptionGroup("", [Refused("NOT_FOUND", "deep")])]), 1, "deep"),
        (ExceptionGroup("", [ValueError(), KeyError()]), 1, "unexpected error: ExceptionGroup"),
        (PermissionError(13, "Permission denied", "/some/file"), 1, "/some/file: Permission denied"),
        (OSError("strange"), 1, "strange"),
        (click.Abort(), 1, "interrupted"),
        (click.ClickException("plain."), 2, "plain"),
    ],
)
def test_each_kind_of_trouble(
    capsys: pytest.CaptureFixture[str], error: Exception, code: int, said: str
) -> None:
    assert report_error(error, as_json=False) == code
    assert capsys.readouterr().err.startswith(f"toolcrib: {said}")


def test_config_fault_names_the_line(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "toolcrib.yaml").write_text("server:\n  port: many\n")
    done = shell("tools", "--json")
    assert done.code == 2
    (fault,) = done.json["error"]["details"]["faults"]
    assert fault == {
        "file": "toolcrib.yaml",
        "line": 2,
        "path": "server.port",
        "message": "must be a whole number",
    }
    assert done.json["error"]["code"] in CODES


def test_ctrl_c_stops_a_command(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolcrib.cli.tools.with_backend", raising(KeyboardInterrupt()))
    done = shell("tools")
    assert (done.code, done.err.strip()) == (1, "toolcrib: interrupted")


def test_ctrl_c_ends_a_gateway_before_it_listens(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anyio.run", raising(KeyboardInterrupt()))
    assert shell("serve").code == 0
