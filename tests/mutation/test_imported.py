"""A mutant of what runs at import is tried in a process of its own, and what became of it is written down."""

import json
from pathlib import Path

import pytest

from tests.mutation.imported import try_again
from tests.mutation.report import mutants

MODULE = """
import os


def x_seven__mutmut_orig():
    return 7


def x_seven__mutmut_1():
    return 8


def x_seven__mutmut_2():
    return 3 + 4


def x_late__mutmut_orig():
    return 7


def x_late__mutmut_1():
    return 8


CHOSEN = os.environ["MUTANT_UNDER_TEST"].rpartition(".")[2] or "x_seven__mutmut_orig"
SEVEN = globals()[CHOSEN]()
"""
TEST = """
from purse import SEVEN


def test_it_is_seven():
    assert SEVEN == {expected}
"""
SETTINGS = """
[tool.mutmut]
pytest_add_cli_args = ["-p", "no:cacheprovider", "-p", "no:toolcrib"]
pytest_add_cli_args_test_selection = ["test_purse.py"]
"""


def _tree(folder: Path, expected: int) -> Path:
    """The result files of mutmut that are read."""
    (folder / "src").mkdir()
    (folder / "src/purse.py").write_text(MODULE)
    codes = {f"purse.x_{name}": 0 for name in ("seven__mutmut_1", "seven__mutmut_2", "late__mutmut_1")}
    (folder / "src/purse.py.meta").write_text(json.dumps({"exit_code_by_key": codes}))
    (folder / "test_purse.py").write_text(TEST.format(expected=expected))
    (folder / "pyproject.toml").write_text(SETTINGS)
    stats = {
        "duration_by_test": {"first": 0.1, "second": 0.1},
        "tests_by_mangled_function_name": {"purse.x_seven": ["second", "first"], "purse.x_late": ["second"]},
    }
    (folder / "mutmut-stats.json").write_text(json.dumps(stats))
    return folder


@pytest.mark.slow
def test_only_import_time_mutants_are_retried(tmp_path: Path) -> None:
    tree = _tree(tmp_path, expected=7)
    try_again(tree, tmp_path, 2, mutants(tree / "src"))
    assert {mutant.name: mutant.killed for mutant in mutants(tree / "src")} == {
        "purse.x_seven__mutmut_1": True,
        "purse.x_seven__mutmut_2": False,
        "purse.x_late__mutmut_1": False,
    }


@pytest.mark.slow
def test_broken_test_suite_kills_no_mutant(tmp_path: Path) -> None:
    tree = _tree(tmp_path, expected=9)
    with pytest.raises(RuntimeError, match="fail without any mutant"):
        try_again(tree, tmp_path, 1, mutants(tree / "src"))
    assert not any(mutant.killed for mutant in mutants(tree / "src"))
