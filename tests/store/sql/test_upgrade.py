"""A database of an older Toolcrib is brought up to date with all it holds, also if that is cut short."""

import sqlite3
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import replace
from pathlib import Path
from shutil import copyfile

import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, text

from tests.contracts.stores import a_call, a_definition, a_key, a_replay, a_use
from tests.store.sql.children import die_while_opening, start
from tests.store.sql.conftest import Opened
from toolcrib.interfaces import AppRecord
from toolcrib.store.sql.calls import SqlUsage
from toolcrib.store.sql.database import Database
from toolcrib.store.sql.definitions import SqlClaims, SqlDefinitions
from toolcrib.store.sql.engine import database_of
from toolcrib.store.sql.migrations import REVISIONS
from toolcrib.store.sql.overlay import SqlOverlay
from toolcrib.store.sql.store import SqlStore

pytestmark = pytest.mark.anyio

PATIENCE = 30.0


KEY = """
INSERT INTO toolcrib_keys (name, digest, permissions, home, act_as, created)
VALUES ('agent', 'digest of agent', '[]', 'default', false, 1.25)
"""
"""`a_key()`, as it was stored before keys could belong to a user."""
CALL = """
INSERT INTO toolcrib_calls
(id, at, tool, caller, context, face, outcome, milliseconds, cached, trace)
VALUES ('call-1', 1.0, 'cards:get-card', 'agent', 'default', 'rest', 'success', 1.5, false, '0af7')
"""
"""`a_call(1)`, as it was stored before declared mutations were marked."""


REPLAY = """
INSERT INTO toolcrib_replays (key, call, body, holder, at, until, answer)
VALUES ('key', 'call-1', 'body', 'host a 1', 100.0, 1000.0, '{}')
"""
"""`a_replay(answer="{}")`, as it was stored before answers had owners and sizes."""


APP = """
INSERT INTO toolcrib_apps
(package, name, owner, public_url, app_type, hardware, permissions, version, created, updated)
VALUES ('com.example.old', 'Old', 'dev', 'http://127.0.0.1:7010', 'background', '[]', '[]', 1, 1.0, 1.0)
"""
"""An app, as it was stored before givers of addresses were recorded."""


def bring_to(connection: Connection, revision: str) -> None:
    config = Config()
    config.set_main_option("script_location", "toolcrib.store.sql:migrations")
    config.attributes["connection"] = connection
    command.upgrade(config, revision)


@asynccontextmanager
async def an_old_database(url: str, revision: str = "0001") -> AsyncGenerator[Database]:
    database = database_of(url)
    async with database.write() as connection:
        await connection.run_sync(bring_to, revision)
    try:
        yield database
    finally:
        await database.close()


async def fill(database: Database) -> None:
    async with database.write() as connection:
        await connection.execute(text(KEY))
    await SqlOverlay(database).save({"a": 1}, expected=0)
    await SqlClaims(database).put({"n": "s:n"})
    async with database.write() as connection:
        await connection.execute(text(CALL))
    await SqlUsage(database).add([a_use(calls=3)])


async def check_all_is_there(store: SqlStore) -> None:
    assert await store.keys.all() == [a_key()]
    assert await store.overlay.load() == (1, {"a": 1})
    assert await store.claims.all() == {"n": "s:n"}
    assert await store.calls.recent(limit=9) == [a_call(1)]
    assert [row.calls for row in await store.usage.totals()] == [3]
    assert await store.definitions.all() == []
    await store.definitions.put([a_definition()])
    async with store.database.read() as connection:
        assert await connection.scalar(text("SELECT version_num FROM toolcrib_revision")) == REVISIONS[-1]


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    fresh = f"sqlite:///{tmp_path}/toolcrib.db"
    return request.getfixturevalue("fresh_database") if request.param == "postgres" else fresh


async def test_first_revision_is_upgraded_with_data(url: str, opened: Opened) -> None:
    async with an_old_database(url) as database:
        await fill(database)
    await check_all_is_there(await opened(url))


async def test_database_without_apps_is_upgraded_with_data(url: str, opened: Opened) -> None:
    async with an_old_database(url, "0003") as database:
        await fill(database)
        await SqlDefinitions(database).put([a_definition("old:one")])
        async with database.write() as connection:
            await connection.execute(text(REPLAY))
    store = await opened(url)
    assert await store.definitions.all() == [a_definition("old:one")]
    assert await store.replays.claim(a_replay(call="another"), since=0.0) == a_replay(answer="{}", bytes=2)
    await store.definitions.drop(["old:one"])
    await check_all_is_there(store)
    of_a_user = a_key("glasses", user="u1")
    assert await store.keys.add(of_a_user)
    assert await store.keys.all() == [a_key(), of_a_user]
    assert (await store.apps.all(), await store.users.page(), await store.apps.mark()) == ([], [], "0")


@pytest.mark.requirement("I5")
async def test_apps_from_before_givers_have_none(url: str, opened: Opened) -> None:
    async with an_old_database(url, "0004") as database, database.write() as connection:
        await connection.execute(text(APP))
    store = await opened(url)
    (old,) = await store.apps.all()
    assert (old.package, old.public_url, old.url_giver) == ("com.example.old", "http://127.0.0.1:7010", None)
    await store.apps.change(replace(old, url_giver="operator"))
    assert await store.apps.add(
        AppRecord(package="com.example.new", name="New", owner="dev", url_giver="other")
    )
    assert {app.package: app.url_giver for app in await store.apps.all()} == {
        "com.example.old": "operator",
        "com.example.new": "other",
    }


@pytest.mark.slow
async def test_upgrade_killed_at_any_statement_completes_on_restart(tmp_path: Path, opened: Opened) -> None:
    old = tmp_path / "old.db"
    async with an_old_database(f"sqlite:///{old}") as database:
        await fill(database)
    survived, statement = False, 0
    while not survived:
        path = tmp_path / f"{statement}.db"
        copyfile(old, path)
        child, told = start(die_while_opening, f"sqlite:///{path}", statement)
        with told:
            assert told.poll(PATIENCE)
            with suppress(EOFError):
                survived = told.recv_bytes() == b"opened"
        child.join()
        with closing(sqlite3.connect(path)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
        store = await opened(f"sqlite:///{path}")
        await check_all_is_there(store)
        await store.close()
        statement += 1
    assert statement > 3
