"""Secrets in a store are encrypted, stay readable through every change of keys, and open nowhere else."""

import sqlite3
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path
from shutil import copyfile

import pytest
from sqlalchemy import text

from tests.store.sql.children import die_while_protecting, start
from tests.store.sql.secret_rows import CLEAR, OVERLAY, check_all_is_read, clear_text, fill, wrapping
from tests.texts import matches
from toolcrib.errors import Refused
from toolcrib.store import open_store
from toolcrib.store.key_wrapping import WrappingSecrets
from toolcrib.store.sql.secret_values import encrypted_names, remove_encrypted, rotate
from toolcrib.store.sql.store import SqlStore

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("I2", "I5")]

ADMIN = "the admin key of a test, long enough to use"
OTHER = "another admin key of a test, long enough, too"
PATIENCE = 30.0
SECRETS = 4
"""Values that are encrypted in a store that was filled: two servers, and two hashes of an app's key."""


@asynccontextmanager
async def store_at(url: str, secrets: WrappingSecrets | None) -> AsyncGenerator[SqlStore]:
    store = await open_store(url, wrapping=secrets)
    try:
        yield store
    finally:
        await store.close()


async def everything(store: SqlStore) -> str:
    """All that the tables with secrets hold."""
    tables = ("toolcrib_overlay", "toolcrib_apps", "toolcrib_data_keys")
    async with store.database.read() as connection:
        found = [(await connection.execute(text(f"SELECT * FROM {table}"))).all() for table in tables]  # noqa: S608 - three constants
    return repr(found)


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    fresh = f"sqlite:///{tmp_path}/toolcrib.db"
    return request.getfixturevalue("fresh_database") if request.param == "postgres" else fresh


async def test_no_secret_is_in_the_database_in_clear(url: str, tmp_path: Path) -> None:
    async with store_at(url, wrapping(ADMIN)) as store:
        await fill(store)
        stored = await everything(store)
        await check_all_is_read(store)
        if url.startswith("sqlite"):
            assert clear_text(tmp_path) == []
    assert not any(each.decode() in stored for each in CLEAR)
    async with store_at(url, wrapping(ADMIN)) as again:
        await check_all_is_read(again)


async def test_plain_rows_of_before_are_encrypted_on_opening(url: str, tmp_path: Path) -> None:
    async with store_at(url, None) as store:
        await fill(store)
        # Free pages and the log hold clear text, too.
        for version in range(1, 4):
            await store.overlay.save({**OVERLAY, "overrides": {"x" * 50_000: {}}}, expected=version)
        assert await store.overlay.save(OVERLAY, expected=4) == 5
        async with store.database.write() as connection:
            await connection.execute(text("UPDATE toolcrib_overlay SET version = 1"))
    async with store_at(url, wrapping(ADMIN)) as store:
        stored = await everything(store)
        await check_all_is_read(store)
        assert not any(each.decode() in stored for each in CLEAR)
        if url.startswith("sqlite"):
            assert clear_text(tmp_path) == []


@pytest.mark.slow
async def test_a_kill_while_encrypting_loses_nothing(tmp_path: Path) -> None:
    old = tmp_path / "old.db"
    async with store_at(f"sqlite:///{old}", None) as store:
        await fill(store)
    survived, moment, plain = False, 0, 0
    while not survived:
        folder = tmp_path / str(moment)
        folder.mkdir()
        copyfile(old, folder / "x.db")
        child, told = start(die_while_protecting, f"sqlite:///{folder}/x.db", moment)
        with told:
            assert told.poll(PATIENCE)
            with suppress(EOFError):
                survived = told.recv_bytes() == b"opened"
        child.join()
        plain += bool(clear_text(folder))
        with closing(sqlite3.connect(folder / "x.db")) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
        async with store_at(f"sqlite:///{folder}/x.db", wrapping(ADMIN)) as store:
            await check_all_is_read(store)
            assert clear_text(folder) == []
        moment += 1
    assert plain > 5
    assert moment > plain


async def test_another_secret_is_refused_and_nothing_changes(url: str) -> None:
    async with store_at(url, wrapping(ADMIN)) as store:
        await fill(store)
        before = await everything(store)
    for case, wrong in {
        "another admin key": wrapping(OTHER),
        "only a wrong earlier one": wrapping(None, OTHER),
        "a short admin key": wrapping("short"),
        "the secret of another kind": wrapping(OTHER, kind="key_file"),
    }.items():
        with pytest.raises(Refused) as refused:
            await open_store(url, wrapping=wrong)
        assert "TOOLCRIB_ADMIN_KEY_OLD" in str(refused.value)
        assert matches("store", f"wrong secret: {case}", str(refused.value))
        assert ADMIN not in str(refused.value)
    async with store_at(url, wrapping(ADMIN)) as store:
        assert await everything(store) == before
        await check_all_is_read(store)


@pytest.mark.parametrize(
    "before, after",
    [
        (ADMIN, lambda: wrapping(OTHER, ADMIN)),
        (ADMIN, lambda: wrapping(OTHER, ADMIN, kind="key_file")),
        ("short", lambda: wrapping(OTHER, "short")),
        (ADMIN, lambda: wrapping(None, ADMIN, made=OTHER)),
    ],
    ids=["admin key", "to a key file", "a short one", "to a made one"],
)
async def test_with_the_old_secret_the_key_is_wrapped_again(
    url: str, before: str, after: Callable[[], WrappingSecrets]
) -> None:
    async with store_at(url, wrapping(before)) as store:
        await fill(store)
    async with store_at(url, after()) as store:
        await check_all_is_read(store)
    async with store_at(url, wrapping(OTHER)) as store:
        await check_all_is_read(store)
    with pytest.raises(Refused):
        await open_store(url, wrapping=wrapping(before))


SWAPS = {
    "servers": "UPDATE toolcrib_overlay SET document = replace(replace(replace("
    "document, '\"web\"', '\"?\"'), '\"program\"', '\"web\"'), '\"?\"', '\"program\"')",
    "fields": "UPDATE toolcrib_apps SET digest = signing",
    "rows": "UPDATE toolcrib_apps SET package = 'com.example.other'",
    "bits": "UPDATE toolcrib_apps SET signing = substr(signing, 1, 30) || 'AAAAAA' || substr(signing, 37)",
}


@pytest.mark.parametrize("swap", SWAPS)
async def test_an_encrypted_value_opens_in_its_own_place_only(url: str, swap: str) -> None:
    async with store_at(url, wrapping(ADMIN)) as store:
        await fill(store)
        async with store.database.write() as connection:
            await connection.execute(text(SWAPS[swap]))
        with pytest.raises(Refused, match="was changed"):
            await (store.overlay.load() if swap == "servers" else store.apps.all())


async def test_a_new_data_key_is_followed_by_stores_that_are_open(url: str) -> None:
    async with store_at(url, wrapping(ADMIN)) as running, store_at(url, wrapping(ADMIN)) as store:
        await fill(running)
        before = await everything(store)
        assert await rotate(store.database, wrapping(ADMIN)) == SECRETS
        assert await everything(store) != before
        await check_all_is_read(running)
        # What is written with the old key in memory would be lost.
        assert await running.overlay.save(OVERLAY, expected=1) == 2
    async with store_at(url, wrapping(ADMIN)) as again:
        assert await again.overlay.load() == (2, OVERLAY)


async def test_two_stores_share_one_data_key(url: str) -> None:
    async with store_at(url, wrapping(ADMIN)) as one, store_at(url, wrapping(ADMIN)) as two:
        await fill(one)
        await check_all_is_read(two)
        assert await two.overlay.save(OVERLAY, expected=1) == 2
        async with one.database.read() as connection:
            assert await connection.scalar(text("SELECT count(*) FROM toolcrib_data_keys")) == 1


async def test_secrets_whose_key_is_lost_can_be_removed(url: str) -> None:
    async with store_at(url, wrapping(ADMIN)) as store:
        await fill(store)
    async with store_at(url, None) as store:
        named = (["web", "program"], ["com.example.app"])
        assert await encrypted_names(store.database) == named
        assert await remove_encrypted(store.database) == named
    async with store_at(url, wrapping(OTHER)) as store:
        assert await store.overlay.load() == (2, {"mcp": {"servers": {}}, "pins": OVERLAY["pins"]})
        (app,) = await store.apps.all()
        assert (app.package, app.digest, app.signing) == ("com.example.app", None, None)


async def test_a_key_nothing_is_encrypted_with_is_no_obstacle(url: str) -> None:
    async with store_at(url, wrapping(ADMIN)) as store:
        assert await store.overlay.save(OVERLAY, expected=0) == 1
        assert await store.overlay.save({"pins": {}}, expected=1) == 2
    async with store_at(url, wrapping(OTHER)) as store:
        await store.overlay.save(OVERLAY, expected=2)
    async with store_at(url, wrapping(OTHER)) as store:
        assert await store.overlay.load() == (3, OVERLAY)
