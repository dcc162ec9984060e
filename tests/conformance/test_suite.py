"""A run is judged by what failed unexpectedly, what is expected and passed, and what never ran."""

import json
from pathlib import Path

from tests.conformance.suite import Check, Report, Verdict, judged, lost, read


def wrote(folder: Path, scenario: str, *checks: tuple[str, str]) -> None:
    """What the suite leaves of one scenario."""
    place = folder / f"server-{scenario}-2026-11-16T05-34-51-375Z"
    place.mkdir()
    (place / "checks.json").write_text(
        json.dumps([{"id": name, "status": status} for name, status in checks])
    )


def test_a_run_is_read_from_its_folder(tmp_path: Path) -> None:
    wrote(tmp_path, "tools-list", ("tools-list", "SUCCESS"), ("tools-name-format", "WARNING"))
    wrote(tmp_path, "sep-2164-resource-not-found")
    report = read(tmp_path)
    assert report.scenarios == {"tools-list", "sep-2164-resource-not-found"}
    assert report.passed == [Check("tools-list", "tools-list", "SUCCESS")]
    assert report.bad == [Check("tools-list", "tools-name-format", "WARNING")]


def test_all_unexpected_results_are_named() -> None:
    checks = (Check("ping", "ping", "FAILURE", "no answer"), Check("caching", "ttl", "SUCCESS"))
    report = Report(frozenset({"ping", "caching"}), checks)
    assert judged(report, ["ping"], ["ping", "caching"]) == Verdict([], [], [])
    assert judged(report, ["caching", "tasks-gone"], ["tools-list"]) == Verdict(
        unexpected=["ping:ping FAILURE no answer"], stale=["caching", "tasks-gone"], missing=["tools-list"]
    )


def test_checks_lost_in_the_gateway_are_named() -> None:
    direct = Report(frozenset({"ping"}), (Check("ping", "ping", "SUCCESS"), Check("ping", "id", "SUCCESS")))
    through = Report(frozenset({"ping"}), (Check("ping", "ping", "SUCCESS"), Check("ping", "id", "INFO")))
    assert lost(direct, through) == {"id"}
    assert lost(through, direct) == set()
