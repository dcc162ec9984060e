"""The store contract for idempotency keys: one claim wins, its answer is stored."""

from collections.abc import AsyncGenerator
from dataclasses import replace

import anyio
import pytest

from tests.contracts.stores import LASTING, STORES, Kind, a_replay, opened
from toolcrib.interfaces import ReplayRow, ReplayTotals, Store

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("E12")]

LONG_AGO = 0.0


@pytest.fixture(params=STORES, ids=lambda kind: kind.__name__)
async def store(request: pytest.FixtureRequest) -> AsyncGenerator[Store]:
    async with opened(request.param(request)) as one:
        yield one


async def found(store: Store, key: str = "key") -> ReplayRow | None:
    """Read a key by claiming it, and release it if the claim succeeded."""
    row = await store.replays.claim(a_replay(key, call="looking"), since=LONG_AGO)
    if row is None:
        assert await store.replays.release(key, "looking")
    return row


async def test_second_claim_returns_the_first(store: Store) -> None:
    first = a_replay(body="b1", holder="host a 1", at=1.25, until=901.25)
    assert await store.replays.claim(first, since=LONG_AGO) is None
    assert await store.replays.claim(a_replay(call="call-2", body="b2"), since=LONG_AGO) == first
    assert await store.replays.claim(a_replay("other", call="call-3"), since=LONG_AGO) is None


async def test_answer_is_stored_once_by_its_claimant(store: Store) -> None:
    await store.replays.claim(a_replay(), since=LONG_AGO)
    assert not await store.replays.finish("key", "call-2", "theirs")
    assert not await store.replays.finish("nothing", "call-1", "nowhere")
    assert await store.replays.finish("key", "call-1", '{"data":"Zoë 🙂 \\u0000"}')
    assert not await store.replays.finish("key", "call-1", "again")
    assert await found(store) == a_replay(answer='{"data":"Zoë 🙂 \\u0000"}')


async def test_released_key_can_be_claimed_again(store: Store) -> None:
    await store.replays.claim(a_replay(), since=LONG_AGO)
    assert not await store.replays.release("key", "call-2")
    assert await store.replays.release("key", "call-1")
    assert not await store.replays.release("key", "call-1")
    assert await found(store) is None


async def test_stored_answer_cannot_be_released(store: Store) -> None:
    await store.replays.claim(a_replay(), since=LONG_AGO)
    await store.replays.finish("key", "call-1", "{}")
    assert not await store.replays.release("key", "call-1")
    assert await found(store) == a_replay(answer="{}")


async def test_expired_rows_are_ignored(store: Store) -> None:
    await store.replays.claim(a_replay(at=10.0, answer="{}"), since=LONG_AGO)
    again = a_replay(call="call-2", at=20.0)
    assert await store.replays.claim(again, since=10.0) == a_replay(at=10.0, answer="{}")
    assert await store.replays.claim(again, since=10.5) is None
    assert await found(store) == again
    assert not await store.replays.finish("key", "call-1", "late")


async def test_prune_deletes_the_oldest(store: Store) -> None:
    for at in (1.0, 2.0, 3.0):
        await store.replays.claim(a_replay(f"key-{at}", at=at), since=LONG_AGO)
    assert await store.replays.prune(2.0) == 1
    assert await store.replays.prune(2.0) == 0
    assert await found(store, "key-1.0") is None
    assert await found(store, "key-2.0") == a_replay("key-2.0", at=2.0)


async def test_one_of_many_concurrent_claims_wins(store: Store) -> None:
    wins: list[str] = []

    async def claim(number: int) -> None:
        mine = a_replay(call=f"call-{number}")
        if await store.replays.claim(mine, since=LONG_AGO) is None:
            wins.append(mine.call)

    async with anyio.create_task_group() as tasks:
        for number in range(10):
            tasks.start_soon(claim, number)
    (winner,) = wins
    assert await found(store) == a_replay(call=winner)


@pytest.mark.parametrize("kind", LASTING, ids=lambda kind: kind.__name__)
async def test_one_claim_wins_across_connections(kind: Kind, request: pytest.FixtureRequest) -> None:
    url, rounds, wins = kind(request), 10, list[int]()

    async def work(store: Store, number: int) -> None:
        for round_ in range(rounds):
            mine = a_replay(f"key-{round_}", call=f"call-{number}")
            other = await store.replays.claim(mine, since=LONG_AGO)
            if other is None:
                wins.append(round_)
                await store.replays.finish(mine.key, mine.call, f'"{number}"')
            else:
                assert other.answer in {None, f'"{other.call[-1]}"'}

    async with opened(url) as one, opened(url) as two, opened(url) as three:
        async with anyio.create_task_group() as tasks:
            for number, store in enumerate((one, two, three)):
                tasks.start_soon(work, store, number)
        assert sorted(wins) == list(range(rounds))


@pytest.mark.parametrize("kind", LASTING, ids=lambda kind: kind.__name__)
async def test_claims_and_answers_survive_reopening(kind: Kind, request: pytest.FixtureRequest) -> None:
    url = kind(request)
    async with opened(url) as store:
        await store.replays.claim(a_replay("running"), since=LONG_AGO)
        await store.replays.claim(a_replay("done"), since=LONG_AGO)
        await store.replays.finish("done", "call-1", "{}")
    async with opened(url) as store:
        assert await found(store, "running") == a_replay("running")
        assert await found(store, "done") == replace(a_replay("done"), answer="{}")


async def test_find_does_not_claim(store: Store) -> None:
    assert await store.replays.find("key", since=LONG_AGO) is None
    await store.replays.claim(a_replay(at=10.0), since=LONG_AGO)
    assert await store.replays.find("key", since=10.0) == a_replay(at=10.0)
    assert await store.replays.find("key", since=10.5) is None


async def test_totals_are_by_principal(store: Store) -> None:
    assert await store.replays.totals() == {}
    for number, owner in enumerate(("eve", "eve", "bob")):
        row = a_replay(f"key-{number}", owner=owner, at=number + 1.0)
        await store.replays.claim(row, since=LONG_AGO)
        await store.replays.finish(row.key, row.call, "x" * 10, 10)
    assert await store.replays.totals() == {
        "eve": ReplayTotals(keys=2, bytes=20, oldest=1.0),
        "bob": ReplayTotals(keys=1, bytes=10, oldest=3.0),
    }


async def test_shorten_affects_the_oldest_answers(store: Store) -> None:
    for number in range(300):
        row = a_replay(f"key-{number}", owner="eve", at=float(number))
        await store.replays.claim(row, since=LONG_AGO)
        if number != 1:  # which still runs
            await store.replays.finish(row.key, row.call, "long", 10)
    await store.replays.claim(a_replay("his", owner="bob", at=0.0), since=LONG_AGO)
    await store.replays.finish("his", "call-1", "his", 10)
    assert await store.replays.shorten("eve", 25, "short") == 30
    answers = [(await store.replays.find(f"key-{n}", since=LONG_AGO)) for n in range(6)]
    assert [each and each.answer for each in answers] == ["short", None, "short", "short", "long", "long"]
    assert await store.replays.shorten("eve", 1 << 20, "short") == 10 * 296
    assert await store.replays.shorten("eve", 1, "short") == 0
    his = await store.replays.find("his", since=LONG_AGO)
    assert his is not None
    assert (his.answer, his.bytes) == ("his", 10)
