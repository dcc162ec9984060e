"""Runs the tests of a check at their long figures."""

import ast
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from tests import figures
from tests.gates.tree import ROOT, python_files
from tests.soak.checks import Check
from tests.soak.plugin import NUMBER, OUTPUT

Result = Literal["pass", "fail", "incomplete", "not applicable"]
"""`incomplete` is a check of which some tests passed and others were skipped: it is not proved."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of a check."""

    number: int
    name: str
    result: Result
    figure: str
    tests: tuple[str, ...]
    seconds: float


def numbers_in(text: str) -> set[int]:
    """Return the numbers in `pytest.mark.check(…)`, wherever in a file it stands."""
    calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    named = [call for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr == "check"]
    values = [each.value for call in named for each in call.args if isinstance(each, ast.Constant)]
    return {value for value in values if isinstance(value, int)}


@cache
def proofs() -> Mapping[int, tuple[Path, ...]]:
    """Return which files have tests of which check."""
    found: dict[int, list[Path]] = {}
    for path in python_files("tests"):
        text = path.read_text() if path.name.startswith("test_") else ""
        for number in numbers_in(text) if "mark.check(" in text else ():
            found.setdefault(number, []).append(path)
    return {number: tuple(sorted(paths)) for number, paths in found.items()}


def run(check: Check, more: Mapping[str, str]) -> Outcome:
    """Run all tests of a check; `more` are variables of the environment, such as how many minutes."""
    if check.not_applicable:
        return Outcome(check.number, check.name, "not applicable", check.not_applicable, (), 0.0)
    paths = proofs().get(check.number, ())
    if not paths:
        return Outcome(check.number, check.name, "fail", "no test has its mark", (), 0.0)
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "tests.json"
        env = {NUMBER: str(check.number), OUTPUT: str(output), figures.SOAK: "1", "CI": "true", **more}
        command = (sys.executable, "-m", "pytest", "-q", "-p", "tests.soak.plugin", "-p", "no:cacheprovider")
        done = subprocess.run(
            [*command, *map(str, paths)],
            cwd=ROOT,
            env={**os.environ, **env},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        tests: dict[str, Any] = json.loads(output.read_text()) if output.exists() else {}
    return judge(check, tests, done, time.monotonic() - began)


def judge(
    check: Check, tests: Mapping[str, Any], done: "subprocess.CompletedProcess[str]", seconds: float
) -> Outcome:
    """Derive the outcome of a check from its tests."""
    outcomes = [test["outcome"] for test in tests.values()]
    if not outcomes or done.returncode not in (0, 1):
        return Outcome(check.number, check.name, "fail", _last_lines(done.stdout), tuple(tests), seconds)
    if "failed" in outcomes:
        # Figures first: the table cuts off the end.
        failed = [
            "; ".join([*test["figures"], f"{name}: {test['why']}"])
            for name, test in tests.items()
            if test["outcome"] == "failed"
        ]
        return Outcome(check.number, check.name, "fail", "; ".join(failed), tuple(tests), seconds)
    if set(outcomes) == {"skipped"}:
        why = next(test["why"] for test in tests.values())
        return Outcome(check.number, check.name, "not applicable", _last_lines(why), tuple(tests), seconds)
    result = "incomplete" if "skipped" in outcomes else "pass"
    return Outcome(check.number, check.name, result, _figure(check, tests), tuple(tests), seconds)


def _figure(check: Check, tests: Mapping[str, Any]) -> str:
    """Return why tests were skipped, how many passed, and every figure; the table cuts off the end."""
    skipped = [
        f"skipped {name}: {test['why']}" for name, test in tests.items() if test["outcome"] == "skipped"
    ]
    passed = sum(test["outcome"] == "passed" for test in tests.values())
    figures = [figure for test in tests.values() for figure in test["figures"]]
    parts = [*skipped, *figures, f"{passed} tests passed"]
    return "; ".join([*parts, *(["one process"] if check.one_process else [])])


def _last_lines(text: str) -> str:
    return " ".join(text.strip().splitlines()[-5:])[-600:]
