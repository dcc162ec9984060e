"""A pytest plugin that runs the tests of one check, and writes down how they ended and their figures."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

NUMBER, OUTPUT = "TOOLCRIB_SOAK_CHECK", "TOOLCRIB_SOAK_OUTPUT"
"""The number of the check, and the file for its outcome."""


def checks_of(item: pytest.Item) -> set[int]:
    """Return the numbers of all checks that a test proves."""
    return {number for mark in item.iter_markers("check") for number in mark.args}


def figures_of(report: pytest.TestReport) -> list[str]:
    """Return the recorded figures of a test, else its last printed line if that has a number in it."""
    recorded = [str(value) for name, value in report.user_properties if name == "figure"]
    printed = [line for line in report.capstdout.splitlines() if line.strip()][-1:]
    return recorded or [line.strip() for line in printed if any(map(str.isdigit, line))]


def reason(report: pytest.TestReport) -> str:
    """Return why a test was skipped, or the end of its failure."""
    if isinstance(report.longrepr, tuple):
        return report.longrepr[2].removeprefix("Skipped: ")
    return report.longreprtext.strip()[-400:]


class Recorder:
    """Records the selected tests and their outcomes."""

    def __init__(self, number: int, output: Path) -> None:
        self._number, self._output = number, output
        self._tests: dict[str, dict[str, Any]] = {}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Leave out the tests of other checks."""
        others = [item for item in items if self._number not in checks_of(item)]
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if self._number in checks_of(item)]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the worst of set-up, call and clean-up, and the figures of the call."""
        test = self._tests.setdefault(report.nodeid, {"outcome": "passed", "figures": [], "why": ""})
        if report.outcome != "passed" and test["outcome"] != "failed":
            test["outcome"], test["why"] = report.outcome, reason(report)
        if report.when == "call":
            test["figures"] = figures_of(report)

    def pytest_sessionfinish(self) -> None:
        """Write it down."""
        self._output.write_text(json.dumps(self._tests))


def pytest_configure(config: pytest.Config) -> None:
    """Begin, where a check is named."""
    config.pluginmanager.register(Recorder(int(os.environ[NUMBER]), Path(os.environ[OUTPUT])))
