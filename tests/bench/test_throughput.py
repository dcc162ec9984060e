"""Cost of a call compared with the bare MCP SDK: relative throughput and added latency."""

import json
from pathlib import Path
from typing import Any

import pytest

from bench.__main__ import main
from tests import figures

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not figures.is_soak(), reason="judges speed; test_bench.py runs the benchmark in the normal suite"
    ),
]

MIN_SHARE, MIN_CALLS_PER_SECOND = 0.4, 300
MAX_ADDED_P50, MAX_ADDED_P99 = 5.0, 50.0
"""Maximum added latency in milliseconds, measured with one connection."""
BARE, OURS = "sdk", "toolcrib"


def found(cases: list[dict[str, Any]], server: str, connections: int) -> dict[str, Any]:
    return next(
        each
        for each in cases
        if (each["case"], each["server"], each["connections"]) == ("mcp", server, connections)
    )


@pytest.mark.check(33)
def test_throughput_is_within_its_bounds(tmp_path: Path, record_property: figures.Record) -> None:
    arguments = "--only mcp --own-client --connections 1 16 --rounds 5 --seconds 2 --into"
    assert main([*arguments.split(), str(tmp_path)]) == 0
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
