"""The static checkers as one table, for `make check` and the test suite."""

import subprocess
import sys
from pathlib import Path

from tests.gates.tree import ROOT

BIN = Path(sys.executable).parent

CHECKS: dict[str, tuple[str, ...]] = {
    "ruff check": (str(BIN / "ruff"), "check", "--no-cache", "."),
    "ruff format": (str(BIN / "ruff"), "format", "--check", "--no-cache", "."),
    "layers": (str(BIN / "lint-imports"), "--no-cache"),
    "types": (str(BIN / "basedpyright"), "--pythonpath", sys.executable),
}


def check(name: str) -> tuple[bool, str]:
    """Run a checker; return whether it passed, and its output."""
    done = subprocess.run(
        CHECKS[name], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    return done.returncode == 0, done.stdout
