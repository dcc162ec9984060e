"""The table of all checks, for a terminal, and the same as JSON in a folder that git ignores."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import get_args

from tests.gates.tree import ROOT
from tests.soak.run import Outcome, Result

FOLDER = ROOT / "tests" / "soak" / "results"
MAX_FIGURE_CHARACTERS = 800


def files_of(tests: Iterable[str]) -> str:
    """Return the files of tests, with how many there are of each."""
    counted = Counter(test.partition("::")[0].removeprefix("tests/") for test in tests)
    return ", ".join(f"{file} ({count})" for file, count in counted.items())


def line(outcome: Outcome) -> str:
    """Return the lines of one check."""
    head = f"{outcome.number:2}  {outcome.result:14}  {outcome.seconds:6.0f} s  {outcome.name}"
    figure = " ".join(outcome.figure.split())[:MAX_FIGURE_CHARACTERS]
    proof = files_of(outcome.tests)
    return "\n".join([head, *(f"{'':6}{text}" for text in (figure, proof) if text)])


def summary(outcomes: Sequence[Outcome]) -> str:
    """Return how many checks ended how."""
    counted = Counter(outcome.result for outcome in outcomes)
    return ", ".join(f"{counted[result]} {result}" for result in get_args(Result))


def keep(outcomes: Sequence[Outcome], folder: Path = FOLDER) -> Path:
    """Write all outcomes down; return the file."""
    folder.mkdir(parents=True, exist_ok=True)
    at = datetime.now(UTC)
    path = folder / f"{at:%Y%m%dT%H%M%SZ}.json"
    told = {"at": at.isoformat(), "summary": summary(outcomes), "checks": [asdict(each) for each in outcomes]}
    path.write_text(json.dumps(told, indent=1) + "\n")
    return path
