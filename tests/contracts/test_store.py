"""What every store must do, whichever database it is; calls and usage have a suite of their own."""

from collections.abc import AsyncGenerator

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.contracts.stores import (
    LASTING,
    STORES,
    a_call,
    a_definition,
    a_key,
    a_use,
    an_app,
    an_install,
    opened,
)
from toolcrib.interfaces import KeyPosition, KeyRecord, Store
from toolcrib.model import JsonObject

pytestmark = pytest.mark.anyio

MANY = settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.fixture(params=STORES, ids=lambda kind: kind.__name__)
async def store(request: pytest.FixtureRequest) -> AsyncGenerator[Store]:
    async with opened(request.param(request)) as one:
        yield one


@pytest.fixture(params=LASTING, ids=lambda kind: kind.__name__)
def url(request: pytest.FixtureRequest) -> str:
    return request.param(request)


# --- keys ---


@pytest.mark.requirement("I1")
async def test_key_round_trips(store: Store) -> None:
    plain = a_key("a plain one")
    full = KeyRecord(
        name="everything",
        digest="d" * 64,
        permissions=frozenset({"crib:admin", "cards:*"}),
        contexts=frozenset({"support", "open"}),
        home="support",
        act_as=True,
        user="u1",
        created=1_700_000_000.123456,
        rotated=1_700_000_001.5,
        revoked=1_700_000_002.5,
    )
    nowhere = a_key("none", contexts=frozenset[str]())
    for key in (plain, full, nowhere):
        assert await store.keys.add(key)
    assert await store.keys.all() == [plain, full, nowhere]


async def test_name_of_a_revoked_key_stays_taken(store: Store) -> None:
    assert await store.keys.add(a_key())
    assert not await store.keys.add(a_key(digest="another"))
    assert await store.keys.revoke("agent", 2.0)
    assert not await store.keys.add(a_key(digest="another"))
    assert await store.keys.all() == [a_key(revoked=2.0)]


async def test_rotation_needs_a_live_key(store: Store) -> None:
    await store.keys.add(a_key())
    await store.keys.add(a_key("other"))
    assert await store.keys.rotate("agent", "fresh", 3.0)
    assert await store.keys.all() == [a_key(digest="fresh", rotated=3.0), a_key("other")]
    assert await store.keys.revoke("agent", 4.0)
    assert not await store.keys.rotate("agent", "late", 5.0)
    assert not await store.keys.rotate("nobody", "late", 5.0)
    assert await store.keys.all() == [a_key(digest="fresh", rotated=3.0, revoked=4.0), a_key("other")]


async def test_rotation_keeps_the_hash_before_for_a_while(store: Store) -> None:
    await store.keys.add(a_key())
    assert await store.keys.rotate("agent", "second", 3.0, 9.0)
    kept = a_key(digest="second", rotated=3.0, previous_digest="digest of agent", previous_until=9.0)
    assert await store.keys.find("agent") == kept
    assert await store.keys.rotate("agent", "third", 4.0)
    assert await store.keys.find("agent") == a_key(digest="third", rotated=4.0)


async def test_an_expired_key_is_not_rotated(store: Store) -> None:
    await store.keys.add(a_key(expires=5.0))
    assert not await store.keys.rotate("agent", "late", 5.0)
    assert await store.keys.rotate("agent", "early", 4.9)


async def test_key_changes_are_read_in_order_once(store: Store) -> None:
    for name in ("b", "a", "c"):
        await store.keys.add(a_key(name))
    first = await store.keys.changes(KeyPosition(), 2)
    assert [each.name for each in first.records] == ["b", "a"]
    rest = await store.keys.changes(first.position, 2)
    assert ([each.name for each in rest.records], rest.newest) == (["c"], 3)
    assert (await store.keys.changes(rest.position, 2)).records == []
    await store.keys.used({"b": 7.0})
    assert (await store.keys.changes(rest.position, 2)).records == []
    await store.keys.revoke("b", 4.0)
    later = await store.keys.changes(rest.position, 2)
    assert later.records == [a_key("b", revoked=4.0, last_used=7.0)]
    assert await store.keys.purge(5.0, 10) == 1
    gone = await store.keys.changes(later.position, 2)
    assert (gone.records, gone.purged) == ([], ["b"])
    assert [each.name for each in await store.keys.page(after="a", limit=5)] == ["c"]
    assert not await store.keys.add(a_key("b"))


async def test_a_key_is_revoked_once(store: Store) -> None:
    await store.keys.add(a_key())
    assert await store.keys.revoke("agent", 4.0)
    assert not await store.keys.revoke("agent", 9.0)
    assert not await store.keys.revoke("nobody", 9.0)
    assert [key.revoked for key in await store.keys.all()] == [4.0]


async def test_keys_are_listed_by_name(store: Store) -> None:
    names = ["b", "B", "a-1", "a_1", "é", "Z", "🙂", "10", "9", "ﬀ"]
    for name in names:
        await store.keys.add(a_key(name))
    assert [key.name for key in await store.keys.all()] == sorted(names)


@pytest.mark.check(19)
async def test_names_that_look_like_sql_are_names(store: Store) -> None:
    hostile = "x'); DROP TABLE toolcrib_keys; --"
    assert await store.keys.add(a_key(hostile))
    assert await store.keys.revoke(hostile, 1.0)
    assert [key.name for key in await store.keys.all()] == [hostile]


async def test_one_concurrent_add_of_a_name_succeeds(store: Store) -> None:
    won: list[int] = []

    async def add(number: int) -> None:
        if await store.keys.add(a_key(digest=str(number))):
            won.append(number)

    async with anyio.create_task_group() as tasks:
        for number in range(20):
            tasks.start_soon(add, number)
    assert [key.digest for key in await store.keys.all()] == [str(won[0])]
    assert len(won) == 1


# --- overlay ---


@pytest.mark.requirement("I7")
async def test_an_overlay_starts_empty_and_counts_its_versions(store: Store) -> None:
    assert await store.overlay.load() == (0, {})
    assert await store.overlay.save({"a": 1}, expected=0) == 1
    assert await store.overlay.save({"a": 2}, expected=1) == 2
    assert await store.overlay.load() == (2, {"a": 2})


async def test_overlay_write_needs_the_current_version(store: Store) -> None:
    assert await store.overlay.save({"early": True}, expected=1) is None
    await store.overlay.save({"first": True}, expected=0)
    for expected in (0, 2, -1):
        assert await store.overlay.save({"wrong": expected}, expected=expected) is None
    assert await store.overlay.load() == (1, {"first": True})


async def test_one_concurrent_overlay_write_wins(store: Store) -> None:
    for version in range(3):
        won: list[int] = []

        async def save(rival: int, expected: int = version, won: list[int] = won) -> None:
            if await store.overlay.save({"by": rival}, expected=expected) == expected + 1:
                won.append(rival)

        async with anyio.create_task_group() as tasks:
            for rival in range(10):
                tasks.start_soon(save, rival)
        assert await store.overlay.load() == (version + 1, {"by": won[0]})
        assert len(won) == 1


json_documents = st.dictionaries(
    st.text(),
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False) | st.text(),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
        max_leaves=10,
    ),
    max_size=4,
)


@MANY
@given(document=json_documents)
async def test_any_document_round_trips(store: Store, document: JsonObject) -> None:
    version, _ = await store.overlay.load()
    assert await store.overlay.save(document, expected=version) == version + 1
    _, loaded = await store.overlay.load()
    assert loaded == document
    assert list(loaded) == list(document)


# --- claims ---


@pytest.mark.requirement("A3", "A4")
async def test_claims_are_added_moved_and_released(store: Store) -> None:
    assert await store.claims.all() == {}
    await store.claims.put({"get_card": "cards:get-card", "ping": "net:ping"})
    await store.claims.put({"ping": "other:ping", "pong": "net:pong"})
    assert await store.claims.all() == {
        "get_card": "cards:get-card",
        "ping": "other:ping",
        "pong": "net:pong",
    }
    await store.claims.drop(["ping", "never_there", "ping"])
    assert await store.claims.all() == {"get_card": "cards:get-card", "pong": "net:pong"}


async def test_empty_claims_do_nothing(store: Store) -> None:
    await store.claims.put({})
    await store.claims.drop([])
    assert await store.claims.all() == {}


async def test_a_whole_catalog_is_claimed_at_once(store: Store) -> None:
    names = {f"tool_{number}": f"source:tool-{number}" for number in range(5000)}
    await store.claims.put(names)
    assert await store.claims.all() == names
    await store.claims.drop(names)
    assert await store.claims.all() == {}


# --- the whole ---


async def test_healthy_store_reports_healthy(store: Store) -> None:
    await store.check()


async def test_data_survives_a_restart(url: str) -> None:
    async with opened(url) as store:
        await store.keys.add(a_key())
        await store.overlay.save({"a": 1}, expected=0)
        await store.claims.put({"n": "s:n"})
        await store.calls.add([a_call(1)])
        await store.usage.add([a_use(calls=1)])
        await store.definitions.put([a_definition()])
        await store.apps.add(an_app())
        await store.users.install("u1", an_install())
        await store.app_data.put("com.example.notes", "u1", {"k": "v"})
    async with opened(url) as again:
        assert await again.keys.all() == [a_key()]
        assert await again.overlay.load() == (1, {"a": 1})
        assert await again.claims.all() == {"n": "s:n"}
        assert await again.calls.recent(limit=9) == [a_call(1)]
        assert [row.calls for row in await again.usage.totals()] == [1]
        assert await again.definitions.all() == [a_definition()]
        assert await again.apps.all() == [an_app()]
        assert [user.installs for user in await again.users.page()] == [(an_install(),)]
        assert await again.app_data.all("com.example.notes", "u1") == {"k": "v"}


async def test_concurrent_first_opens_succeed(url: str) -> None:
    async def start(number: int) -> None:
        async with opened(url) as one:
            assert await one.keys.add(a_key(f"key {number}"))

    async with anyio.create_task_group() as tasks:
        for number in range(4):
            tasks.start_soon(start, number)
    async with opened(url) as store:
        assert len(await store.keys.all()) == 4


async def test_replicas_compare_and_swap_correctly(url: str) -> None:
    wins: list[int] = []
    rows = [a_use(tool=f"t{number}", calls=1) for number in range(20)]

    async def replica(order: int) -> None:
        async with opened(url) as one:
            for _ in range(10):
                version, document = await one.overlay.load()
                saved = await one.overlay.save({"sum": document.get("sum", 0) + 1}, expected=version)
                if saved is not None:
                    wins.append(saved)
                # Rows locked in the given order would deadlock.
                await one.usage.add(rows[::order])
                await one.claims.put({row.tool: "s:x" for row in rows[::order]})
                await one.definitions.put([a_definition(row.tool) for row in rows[::order]])

    async with anyio.create_task_group() as tasks:
        for order in (1, -1, 1):
            tasks.start_soon(replica, order)
    assert sorted(wins) == list(range(1, len(wins) + 1))
    async with opened(url) as store:
        assert await store.overlay.load() == (len(wins), {"sum": len(wins)})
        assert [row.calls for row in await store.usage.totals()] == [30] * 20
        assert len(await store.definitions.all()) == 20
