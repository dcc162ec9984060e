"""One run of the conformance suite: started, read, and held against the failures we expect of it."""

import json
import re
import subprocess
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.parts import node
from tests.parts.registry import take

REVISIONS = ("2025-11-25", "2026-07-28")
HERE = Path(__file__).resolve().parent
PATIENCE = 180
# SHOULDs are warnings; we mean to do what we should.
BAD = frozenset({"FAILURE", "WARNING"})
_FOLDER = re.compile(r"server-(?P<scenario>.+)-\d{4}-\d\d-\d\dT[\d-]+Z")


@dataclass(frozen=True)
class Check:
    """One check of a scenario and its result."""

    scenario: str
    id: str
    status: str
    message: str = ""

    def __str__(self) -> str:
        return f"{self.scenario}:{self.id} {self.status} {self.message}".rstrip()


@dataclass(frozen=True)
class Report:
    """All scenarios that ran, and all their checks."""

    scenarios: frozenset[str]
    checks: tuple[Check, ...]

    @property
    def passed(self) -> list[Check]:
        return [check for check in self.checks if check.status == "SUCCESS"]

    @property
    def bad(self) -> list[Check]:
        return [check for check in self.checks if check.status in BAD]


@dataclass(frozen=True)
class Verdict:
    """Differences between a run and the file of expected failures."""

    unexpected: list[str]
    stale: list[str]
    missing: list[str]


def run(url: str, revision: str) -> Report:
    """Run every scenario the suite has for a revision against a server."""
    program = [str(node.find_node() or node.fetch_node()), str(take("conformance") / "dist/index.js")]
    with tempfile.TemporaryDirectory() as folder:
        command = [*program, "server", "--url", url, "--requirements", revision, "-o", folder]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
        report = read(Path(folder))
    # Failures are ours to judge; a suite that did not run at all is something else.
    assert report.scenarios, done.stdout + done.stderr
    return report


def read(folder: Path) -> Report:
    """Read the folder that a run has written."""
    scenarios: set[str] = set()
    checks: list[Check] = []
    for file in sorted(folder.glob("*/checks.json")):
        named = _FOLDER.fullmatch(file.parent.name)
        assert named is not None, file.parent.name
        scenarios.add(named["scenario"])
        checks += [_check(named["scenario"], each) for each in json.loads(file.read_text())]
    return Report(frozenset(scenarios), tuple(checks))


def _check(scenario: str, raw: dict[str, Any]) -> Check:
    return Check(scenario, raw["id"], raw["status"], raw.get("errorMessage") or "")


def required(revision: str) -> frozenset[str]:
    """Scenarios of a revision that count, by the suite's own frozen list."""
    listed = yaml.safe_load((take("conformance") / f"requirements/{revision}.yaml").read_text())
    return frozenset(listed["server"])


def expected(revision: str) -> frozenset[str]:
    """Scenarios that may fail, each with its reason in the file."""
    listed = yaml.safe_load((HERE / f"expected-{revision}.yml").read_text())
    return frozenset(listed["server"])


def lost(direct: Report, through: Report) -> frozenset[str]:
    """Return the checks that a server passes directly but not through the gateway."""
    passed = {(check.scenario, check.id) for check in through.passed}
    return frozenset(check.id for check in direct.passed if (check.scenario, check.id) not in passed)


def judged(report: Report, allowed: Iterable[str], wanted: Iterable[str]) -> Verdict:
    """Compare a run with the scenarios that may fail and those that must have run."""
    failing = {check.scenario for check in report.bad}
    return Verdict(
        unexpected=[str(check) for check in report.bad if check.scenario not in set(allowed)],
        stale=sorted(set(allowed) - failing),
        missing=sorted(set(wanted) - report.scenarios),
    )
