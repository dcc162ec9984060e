"""The store contract for MCP sessions: last use and end, within limits."""

from collections.abc import AsyncGenerator
from dataclasses import replace

import pytest

from tests.contracts.stores import LASTING, STORES, Kind, opened
from toolcrib.interfaces import McpSessionRow, Store

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("D4")]


@pytest.fixture(params=STORES, ids=lambda kind: kind.__name__)
async def store(request: pytest.FixtureRequest) -> AsyncGenerator[Store]:
    async with opened(request.param(request)) as one:
        yield one


def a_row(id: str = "one", used: float = 100.0, principal: str = "eve") -> McpSessionRow:
    return McpSessionRow(id=id, principal=principal, used=used)


async def test_last_use_never_decreases(store: Store) -> None:
    sessions = store.mcp_sessions
    assert await sessions.get("one") is None
    await sessions.renew([])
    await sessions.renew([a_row(), a_row("two")])
    await sessions.renew([a_row(used=200.0), a_row("two", used=50.0)])
    assert await sessions.get("one") == a_row(used=200.0)
    assert await sessions.get("two") == a_row("two")


async def test_ended_session_stays_ended_when_used(store: Store) -> None:
    sessions = store.mcp_sessions
    await sessions.renew([a_row("used")])
    for name in ("fresh", "used"):
        await sessions.end(a_row(name, used=150.0))
        await sessions.renew([a_row(name, used=300.0)])
        assert await sessions.get(name) == replace(a_row(name, used=150.0), ended=True)
    await sessions.renew([a_row("other", used=160.0)])
    assert sorted(await sessions.ended_since(150.0)) == ["fresh", "used"]
    assert await sessions.ended_since(150.5) == []


async def test_prune_deletes_the_least_recently_used(store: Store) -> None:
    sessions = store.mcp_sessions
    await sessions.renew([a_row(f"e{number}", used=float(number)) for number in range(10)])
    await sessions.renew([a_row("b", used=0.5, principal="bob")])
    assert await sessions.prune(0.5, most=100, per_principal=100) == 1
    assert await sessions.prune(0.0, most=100, per_principal=4) == 5
    assert await sessions.get("e5") is None
    assert await sessions.get("e6") is not None
    assert await sessions.get("b") is not None
    assert await sessions.prune(0.0, most=3, per_principal=4) == 2
    assert await sessions.get("b") is None


async def test_session_end_precedes_newer_use(store: Store) -> None:
    sessions = store.mcp_sessions
    await sessions.end(a_row("over", used=1.0))
    await sessions.renew([a_row(f"e{number}", used=10.0 + number) for number in range(10)])
    assert await sessions.prune(0.0, most=3, per_principal=4) == 7
    assert await sessions.get("over") == replace(a_row("over", used=1.0), ended=True)
    assert await sessions.prune(2.0, most=3, per_principal=4) == 1
    assert await sessions.get("over") is None


async def test_pruned_ends_are_known_by_their_time(store: Store) -> None:
    sessions = store.mcp_sessions
    for number in range(10):
        await sessions.end(a_row(f"e{number}", used=float(number)))
    assert await sessions.prune(0.0, most=100, per_principal=4) == 6
    noted = await sessions.get("forgotten eve")
    assert (noted is not None, await sessions.get("forgotten")) == (True, None)
    assert (noted and noted.used, noted and noted.ended) == (5.0, True)
    assert await sessions.prune(0.0, most=100, per_principal=4) == 0
    await sessions.end(a_row("b", used=0.5, principal="bob"))
    assert await sessions.prune(0.0, most=3, per_principal=4) == 2
    of_all = await sessions.get("forgotten")
    assert of_all is not None
    assert of_all.used == 6.0
    assert await sessions.prune(7.0, most=3, per_principal=4) == 2
    assert await sessions.get("forgotten eve") is None
    assert await sessions.get("e7") is not None


@pytest.mark.parametrize("kind", LASTING, ids=lambda kind: kind.__name__)
async def test_session_end_survives_reopening(kind: Kind, request: pytest.FixtureRequest) -> None:
    url = kind(request)
    async with opened(url) as store:
        await store.mcp_sessions.end(a_row())
    async with opened(url) as store:
        assert await store.mcp_sessions.get("one") == replace(a_row(), ended=True)
