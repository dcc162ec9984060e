"""The list of checks is whole: each has a test with its mark, or a reason why there is none."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.gates.tree import ROOT
from tests.soak.__main__ import main, options
from tests.soak.checks import CHECKS, TOTAL, Check
from tests.soak.plugin import NUMBER, OUTPUT
from tests.soak.report import keep, line, summary
from tests.soak.run import Outcome, judge, numbers_in, proofs, run
from tests.soak.sampler import Sample, cpu_seconds, slope

APPLICABLE = {check.number for check in CHECKS if not check.not_applicable}


def test_every_check_has_a_test_or_a_reason() -> None:
    assert [check.number for check in CHECKS] == list(range(1, TOTAL + 1))
    assert APPLICABLE - proofs().keys() == set()
    assert proofs().keys() <= APPLICABLE


def test_at_least_thirty_eight_checks_apply() -> None:
    assert len(APPLICABLE) >= 38


def test_marks_are_found_wherever_they_stand() -> None:
    text = "pytestmark = [pytest.mark.check(1, 2)]\n@pytest.mark.check(3)\ndef test(): ...\n"
    assert numbers_in(text) == {1, 2, 3}


def test_a_check_that_does_not_apply_runs_nothing() -> None:
    outcome = run(next(check for check in CHECKS if check.not_applicable), {})
    assert (outcome.result, outcome.tests) == ("not applicable", ())


@pytest.mark.parametrize(
    "outcomes, status, result",
    [
        (["passed", "passed"], 0, "pass"),
        (["passed", "skipped"], 0, "incomplete"),
        (["failed", "skipped"], 1, "fail"),
        (["passed", "failed"], 1, "fail"),
        (["skipped"], 0, "not applicable"),
        ([], 5, "fail"),
        (["passed"], 3, "fail"),
    ],
)
def test_results_follow_from_the_tests(outcomes: list[str], status: int, result: str) -> None:
    tests: dict[str, Any] = {
        f"tests/test_x.py::test_{number}": {"outcome": each, "figures": ["7 kills"], "why": "E  too slow"}
        for number, each in enumerate(outcomes)
    }
    done = subprocess.CompletedProcess([], status, "nothing was found")
    outcome = judge(Check(1, "something", one_process=True), tests, done, 1.0)
    assert outcome.result == result
    if result in {"pass", "incomplete"}:
        assert {"7 kills", "one process"} <= set(outcome.figure.split("; "))
    assert ("skipped tests/test_x.py::test_1: E  too slow" in outcome.figure) is (result == "incomplete")


MEASURED = """
import pytest
pytestmark = pytest.mark.check(7)
def test_recorded(record_property):
    record_property("figure", "12 kills")
    print("99 lines of noise")
def test_printed():
    print("first 3 of them\\n  5 faults, 0 leaks  \\n")
def test_printed_table():
    print("3 of them\\nnothing else")
def test_silent(): pass
@pytest.mark.skip(reason="no such disk")
def test_skipped(): pass
@pytest.mark.check(8)
def test_twice():
    assert False, "too many"
"""


def test_plugin_reads_figures_and_reasons(tmp_path: Path) -> None:
    (tmp_path / "test_measured.py").write_text(MEASURED)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = check: of a number\n")
    output = tmp_path / "tests.json"
    command = (sys.executable, "-m", "pytest", "-q", "-p", "tests.soak.plugin", "-p", "no:cacheprovider")
    env = {**os.environ, "PYTHONPATH": str(ROOT), NUMBER: "7", OUTPUT: str(output)}
    done = subprocess.run(
        [*command, "--rootdir", str(tmp_path), str(tmp_path)],
        cwd=tmp_path,
        env=env,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    found = {name.partition("::")[2]: test for name, test in json.loads(output.read_text()).items()}
    assert done.returncode == 1, done.stdout
    assert {name: test["figures"] for name, test in found.items()} == {
        "test_recorded": ["12 kills"],
        "test_printed": ["5 faults, 0 leaks"],
        "test_printed_table": [],
        "test_silent": [],
        "test_skipped": [],
        "test_twice": [],
    }
    assert (found["test_skipped"]["outcome"], found["test_skipped"]["why"]) == ("skipped", "no such disk")
    assert "too many" in found["test_twice"]["why"]


def test_table_has_number_result_and_proof() -> None:
    outcome = Outcome(21, "kills", "pass", "200 kills", ("tests/walks/test_kill.py::test_a",), 3.0)
    told = line(outcome)
    for text in ("21", "pass", "3 s", "kills", "200 kills", "walks/test_kill.py (1)"):
        assert text in told
    assert summary([outcome]).split(", ")[:2] == ["1 pass", "0 fail"]


def test_results_are_kept_as_json(tmp_path: Any) -> None:
    path = keep([Outcome(1, "one", "pass", "f", (), 0.0)], tmp_path)
    assert '"number": 1' in path.read_text()


def test_numbers_of_checks_are_read() -> None:
    assert options(["--only", "21,38"]).only == {21, 38}
    for wrong in ("x", "0", "45", "1,,2"):
        with pytest.raises(SystemExit):
            options(["--only", wrong])


def test_the_list_runs_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == TOTAL


def test_the_slope_is_that_of_a_line() -> None:
    samples = [Sample(float(at), 100 + at / 30, 0, 0, 0) for at in range(60)]
    assert slope(samples) == pytest.approx(2.0)
    assert slope(samples[:1]) == 0.0


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_cpu_time_of_a_process_is_read() -> None:
    before, spent = cpu_seconds(os.getpid()), time.process_time()
    while time.process_time() - spent < 0.1:
        pass
    assert 0.05 <= cpu_seconds(os.getpid()) - before < 1.0
