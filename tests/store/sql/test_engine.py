"""From an address to a database: what is accepted, what is refused and how, and how SQLite is set up."""

import asyncio
import stat
import sys
from pathlib import Path

import anyio
import pytest
from sqlalchemy import text

from tests.store.sql.conftest import Opened
from tests.texts import matches
from tests.waiting import until
from toolcrib.errors import Refused, ToolcribError, Unavailable
from toolcrib.store import open_store
from toolcrib.store.sql.engine import database_of

pytestmark = pytest.mark.anyio

SLOW = (
    "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 500000) SELECT count(*) FROM n"
)
"""Takes longer than the test waits for it."""
LETTER = "Dear reader, " * 100


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def modes(folder: Path) -> dict[str, int]:
    return {path.name: mode(path) for path in folder.iterdir()}


async def refusal(url: str) -> ToolcribError:
    with pytest.raises(ToolcribError) as refused:
        await open_store(url)
    return refused.value


@pytest.mark.parametrize(
    "url",
    [
        "mysql://root:hunter2@127.0.0.1/x",
        "postgres://root:hunter2@127.0.0.1/x",
        "postgresql+psycopg://root:hunter2@127.0.0.1/x",
        "sqlite+aiosqlite:///x.db",
        "postgresql://root:hunter2@127.0.0.1:port/x",
        "hunter2",
        "",
        "sqlite://hunter2.db",
        "sqlite:///x.db?mode=hunter2",
    ],
)
async def test_unsupported_store_url_lists_supported_ones(url: str) -> None:
    error = await refusal(url)
    assert isinstance(error, Refused)
    assert matches("store", f"unsupported store url {url.replace('hunter2', '***')!r}", str(error))
    assert "hunter2" not in str(error)
    assert error.__cause__ is None


async def test_missing_postgres_driver_error_gives_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "asyncpg", None)
    error = await refusal("postgresql://root:hunter2@127.0.0.1/x")
    assert matches("store", "missing postgres driver error gives advice", str(error))


async def test_a_relative_path_starts_where_the_gateway_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opened: Opened
) -> None:
    monkeypatch.chdir(tmp_path)
    await opened("sqlite:///.toolcrib/toolcrib.db")
    assert "toolcrib.db" in modes(tmp_path / ".toolcrib")


async def test_database_is_private_to_its_owner(tmp_path: Path, opened: Opened) -> None:
    await opened(f"sqlite:///{tmp_path}/state/toolcrib.db")
    found = modes(tmp_path / "state")
    assert found == {"toolcrib.db": 0o600, "toolcrib.db-wal": 0o600, "toolcrib.db-shm": 0o600}
    assert mode(tmp_path / "state") == 0o700


@pytest.fixture
def of_the_operator(tmp_path: Path) -> Path:
    """A file with rights of its own, in a folder with rights of its own."""
    tmp_path.chmod(0o755)
    path = tmp_path / "toolcrib.db"
    path.touch()
    path.chmod(0o640)
    return path


@pytest.mark.requirement("I5")
async def test_a_database_that_is_open_to_others_is_closed(of_the_operator: Path, opened: Opened) -> None:
    await opened(f"sqlite:///{of_the_operator}")
    assert (mode(of_the_operator.parent), mode(of_the_operator)) == (0o755, 0o600)


@pytest.mark.requirement("I5")
@pytest.mark.parametrize("name", ["toolcrib.db", "new.db"])
async def test_a_folder_every_user_can_write_is_refused(of_the_operator: Path, name: str) -> None:
    folder = of_the_operator.parent
    folder.chmod(0o777)
    error = await refusal(f"sqlite:///{folder}/{name}")
    assert isinstance(error, Unavailable)
    assert matches("store", "a folder every user can write is refused", str(error), folder=folder, name=name)
    assert (mode(folder), modes(folder)) == (0o777, {"toolcrib.db": 0o640})


@pytest.mark.requirement("I5")
async def test_a_sticky_folder_holds_a_database(of_the_operator: Path, opened: Opened) -> None:
    folder = of_the_operator.parent
    folder.chmod(0o1777)
    await opened(f"sqlite:///{of_the_operator}")
    assert (mode(folder), mode(of_the_operator)) == (0o1777, 0o600)


@pytest.fixture
def letter(tmp_path: Path) -> Path:
    """A file that is no database."""
    path = tmp_path / "letter.txt"
    path.write_text(LETTER)
    return path


async def test_foreign_file_is_not_changed(letter: Path) -> None:
    error = await refusal(f"sqlite:///{letter}")
    assert error.problem.code == "SOURCE_DOWN"
    assert str(error).endswith(": file is not a database")
    assert await anyio.Path(letter).read_text() == LETTER


async def test_a_path_that_cannot_be_made_is_named(letter: Path) -> None:
    error = await refusal(f"sqlite:///{letter}/below/toolcrib.db")
    assert isinstance(error, Unavailable)
    assert matches("store", "a path that cannot be made is named", str(error), letter=letter)


@pytest.mark.parametrize(
    "statement, value",
    [
        ("PRAGMA journal_mode", "wal"),
        ("PRAGMA synchronous", 2),
        ("PRAGMA busy_timeout", 100),
        ("PRAGMA foreign_keys", 1),
    ],
)
async def test_every_connection_is_set_up_to_lose_nothing(
    tmp_path: Path, statement: str, value: str | int, opened: Opened
) -> None:
    store = await opened(f"sqlite:///{tmp_path}/toolcrib.db")
    async with store.database.read() as one, store.database.read() as two:
        assert await one.scalar(text(statement)) == value
        assert await two.scalar(text(statement)) == value


async def test_each_database_in_memory_is_its_own(opened: Opened) -> None:
    one, two = await opened("sqlite://"), await opened("sqlite:///:memory:")
    await one.overlay.save({"a": 1}, expected=0)
    assert await two.overlay.load() == (0, {})


async def test_statement_cut_off_by_a_deadline_leaves_no_task(tmp_path: Path) -> None:
    database = database_of(f"sqlite:///{tmp_path}/x.db")
    before = len(asyncio.all_tasks())
    for _ in range(3):
        with pytest.raises(Unavailable), anyio.move_on_after(0.1):
            async with database.read() as connection:
                await connection.execute(text(SLOW))
    await until(lambda: len(asyncio.all_tasks()) == before, within=20)
    await database.close()
