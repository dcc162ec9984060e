"""The store contract for audit records: one hash chain, unchanged records."""

from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

import anyio
import pytest

from tests.contracts.stores import STORES, Kind, a_key, an_audit_entry, opened
from toolcrib.interfaces import FIRST_PREVIOUS, Store, digest_of
from toolcrib.model import JsonObject
from toolcrib.observe.audit import check_chain

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("I8")]


@pytest.fixture(params=STORES, ids=lambda kind: kind.__name__)
async def store(request: pytest.FixtureRequest) -> AsyncGenerator[Store]:
    kind: Kind = request.param
    async with opened(kind(request)) as made:
        yield made


async def records(store: Store) -> AsyncIterator[JsonObject]:
    for record in await store.audit.recent(limit=10_000):
        yield record.as_json()


async def test_each_record_holds_the_hash_of_the_one_before(store: Store) -> None:
    first = await store.audit.add(an_audit_entry())
    second = await store.audit.add(an_audit_entry(action="keys.revoke", before={"name": "agent"}))
    assert (first.number, first.previous) == (1, FIRST_PREVIOUS)
    assert (second.number, second.previous) == (2, first.hash)
    for record in (first, second):
        content = {name: value for name, value in record.as_json().items() if name != "hash"}
        assert record.hash == digest_of(content)
    assert await store.audit.recent(limit=10) == [second, first]


@pytest.mark.parametrize(
    "odd",
    [
        {"target": "zero \0 and half \ud800 a pair"},
        {"user": "a \0 user", "address": "\ud800"},
        {"after": {"text": "zero \0 and ü 漢", "numbers": [1, 1.5, -0.1, 2**53], "deep": [{"a": None}]}},
        {"before": "text", "after": [1, 2]},
    ],
)
async def test_hash_holds_for_whatever_is_recorded(store: Store, odd: dict[str, Any]) -> None:
    await store.audit.add(an_audit_entry(**odd))
    await store.audit.add(an_audit_entry())
    check = await check_chain(records(store))
    assert (check.intact, check.records) == (True, 2)


async def test_records_are_filtered_and_paged_from_the_newest(store: Store) -> None:
    for number in range(1, 6):
        await store.audit.add(an_audit_entry(at=float(number), actor="ci" if number % 2 else "ops"))
    await store.audit.add(an_audit_entry(at=9.0, action="keysets.change"))

    async def numbers(**which: Any) -> list[int]:
        chosen: dict[str, Any] = {"limit": 10, **which}
        found = await store.audit.recent(**chosen)
        return [record.number for record in found]

    assert await numbers() == [6, 5, 4, 3, 2, 1]
    assert await numbers(limit=2) == [6, 5]
    assert await numbers(before=3) == [2, 1]
    assert await numbers(actor="ops") == [4, 2]
    assert await numbers(action="keys.create") == await numbers(action="keys") == [5, 4, 3, 2, 1]
    assert await numbers(action="key_") == []
    assert await numbers(since=5.0) == [6, 5]


async def test_concurrent_writers_keep_one_chain(store: Store) -> None:
    async with anyio.create_task_group() as tasks:
        for _ in range(20):
            tasks.start_soon(store.audit.add, an_audit_entry())
    check = await check_chain(records(store))
    assert (check.intact, check.records) == (True, 20)


@pytest.mark.requirement("I1")
async def test_last_use_of_a_key_only_moves_forward(store: Store) -> None:
    await store.keys.add(a_key("one", created_by="admin"))
    await store.keys.add(a_key("two"))
    await store.keys.used({})
    await store.keys.used({"two": 50.0, "one": 100.0, "gone": 1.0})
    await store.keys.used({"one": 99.0, "two": 60.0})
    found = {key.name: (key.created_by, key.last_used) for key in await store.keys.all()}
    assert found == {"one": ("admin", 100.0), "two": (None, 60.0)}
