"""Keys and time: when they were last used, when they end, and when what is left of them is deleted."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from tests.clocks import DAY, Machine
from tests.contracts.stores import a_key
from toolcrib.config import default_document
from toolcrib.errors import Refused
from toolcrib.identity import Identity, KeyRing, UserCache, digest
from toolcrib.interfaces import Store
from toolcrib.observe import Redactor
from toolcrib.runtime.identity import make_identity, purge_keys
from toolcrib.runtime.store_sync import store_key_use
from toolcrib.store import open_store
from toolcrib.store.sql.database import save_clock

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("I1")]

ENV = {"TOOLCRIB_ADMIN_KEY": "the-admin-key-of-this-test-and-no-other"}
SHOWN = b"Bearer tc_worker"


async def nobody(user: str) -> None:
    del user


@asynccontextmanager
async def identity_of(store: Store) -> AsyncGenerator[Identity]:
    """Make what a gateway that starts now on this store knows callers by."""
    async with anyio.create_task_group() as tasks:
        identity, _ = await make_identity(
            default_document(ENV), ENV, store, people=UserCache(nobody), redactor=Redactor(), tasks=tasks
        )
        yield identity
        tasks.cancel_scope.cancel()


def is_accepted(identity: Identity) -> bool:
    try:
        return identity.bearer(SHOWN).key == "worker"
    except Refused:
        return False


async def test_each_minute_of_use_is_noted() -> None:
    store = await open_store("sqlite://")
    await store.keys.add(a_key("worker", digest=digest("tc_worker")))
    ring = KeyRing()
    ring.load(await store.keys.all())
    identity, uses = Identity(ring, ENV["TOOLCRIB_ADMIN_KEY"]), list[float]()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(store_key_use, ring, store.keys, 0.02)
        with anyio.fail_after(10):
            while len(set(uses)) < 3:
                assert identity.bearer(SHOWN) is identity.bearer(SHOWN)
                await anyio.sleep(0.01)
                (found,) = await store.keys.all()
                uses += [] if found.last_used is None else [found.last_used]
        tasks.cancel_scope.cancel()
    await store.close()
    assert uses == sorted(uses)


async def test_a_clock_set_back_prolongs_no_key(tmp_path: Path) -> None:
    machine, url = Machine(), f"sqlite:///{tmp_path}/x.db"
    store = await open_store(url, machine.clock())
    await store.keys.add(a_key("worker", digest=digest("tc_worker"), expires=machine.wall + 60.0))
    async with identity_of(store) as identity:
        assert is_accepted(identity)
        machine.jumps(-DAY)
        machine.passes(59.0)
        identity.ring.end_expired()
        assert is_accepted(identity)
        machine.passes(1.0)
        identity.ring.end_expired()
        assert not is_accepted(identity)
        await save_clock(store.database, store.clock)
    await store.close()
    store = await open_store(url, machine.clock())
    async with identity_of(store) as identity:
        assert not is_accepted(identity), "a restart does not revive it"
    await store.close()


async def test_a_clock_set_forward_purges_no_key() -> None:
    machine = Machine()
    store = await open_store("sqlite://", machine.clock())
    await store.keys.add(a_key("worker", digest=digest("tc_worker"), expires=machine.wall + DAY))
    await store.keys.add(a_key("old", digest="1", expires=machine.wall - 89 * DAY))
    machine.jumps(100 * DAY)

    async def names_after_purge() -> list[str]:
        with anyio.move_on_after(0.2):
            await purge_keys(store, 90, every=0.02)
        return [each.name for each in await store.keys.all()]

    assert await names_after_purge() == ["old", "worker"]
    machine.passes(2 * DAY)
    assert await names_after_purge() == ["worker"]
    await store.close()


async def test_nothing_is_purged_when_a_gateway_starts() -> None:
    machine = Machine()
    store = await open_store("sqlite://", machine.clock())
    await store.keys.add(a_key("old", digest="1", expires=machine.wall - 1000 * DAY))
    async with identity_of(store):
        await anyio.wait_all_tasks_blocked()
        await anyio.sleep(0.1)
        assert [each.name for each in await store.keys.all()] == ["old"]
    await store.close()
