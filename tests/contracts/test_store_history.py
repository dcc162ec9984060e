"""The store contract for calls and usage."""

from collections import defaultdict
from collections.abc import AsyncGenerator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.contracts.stores import STORES, a_call, a_use, opened
from toolcrib.interfaces import LATENCY_BOUNDS, Store, UsageRow

pytestmark = pytest.mark.anyio

BUCKETS = len(LATENCY_BOUNDS) + 1
MANY = settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.fixture(params=STORES, ids=lambda kind: kind.__name__)
async def store(request: pytest.FixtureRequest) -> AsyncGenerator[Store]:
    async with opened(request.param(request)) as one:
        yield one


# --- calls ---


async def test_calls_round_trip_newest_first(store: Store) -> None:
    full = a_call(
        2,
        user="u1",
        context="support",
        face="mcp",
        outcome="timeout",
        code="TIMEOUT",
        milliseconds=10_000.25,
        cached=True,
    )
    await store.calls.add([a_call(1), full])
    await store.calls.add([a_call(3)])
    assert await store.calls.recent(limit=10) == [a_call(3), full, a_call(1)]
    assert await store.calls.recent(limit=2) == [a_call(3), full]
    assert await store.calls.recent(limit=0) == []


async def test_calls_of_the_same_moment_are_ordered_by_arrival(store: Store) -> None:
    await store.calls.add([a_call(number, at=5.0) for number in range(4)])
    assert [row.id for row in await store.calls.recent(limit=9)] == ["call-3", "call-2", "call-1", "call-0"]


async def test_calls_are_filtered_and_paged(store: Store) -> None:
    rows = [a_call(n, tool=f"t:{n % 2}", caller=f"c{n % 3}") for n in range(12)]
    await store.calls.add(rows)
    of_tool = await store.calls.recent(limit=99, tool="t:1")
    assert [row.at for row in of_tool] == [11, 9, 7, 5, 3, 1]
    of_both = await store.calls.recent(limit=99, tool="t:1", caller="c0")
    assert [row.at for row in of_both] == [9, 3]
    page = await store.calls.recent(limit=3, before=5.0)
    assert [row.at for row in page] == [4, 3, 2]
    assert await store.calls.recent(limit=3, tool="t:none") == []


async def test_old_calls_are_forgotten(store: Store) -> None:
    await store.calls.add([a_call(number, at=float(number // 2)) for number in range(10)])
    assert await store.calls.prune(3, 3) == 7
    assert [row.id for row in await store.calls.recent(limit=99)] == ["call-9", "call-8", "call-7"]
    assert await store.calls.prune(3, 3) == 0
    assert await store.calls.prune(0, 0) == 3
    assert await store.calls.recent(limit=99) == []


@pytest.mark.requirement("E14")
async def test_mutations_outlive_the_sample_of_other_calls(store: Store) -> None:
    await store.calls.add([a_call(number, mutation=number < 4) for number in range(10)])
    assert await store.calls.prune(2, 3) == 5
    assert [row.at for row in await store.calls.recent(limit=99)] == [9, 8, 3, 2, 1]


async def test_repeated_id_or_invalid_name_keeps_the_batch(store: Store) -> None:
    odd = "nul \0, half \ud800, line\nend, ünïcödé 🙂"
    await store.calls.add([a_call(1), a_call(1, user=odd), a_call(3)])
    users = [row.user for row in await store.calls.recent(limit=9)]
    assert users == [None, "nul �, half ?, line\nend, ünïcödé 🙂", None]


async def test_empty_batch_of_calls_does_nothing(store: Store) -> None:
    await store.calls.add([])
    await store.usage.add([])
    assert await store.calls.recent(limit=9) == []
    assert await store.usage.totals() == []


# --- usage ---


async def test_usage_adds_up_per_day_tool_and_caller(store: Store) -> None:
    one = a_use(
        calls=3, errors=1, cached=2, milliseconds=10.5, last_used=7.0, latencies=tuple(range(BUCKETS))
    )
    two = a_use(calls=1, milliseconds=0.25, last_used=5.0)
    await store.usage.add([one])
    await store.usage.add([two, one])
    assert await store.usage.totals() == [
        a_use(
            calls=7,
            errors=2,
            cached=4,
            milliseconds=21.25,
            last_used=7.0,
            latencies=tuple(2 * number for number in range(BUCKETS)),
        )
    ]


async def test_usage_without_latencies_counts_none(store: Store) -> None:
    await store.usage.add([a_use(calls=1)])
    assert [row.latencies for row in await store.usage.totals()] == [(0,) * BUCKETS]


async def test_usage_with_the_wrong_number_of_buckets_is_refused(store: Store) -> None:
    with pytest.raises(ValueError, match=r"\b3\b.*\b15\b"):
        await store.usage.add([a_use(calls=1), a_use(latencies=(1, 2, 3))])
    assert await store.usage.totals() == []


async def test_usage_is_filtered_and_ordered(store: Store) -> None:
    rows = [
        a_use(day, tool, caller, calls=1)
        for day in ("2026-01-02", "2025-12-31", "2026-01-01")
        for tool in ("b", "A")
        for caller in ("y", "x")
    ]
    await store.usage.add(rows)
    found = await store.usage.totals()
    assert [(row.day, row.tool, row.caller) for row in found] == sorted(
        (row.day, row.tool, row.caller) for row in rows
    )
    some = await store.usage.totals(since="2026-01-01", tool="A", caller="x")
    assert [row.day for row in some] == ["2026-01-01", "2026-01-02"]


@pytest.mark.requirement("D13")
async def test_app_usage_counts_only_its_tools(store: Store) -> None:
    mine = ["com.a_%b:", "com.a_%b:Z", "com.a_%b:add", "com.a_%b:\U0010ffff", "com.a_%b:ü:x"]
    others = [
        "com.a_%b",
        "com.a_%b.more:add",
        "com.a_%b;add",
        "com.a_%bc:add",
        "com.A_%b:add",
        "com.axyb:add",
    ]
    await store.usage.add([a_use(tool=tool, calls=1) for tool in mine + others])
    assert [row.tool for row in await store.usage.totals(app="com.a_%b")] == sorted(mine)
    some = await store.usage.totals(app="com.a_%b", tool="com.a_%b:add", caller="c", since="2026-01-01")
    assert [row.tool for row in some] == ["com.a_%b:add"]
    assert await store.usage.totals(app="com.a_%b", tool="com.a_%b;add") == []
    assert await store.usage.totals(app="") == []


counts = st.integers(0, 10**6)
uses = st.builds(
    a_use,
    day=st.sampled_from(["2026-01-01", "2026-01-02"]),
    tool=st.sampled_from(["a:x", "b:y", "ü:z"]),
    caller=st.sampled_from(["p", "q"]),
    calls=counts,
    errors=counts,
    cached=counts,
    # Whole numbers, whose sums floats hold exactly in any order.
    milliseconds=counts.map(float),
    last_used=counts.map(float),
    latencies=st.lists(counts, min_size=BUCKETS, max_size=BUCKETS).map(tuple) | st.just(()),
)


def added_up(rows: list[UsageRow]) -> list[UsageRow]:
    groups: defaultdict[tuple[str, str, str], list[UsageRow]] = defaultdict(list)
    for row in rows:
        groups[row.day, row.tool, row.caller].append(row)
    return [
        a_use(
            *place,
            calls=sum(row.calls for row in group),
            errors=sum(row.errors for row in group),
            cached=sum(row.cached for row in group),
            milliseconds=sum(row.milliseconds for row in group),
            last_used=max(row.last_used for row in group),
            latencies=tuple(map(sum, zip(*(row.latencies or (0,) * BUCKETS for row in group), strict=True))),
        )
        for place, group in sorted(groups.items())
    ]


@MANY
@given(batches=st.lists(st.lists(uses, max_size=8), max_size=4))
async def test_the_sum_of_all_batches_is_the_total(store: Store, batches: list[list[UsageRow]]) -> None:
    before = list(await store.usage.totals())
    for batch in batches:
        await store.usage.add(batch)
    everything = [row for batch in batches for row in batch]
    assert await store.usage.totals() == added_up(before + everything)
