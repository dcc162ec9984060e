"""What survives other processes, and the sudden death of one's own."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.store.sql.children import share_the_work, start, write_until_killed
from tests.store.sql.conftest import Opened

pytestmark = pytest.mark.anyio

ROUNDS = 20
PATIENCE = 120.0


def told_before_death(url: str, number: int) -> list[str]:
    """Kill a writer after a few changes, at a moment it did not choose; all it was told is the answer."""
    child, told = start(write_until_killed, url, f"round{number}")
    heard: list[str] = []
    chosen = 1 + number * 7 % 25
    with told:
        while len(heard) < chosen and told.poll(PATIENCE):
            heard.append(told.recv_bytes().decode())
        child.kill()
        child.join()
        try:
            while told.poll():
                heard.append(told.recv_bytes().decode())
        except EOFError:
            pass
    assert len(heard) >= chosen
    return heard


def integrity(path: Path) -> str:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("PRAGMA integrity_check").fetchone()[0]


@pytest.mark.slow
async def test_acknowledged_writes_survive_kill_9(tmp_path: Path, opened: Opened) -> None:
    path = tmp_path / "toolcrib.db"
    url = f"sqlite:///{path}"
    acknowledged: set[str] = set()
    saved = 0
    for number in range(ROUNDS):
        words = [line.split() for line in told_before_death(url, number)]
        acknowledged |= {word for kind, word in words if kind == "key"}
        saved = max([saved, *(int(word) for kind, word in words if kind == "overlay")])
        assert integrity(path) == "ok"
        store = await opened(url)
        names = {key.name for key in await store.keys.all()}
        assert acknowledged <= names
        version, document = await store.overlay.load()
        # One more may have been saved than its writer lived to tell.
        assert version in {saved, saved + 1}
        assert version == 0 or document["last"] in names
        await store.close()
        saved = version
    assert len(acknowledged) >= ROUNDS


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
@pytest.mark.slow
async def test_processes_share_a_database_from_its_first_moment(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest, opened: Opened
) -> None:
    fresh = f"sqlite:///{tmp_path}/toolcrib.db"
    url: str = request.getfixturevalue("fresh_database") if kind == "postgres" else fresh
    rounds, workers = 15, 4
    children = [start(share_the_work, url, f"worker{number}", rounds) for number in range(workers)]
    wins = 0
    for child, told in children:
        with told:
            assert told.poll(PATIENCE)
            wins += int(told.recv_bytes())
        child.join()
        assert child.exitcode == 0
    store = await opened(url)
    assert len(await store.keys.all()) == rounds * workers
    assert await store.overlay.load() == (wins, {"sum": wins})
    assert [row.calls for row in await store.usage.totals()] == [rounds * workers]
