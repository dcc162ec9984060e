"""What every store must do with the definitions of tools."""

from collections.abc import AsyncGenerator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.contracts.stores import STORES, a_definition, opened
from toolcrib.catalog import seal
from toolcrib.interfaces import Store
from toolcrib.model import JsonObject
from toolcrib.store.sql.definitions import MAX_ROWS_PER_TRANSACTION

pytestmark = pytest.mark.anyio

MANY = settings(
    max_examples=25,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.fixture(params=STORES, ids=lambda kind: kind.__name__)
async def store(request: pytest.FixtureRequest) -> AsyncGenerator[Store]:
    async with opened(request.param(request)) as one:
        yield one


@pytest.mark.requirement("B6", "I5")
async def test_definitions_are_added_replaced_and_deleted(store: Store) -> None:
    assert await store.definitions.all() == []
    read, write = a_definition("files:read"), a_definition("files:write")
    await store.definitions.put([write, read])
    assert await store.definitions.all() == [read, write]
    changed = a_definition("files:read", definition={"name": "read", "x": 1}, seal="other", seen=2.5)
    await store.definitions.put([changed, a_definition("net:ping")])
    assert await store.definitions.all() == [changed, write, a_definition("net:ping")]
    await store.definitions.drop(["files:write", "never:there", "files:write"])
    assert await store.definitions.all() == [changed, a_definition("net:ping")]


async def test_last_definition_of_a_tool_wins(store: Store) -> None:
    await store.definitions.put([a_definition(seal="first"), a_definition(seal="last")])
    assert await store.definitions.all() == [a_definition(seal="last")]


async def test_empty_batch_does_nothing(store: Store) -> None:
    await store.definitions.put([])
    await store.definitions.drop([])
    assert await store.definitions.all() == []


async def test_definitions_are_listed_by_name(store: Store) -> None:
    names = [f"files:{local}" for local in ("b", "B", "a-1", "a_1", "é", "🙂", "10", "9")]
    await store.definitions.put([a_definition(name) for name in names])
    assert [each.name for each in await store.definitions.all()] == sorted(names)


async def test_whole_catalog_is_stored(store: Store) -> None:
    rows = [a_definition(f"many:{number:05}") for number in range(4 * MAX_ROWS_PER_TRANSACTION + 1)]
    await store.definitions.put(rows[::-1])
    assert await store.definitions.all() == rows
    await store.definitions.drop(each.name for each in rows)
    assert await store.definitions.all() == []


documents = st.dictionaries(
    st.text(),
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-(2**63), 2**63)
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
        max_leaves=10,
    ),
    max_size=4,
)


@pytest.mark.requirement("I5")
@MANY
@given(document=documents)
async def test_definition_hash_is_stable_in_the_store(store: Store, document: JsonObject) -> None:
    row = a_definition(definition=document, seal=seal(document))
    await store.definitions.put([row])
    (back,) = await store.definitions.all()
    assert back == row
    assert seal(back.definition) == back.seal
