"""A process that is killed has lost the last second of its counts at most."""

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from time import monotonic

import pytest

from toolcrib.store import open_store

pytestmark = pytest.mark.anyio

SECONDS = 3.0


@pytest.mark.slow
@pytest.mark.requirement("F9")
async def test_kill_9_loses_the_last_second_at_most(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/toolcrib.db"
    command = [sys.executable, "-m", "tests.observe.killed", url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: ASYNC220 - nothing else runs
        told = list(_until(process, SECONDS))
        process.kill()
        process.wait()
    killed_at = told[-1][0]
    safe = max(count for at, count in told if at <= killed_at - 1.0)
    store = await open_store(url)
    (row,) = await store.usage.totals()
    await store.close()
    assert safe > 1_000
    assert safe <= row.calls <= told[-1][1] + 50
    with sqlite3.connect(tmp_path / "toolcrib.db") as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    database.close()


def _until(process: "subprocess.Popen[str]", seconds: float) -> Iterator[tuple[float, int]]:
    """The counts printed by the child with their times, for this long after the first."""
    assert process.stdout
    end = None
    for line in process.stdout:
        now = monotonic()
        end = end or now + seconds
        yield now, int(line)
        if now > end:
            return
