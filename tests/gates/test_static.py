"""Lint, format, layers and types hold over the whole tree; and each checker is shown to be able to refuse."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.gates.static import BIN, check
from tests.gates.tree import ROOT

PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())


@pytest.mark.parametrize(
    "name", ["ruff check", "ruff format", "layers", pytest.param("types", marks=pytest.mark.slow)]
)
def test_the_tree_passes(name: str) -> None:
    content, said = check(name)
    assert content, f"{name}\n{said}"


@pytest.mark.parametrize(
    "text, code",
    [
        ("import pickle\n", "TID251"),
        ("import asyncio\n\nwork = asyncio.create_task\n", "TID251"),
        ("try:\n    work()\nexcept Exception:\n    stop()\n", "BLE001"),
        ("def f(a: int, b: int, c: int, d: int, e: int, g: int) -> None: ...\n", "PLR0917"),
        ("import subprocess\n\nsubprocess.run('ls', shell=True)\n", "S602"),
        ("def f(table: str) -> str:\n    return f'select * from {table} where id = 1'\n", "S608"),
    ],
)
def test_the_lint_gate_can_fail(text: str, code: str) -> None:
    command = [
        BIN / "ruff",
        "check",
        "--no-cache",
        "--output-format=concise",
        "--stdin-filename=src/toolcrib/x.py",
        "-",
    ]
    done = subprocess.run(command, cwd=ROOT, input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert code in done.stdout


def test_every_ignored_lint_rule_has_a_reason() -> None:
    table = (
        (ROOT / "pyproject.toml").read_text().split("[tool.ruff.lint]")[1].split("[tool.ruff.lint.mccabe]")[0]
    )
    ignored = [line for line in table.splitlines() if line.startswith('    "')]
    assert len(ignored) > 20
    assert [line for line in ignored if len(line.partition("#")[2].split()) < 2] == []


@pytest.mark.slow
def test_the_types_gate_can_fail(tmp_path: Path) -> None:
    strict = PROJECT["tool"]["basedpyright"]["typeCheckingMode"]
    (tmp_path / "pyproject.toml").write_text(f'[tool.basedpyright]\ntypeCheckingMode = "{strict}"\n')
    (tmp_path / "loose.py").write_text("def f(x):\n    return x\n")
    command = [BIN / "basedpyright", "--pythonpath", sys.executable]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "reportMissingParameterType" in done.stdout


def empty_house(folder: Path) -> Path:
    """A package with a module for every floor of the contract, none of which imports anything."""
    house = folder / "toolcrib"
    house.mkdir()
    (house / "__init__.py").touch()
    for layer in PROJECT["tool"]["importlinter"]["contracts"][0]["layers"]:
        for name in layer.split(" | "):
            room = name.strip("()")
            if room in {"steps", "sources", "formats", "frontends", "identity"}:
                (house / room).mkdir()
                for module in ("__init__", "one", "two"):
                    (house / room / f"{module}.py").touch()
            else:
                (house / f"{room}.py").touch()
    return house


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [BIN / "lint-imports", "--no-cache", "--config", ROOT / "pyproject.toml"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_empty_package_passes_the_layer_gate(tmp_path: Path) -> None:
    empty_house(tmp_path)
    done = lint_imports(tmp_path)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    "file, line, contract",
    [
        ("catalog.py", "import toolcrib.gateway", "Imports go to lower layers only"),
        ("cellar.py", "", "Imports go to lower layers only"),
        ("steps/one.py", "import toolcrib.steps.two", "Steps do not import each other"),
        ("sources/one.py", "import toolcrib.sources.two", "Sources do not import each other"),
        ("formats/one.py", "import toolcrib.formats.two", "Formats do not import each other"),
        ("frontends/one.py", "import toolcrib.frontends.two", "Frontends do not import each other"),
        ("identity/one.py", "import toolcrib.identity.two", "Identity providers do not import"),
        ("gateway.py", "import pydantic", "The core imports no framework"),
        ("frontends/one.py", "import toolcrib.catalog", "Frontends use gateway and admin"),
    ],
)
def test_each_layer_gate_can_fail(tmp_path: Path, file: str, line: str, contract: str) -> None:
    (empty_house(tmp_path) / file).write_text(f"{line}\n")
    done = lint_imports(tmp_path)
    broken = [row for row in done.stdout.splitlines() if row.startswith(contract)]
    assert done.returncode == 1, done.stdout
    assert any(row.endswith("BROKEN") for row in broken), done.stdout
