"""Mutants of what runs while a module is imported: mutmut tries them too late, so each gets a new process."""

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.mutation.report import Mutant


def try_again(tree: Path, beside: Path, jobs: int, survivors: Iterable[Mutant]) -> None:
    """Try those again that an import may have run before they were there; write down which are killed."""
    early, trial = _run_first(tree), Trial(tree, beside)
    names = [each.name for each in survivors if each.name.partition("__mutmut_")[0] in early]
    if names and trial.fails(""):
        message = "the tests fail without any mutant; run them to see why"
        raise RuntimeError(message)
    with ThreadPoolExecutor(jobs) as pool:
        killed = {name for name, fails in zip(names, pool.map(trial.fails, names), strict=True) if fails}
    for book in tree.rglob("*.py.meta"):
        kept: dict[str, Any] = json.loads(book.read_text())
        codes: dict[str, int | None] = kept["exit_code_by_key"]
        codes |= dict.fromkeys(codes.keys() & killed, 1)
        book.write_text(json.dumps(kept))
    print(f"Of {len(names)} mutants that were tried again from the import on, {len(killed)} are killed.")


class Trial:
    """Runs the same tests as mutmut, in a process where the mutant is there from the beginning."""

    def __init__(self, tree: Path, beside: Path) -> None:
        settings = tomllib.loads((tree / "pyproject.toml").read_text())["tool"]["mutmut"]
        tests = [*settings["pytest_add_cli_args"], *settings["pytest_add_cli_args_test_selection"]]
        self.command = [sys.executable, "-m", "pytest", "-x", "-q", *tests]
        self.tree, self.path = tree, os.pathsep.join(map(str, (tree / "src", beside)))

    def fails(self, name: str) -> bool:
        """Whether a test notices the mutant; an import that fails is noticed too."""
        env = {**os.environ, "PYTHONPATH": self.path, "MUTANT_UNDER_TEST": name}
        done = subprocess.run(self.command, cwd=self.tree, env=env, capture_output=True, check=False)
        return done.returncode != 0


def _run_first(tree: Path) -> set[str]:
    """Name the functions that the very first test seems to run: what ran before it is counted there."""
    stats: dict[str, Any] = json.loads((tree / "mutmut-stats.json").read_text())
    first = next(iter(stats["duration_by_test"]))
    return {function for function, tests in stats["tests_by_mangled_function_name"].items() if first in tests}
