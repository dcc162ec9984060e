"""A shell to type commands into, in an empty folder; and a gateway that runs for all tests of a module."""

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.cli.processes import Serving, serving
from toolcrib.cli import run


@dataclass(frozen=True)
class Outcome:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one JSON document on standard output."""
        return json.loads(self.out)

    @property
    def rows(self) -> list[list[str]]:
        """The lines of a table, as a pipe gets it."""
        return [line.split("\t") for line in self.out.splitlines()]


Shell = Callable[..., Outcome]


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    """Run one command line in this process, from an empty folder, and return how it ended."""
    for name in [each for each in os.environ if each.startswith("TOOLCRIB_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)

    def type_in(*arguments: str) -> Outcome:
        capsys.readouterr()
        code = run(arguments)
        said = capsys.readouterr()
        return Outcome(code, said.out, said.err)

    return type_in


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """A real gateway with the demo's tools, in a process of its own."""
    with serving(tmp_path_factory.mktemp("home"), "--demo") as running:
        yield running


@pytest.fixture
def remote(shell: Shell, gateway: Serving, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """The shell, with the environment pointing at the running gateway."""
    monkeypatch.setenv("TOOLCRIB_URL", gateway.url)
    monkeypatch.setenv("TOOLCRIB_KEY", gateway.admin_key)
    return shell
