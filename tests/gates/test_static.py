"""Lint, format, layers and types hold for the whole tree."""

import pytest

from tests.gates.static import check
from tests.gates.tree import ROOT


@pytest.mark.parametrize(
    "name", ["ruff check", "ruff format", "layers", pytest.param("types", marks=pytest.mark.slow)]
)
def test_the_tree_passes(name: str) -> None:
    ok, output = check(name)
    assert ok, f"{name}\n{output}"


def test_every_ignored_lint_rule_has_a_reason() -> None:
    table = (
        (ROOT / "pyproject.toml").read_text().split("[tool.ruff.lint]")[1].split("[tool.ruff.lint.mccabe]")[0]
    )
    ignored = [line for line in table.splitlines() if line.startswith('    "')]
    assert len(ignored) > 20
    assert [line for line in ignored if len(line.partition("#")[2].split()) < 2] == []
