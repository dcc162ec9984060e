"""The store contract for app data: per app and user, deleted with either."""

from collections.abc import AsyncGenerator

import anyio
import pytest

from tests.contracts.stores import LASTING, STORES, Kind, an_app, an_install, opened
from toolcrib.interfaces import Store

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("D1")]

NOTES, MUSIC = "com.example.notes", "com.example.music"


async def prepare(store: Store) -> None:
    for package in (NOTES, MUSIC):
        await store.apps.add(an_app(package))
        for user in ("u1", "u2"):
            await store.users.install(user, an_install(package))


@pytest.fixture(params=STORES, ids=lambda kind: kind.__name__)
async def store(request: pytest.FixtureRequest) -> AsyncGenerator[Store]:
    async with opened(request.param(request)) as one:
        await prepare(one)
        yield one


async def test_texts_are_added_and_replaced(store: Store) -> None:
    assert await store.app_data.all(NOTES, "u1") == {}
    assert await store.app_data.put(NOTES, "u1", {"b": "2", "a": "1", "": "empty"})
    assert await store.app_data.put(NOTES, "u1", {"b": "", "ü 🙂": "x'); DROP TABLE"})
    found = await store.app_data.all(NOTES, "u1")
    assert found == {"": "empty", "a": "1", "b": "", "ü 🙂": "x'); DROP TABLE"}
    assert list(found) == sorted(found)


async def test_app_data_is_per_app_and_user(store: Store) -> None:
    for package in (NOTES, MUSIC):
        for user in ("u1", "u2"):
            await store.app_data.put(package, user, {"k": f"{package} {user}"})
    assert await store.app_data.drop(MUSIC, "u1") == 1
    assert await store.app_data.all(NOTES, "u1") == {"k": f"{NOTES} u1"}
    assert await store.app_data.all(NOTES, "u2") == {"k": f"{NOTES} u2"}
    assert await store.app_data.all(MUSIC, "u1") == {}
    assert await store.app_data.all(MUSIC, "u2") == {"k": f"{MUSIC} u2"}


async def test_app_data_is_deleted_by_key_or_all(store: Store) -> None:
    await store.app_data.put(NOTES, "u1", dict.fromkeys("abcd", "x"))
    assert await store.app_data.drop(NOTES, "u1", ["a", "never there", "a"]) == 1
    assert await store.app_data.drop(NOTES, "u1", []) == 0
    assert await store.app_data.all(NOTES, "u1") == dict.fromkeys("bcd", "x")
    assert await store.app_data.drop(NOTES, "u1") == 3
    assert await store.app_data.drop(NOTES, "u1") == 0


async def test_app_data_needs_an_installed_app(store: Store) -> None:
    assert not await store.app_data.put(NOTES, "stranger", {"k": "v"})
    assert not await store.app_data.put("com.example.nothing", "u1", {"k": "v"})
    await store.users.uninstall("u1", NOTES)
    assert not await store.app_data.put(NOTES, "u1", {"k": "v"})
    assert await store.app_data.all(NOTES, "u1") == {}
    assert await store.app_data.put(NOTES, "u2", {})


async def test_settings_do_not_change_app_data(store: Store) -> None:
    await store.app_data.put(NOTES, "u1", {"k": "v"})
    await store.users.install("u1", an_install(settings={"size": 2}))
    await store.users.put("u1", language="de", time_zone=None, at=1.0)
    await store.apps.change(an_app(name="Better notes"))
    assert await store.app_data.all(NOTES, "u1") == {"k": "v"}


async def test_many_keys_and_long_texts_are_stored(store: Store) -> None:
    many = {f"key {number:04}": "text " * 20 for number in range(1200)} | {"long": "x" * 300_000}
    await store.app_data.put(NOTES, "u1", many)
    assert await store.app_data.all(NOTES, "u1") == many
    assert await store.app_data.drop(NOTES, "u1", list(many)) == 1201


async def test_invalid_unicode_is_stored_replaced(store: Store) -> None:
    await store.app_data.put(NOTES, "u1", {"nul \0": "half \ud800", "nul �": "one of the two"})
    found = await store.app_data.all(NOTES, "u1")
    assert found.keys() == {"nul �"}
    assert found["nul �"] in {"half ?", "one of the two"}
    assert await store.app_data.drop(NOTES, "u1", ["nul \0", "\ud800"]) == 1


@pytest.mark.parametrize("kind", LASTING, ids=lambda kind: kind.__name__)
async def test_concurrent_replicas_do_not_deadlock(kind: Kind, request: pytest.FixtureRequest) -> None:
    url = kind(request)
    keys = [f"k{number}" for number in range(20)]

    async def replica(order: int) -> None:
        async with opened(url) as one:
            for _ in range(10):
                assert await one.app_data.put(NOTES, "u1", {key: str(order) for key in keys[::order]})

    async with opened(url) as store:
        await prepare(store)
        async with anyio.create_task_group() as tasks:
            for order in (1, -1):
                tasks.start_soon(replica, order)
        found = await store.app_data.all(NOTES, "u1")
        assert sorted(found) == sorted(keys)
        assert len(set(found.values())) == 1
