"""The load generator wrk, for the bench; without it the bench drives its own client."""

from pathlib import Path

from tests.parts.install import Missing, apt, on_path


def find() -> Path | None:
    return on_path("wrk")


def fetch() -> Path:
    apt("wrk")
    found = find()
    if found is None:
        raise Missing("apt installed it, yet no wrk is on the PATH")
    return found
