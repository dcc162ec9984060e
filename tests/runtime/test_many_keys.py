"""A hundred thousand keys: reading them, and what changes of them, never holds the event loop up."""

import gc
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from time import thread_time, time

import anyio
import anyio.lowlevel
import pytest
from sqlalchemy import insert, update

from tests.contracts.stores import a_key, opened
from toolcrib.identity import KeyRing, digest
from toolcrib.interfaces import KeyChanges, KeyPosition, Store, StoredKeys
from toolcrib.runtime.identity import KeyReader, purge_keys
from toolcrib.store.sql.keys import KEY_COLUMNS, SqlKeys
from toolcrib.store.sql.store import SqlStore
from toolcrib.store.sql.tables import keys, marks

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("I1")]

MANY = 100_000
MAX_STALL_SECONDS = 0.05


async def fill(store: Store, count: int) -> None:
    """Insert many keys at once, each with its own number."""
    assert isinstance(store, SqlStore)
    names = (f"key-{number:06}" for number in range(count))
    records = (a_key(name, digest=digest(name), permissions=frozenset({"cards:read"})) for name in names)
    rows = [
        {**{name: getattr(each, name) for name in KEY_COLUMNS}, "changed": number + 1}
        for number, each in enumerate(records)
    ]
    async with store.database.write(timeout=120.0) as connection:
        await connection.execute(insert(keys), rows)
        await connection.execute(insert(marks), {"name": "keys", "number": count})


class Stalls:
    """The longest time that the loop's thread has computed without a turn for others."""

    longest = 0.0

    async def watch(self) -> None:
        # The thread's own time: what other processes do on this machine must not count.
        last = thread_time()
        while True:
            await anyio.sleep(0.002)
            now = thread_time()
            self.longest, last = max(self.longest, now - last), now


@asynccontextmanager
async def stalls() -> AsyncGenerator[Stalls]:
    measured = Stalls()
    # As `toolcrib serve` does once it has loaded: the collector is spared what was there before.
    gc.collect()
    gc.freeze()
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(measured.watch)
            yield measured
            tasks.cancel_scope.cancel()
    finally:
        gc.unfreeze()


class Counting:
    """Keys that count how many were read."""

    def __init__(self, keys: StoredKeys) -> None:
        self._keys, self.read = keys, 0

    async def changes(self, after: KeyPosition, limit: int) -> KeyChanges:
        found = await self._keys.changes(after, limit)
        self.read += len(found.records) + len(found.purged)
        return found


def reader(ring: KeyRing, keys: object) -> KeyReader:
    return KeyReader(ring, keys)  # type: ignore[arg-type]


@pytest.mark.slow
async def test_100_000_keys_do_not_stall_the_loop(tmp_path: Path) -> None:
    async with opened(f"sqlite:///{tmp_path}/toolcrib.db") as store:
        await fill(store, MANY)
        ring, counting = KeyRing(), Counting(store.keys)
        follower = reader(ring, counting)
        async with stalls() as measured:
            await follower.read()
            assert (len(ring.names), counting.read) == (MANY, MANY)
            assert ring.caller(digest("key-099999")) is not None
            await store.keys.revoke("key-050000", time())
            await store.keys.add(a_key("new", digest=digest("new")))
            await follower.read()
            await follower.read()
        assert counting.read == MANY + 2
        assert ring.caller(digest("key-050000")) is None
        assert ring.caller(digest("new")) is not None
        assert measured.longest < MAX_STALL_SECONDS, measured.longest


@pytest.mark.slow
async def test_100_000_expiring_keys_do_not_stall_the_loop() -> None:
    now = 100.0
    ring, heard = KeyRing(now=lambda: now), list[str]()
    ring.listen(heard.append)
    ring.apply(a_key(f"k{number}", digest=str(number), expires=200.0) for number in range(MANY))
    now = 200.0
    async with stalls() as measured:
        while ring.end_expired():
            await anyio.lowlevel.checkpoint()
    assert len(heard) == MANY
    assert measured.longest < MAX_STALL_SECONDS, measured.longest


async def test_every_page_of_keys_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolcrib.runtime.identity.MAX_KEYS_AT_ONCE", 7)
    async with opened("sqlite://") as store:
        for number in range(21):
            await store.keys.add(a_key(f"k{number}", digest=str(number)))
        assert isinstance(store.keys, SqlKeys)
        async with store.keys.database.write() as connection:
            await connection.execute(update(keys).values(changed=0))  # as an upgrade leaves them
        ring = KeyRing()
        follower = reader(ring, store.keys)
        await follower.read()
        assert len(ring.names) == 21
        await store.keys.rotate("k3", "fresh", 5.0)
        await follower.read()
        assert (ring.caller("3"), ring.caller("fresh") is None) == (None, False)


async def test_replaced_store_is_read_again() -> None:
    ring = KeyRing()
    async with opened("sqlite://") as first, opened("sqlite://") as second:
        for name in ("a", "b", "c"):
            await first.keys.add(a_key(name, digest=name))
        await second.keys.add(a_key("b", digest="other b"))
        stores: list[StoredKeys] = [first.keys]

        class Current:
            async def changes(self, after: KeyPosition, limit: int) -> KeyChanges:
                return await stores[-1].changes(after, limit)

        follower = reader(ring, Current())
        await follower.read()
        stores.append(second.keys)
        await follower.read()
        assert set(ring.names) == {"b"}
        assert (ring.caller("b"), ring.caller("other b") is None) == (None, False)


async def test_ended_keys_are_purged_and_their_names_kept() -> None:
    async with opened("sqlite://") as store:
        day = 86_400.0
        now = time()
        await store.keys.add(a_key("revoked-long-ago", digest="1"))
        await store.keys.revoke("revoked-long-ago", now - 91 * day)
        await store.keys.add(a_key("expired-long-ago", digest="2", expires=now - 91 * day))
        await store.keys.add(a_key("revoked-lately", digest="3"))
        await store.keys.revoke("revoked-lately", now - 89 * day)
        await store.keys.add(a_key("live", digest="4", expires=now + day))
        ring = KeyRing()
        follower = reader(ring, store.keys)
        await follower.read()
        with anyio.move_on_after(0.2):
            await purge_keys(store, 90, every=0.02)
        await follower.read()
        assert [each.name for each in await store.keys.all()] == ["live", "revoked-lately"]
        assert set(ring.names) == {"live", "revoked-lately"}
        assert await store.keys.find("revoked-long-ago") is None
        assert not await store.keys.add(replace(a_key("revoked-long-ago"), digest="5"))
        assert not await store.keys.revoke("expired-long-ago", now)
        await store.keys.used({"revoked-long-ago": now})
