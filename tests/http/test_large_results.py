"""Reservations of memory for large results: by measured size, by principal, and in all."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import pytest

from tests.waiting import until
from toolcrib.http.connection_limits import ConnectionLimits
from toolcrib.http.memory import (
    BLOCK_BYTES,
    EXEMPT,
    MAX_SHARE_OF_LIMIT,
    RESULT_COPIES,
    SHED_ABOVE,
    WORKING_COPIES,
    LargeResults,
    MemoryWatch,
)

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("I5")]

LIMIT = 400 << 20
MAX_HELD = int(LIMIT * MAX_SHARE_OF_LIMIT)


@asynccontextmanager
async def results(
    resident: int = 0, *, share: float = 1.0
) -> AsyncGenerator[tuple[LargeResults, ConnectionLimits]]:
    """Reservations under a watch that measures a constant size."""
    watch, reservations, intake = (
        MemoryWatch(LIMIT, resident=lambda: resident),
        LargeResults(share),
        ConnectionLimits(),
    )
    reservations.attach(watch, intake.unread_blocks)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watch.run)
        await until(lambda: watch.resident == resident and watch.fits(0))
        yield reservations, intake
        tasks.cancel_scope.cancel()


async def test_result_must_fit_into_the_measured_rest() -> None:
    size = 1 << 20
    async with results(int(LIMIT * SHED_ABOVE) - 2 * WORKING_COPIES * size) as (reservations, _):
        assert not reservations.reserve("key:a", 2 * size + 1)
        assert reservations.reserve("key:a", size)
        assert reservations.reserve("key:b", size)
        assert not reservations.reserve("key:c", size)
        reservations.release("key:a", size)
        await until(lambda: reservations.reserve("key:c", size))


async def test_operator_is_never_refused_but_counted() -> None:
    async with results(int(LIMIT * 0.85)) as (reservations, _):
        assert reservations.reserve(EXEMPT, LIMIT)
        assert not reservations.reserve("key:a", 1)


async def test_principal_has_its_share_alone() -> None:
    async with results(share=0.5) as (reservations, _):
        half = MAX_HELD // 2 // RESULT_COPIES
        assert reservations.reserve("key:a", half)
        assert not reservations.reserve("key:a", 1)
        assert reservations.reserve("key:b", half)
        assert not reservations.reserve("key:c", 1)


async def test_first_result_may_exceed_the_share() -> None:
    async with results(share=0.5) as (reservations, _):
        assert reservations.reserve("key:a", MAX_HELD // RESULT_COPIES)
        assert not reservations.reserve("key:b", 1)


@pytest.mark.parametrize("holder", ["key:a", "key:b"])
async def test_unread_responses_count_as_results(holder: str) -> None:
    async with results() as (reservations, intake):
        intake.unread_blocks.per_principal = intake.unread_blocks.total
        for _ in range(MAX_HELD // BLOCK_BYTES - 1):
            assert intake.unread_blocks.take(holder)
        assert not reservations.reserve("key:a", BLOCK_BYTES // RESULT_COPIES + 1)
        assert reservations.reserve("key:a", BLOCK_BYTES // RESULT_COPIES)


@pytest.mark.parametrize("limit", [None, LIMIT])
async def test_nothing_is_refused_unless_memory_is_watched(limit: int | None) -> None:
    reservations = LargeResults()
    assert reservations.reserve("key:a", LIMIT)
    reservations.attach(MemoryWatch(limit, resident=lambda: LIMIT), ConnectionLimits().unread_blocks)
    assert reservations.reserve("key:b", 1) is (limit is None)
