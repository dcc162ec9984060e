"""What a call through the gateway costs beside the bare server: throughput, and the time that is added."""

import json
from pathlib import Path
from typing import Any

import pytest

from bench.__main__ import main
from tests import figures

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not figures.is_soak(), reason="judges speed; the suite runs the bench in test_bench.py"
    ),
]

MIN_SHARE, MIN_CALLS_PER_SECOND = 0.4, 300
MAX_ADDED_P50, MAX_ADDED_P99 = 5.0, 50.0
"""Milliseconds that a call may take longer than at the bare server while the machine has time to spare."""
BARE, OURS = "sdk", "toolcrib"


def found(cases: list[dict[str, Any]], server: str, connections: int) -> dict[str, Any]:
    return next(
        each
        for each in cases
        if (each["case"], each["server"], each["connections"]) == ("mcp", server, connections)
    )


@pytest.mark.check(33)
def test_throughput_is_within_its_bounds(tmp_path: Path, record_property: figures.Record) -> None:
    words = "--only mcp --own-client --connections 1 16 --rounds 5 --seconds 2 --into"
    assert main([*words.split(), str(tmp_path)]) == 0
    cases = json.loads((tmp_path / "results.json").read_text())["cases"]
    rate, bare = (found(cases, server, 16)["callsPerSecond"] for server in (OURS, BARE))
    ours, theirs = (found(cases, server, 1) for server in (OURS, BARE))
    p50, p99 = (ours[name] - theirs[name] for name in ("p50Milliseconds", "p99Milliseconds"))
    record_property(
        "figure",
        f"{rate:.0f} tools/call per second, {rate / bare:.2f} of the bare SDK; "
        f"added p50 {p50:.2f} ms, p99 {p99:.2f} ms",
    )
    assert rate >= MIN_CALLS_PER_SECOND
    assert rate / bare >= MIN_SHARE
    assert p50 <= MAX_ADDED_P50
    assert p99 <= MAX_ADDED_P99
