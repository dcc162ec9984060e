"""Sessions: unforgeable tokens, owners, limits and expiry."""

from collections.abc import AsyncGenerator, Callable
from dataclasses import replace
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.clocks import DAY, Machine
from toolcrib.errors import Refused, Unavailable
from toolcrib.frontends.mcp import sessions as module
from toolcrib.frontends.mcp.sessions import (
    RELEASE_SECONDS,
    RENEW_SECONDS,
    SESSION_LIFETIME_SECONDS,
    McpSession,
    McpSessionTable,
)
from toolcrib.interfaces import McpSessionRow, Store
from toolcrib.store import open_store
from toolcrib.testing import a_caller

pytestmark = pytest.mark.anyio

KEY = b"k" * 32
Make = Callable[..., McpSessionTable]
ALICE = a_caller(id="key:alice")
CAPABILITIES: dict[str, Any] = {"elicitation": {"form": {}}, "sampling": {}, "experimental": {"x": {}}}


@pytest.fixture
def machine() -> Machine:
    return Machine()


@pytest.fixture
async def store(machine: Machine) -> AsyncGenerator[Store]:
    one = await open_store("sqlite://", machine.clock())
    yield one
    await one.close()


@pytest.fixture
def make(store: Store) -> Make:
    """Sessions of a process on the same store; each call is another process."""

    def made(key: bytes = KEY, **more: Any) -> McpSessionTable:
        return McpSessionTable(key, store.mcp_sessions, store.clock.now, **more)

    return made


def opened(sessions: McpSessionTable) -> McpSession:
    return sessions.open(ALICE, "2025-06-18", CAPABILITIES, ("a client", "1"))


async def found(sessions: McpSessionTable, token: str, **caller: Any) -> bool:
    try:
        await sessions.find(token, replace(ALICE, **caller))
    except Refused as refused:
        return refused.problem.code != "NOT_FOUND"
    return True


async def test_session_continues_in_process_with_same_key(make: Make) -> None:
    session = opened(make())
    again = await make().find(session.id, ALICE)
    assert again.peer.revision == "2025-06-18"
    assert again.peer.capabilities == {"elicitation": {"form": {}}, "sampling": {}}
    assert again.peer.client == ("a client", "1")
    assert session.opened_here
    assert not again.opened_here
    assert not await found(make(b"other" * 8), session.id)


async def test_answer_to_foreign_question_is_rejected(make: Make) -> None:
    session = opened(make())
    answer: dict[str, Any] = {"jsonrpc": "2.0", "id": "crib-1", "result": {}}
    assert session.take(answer)
    assert not (await make().find(session.id, ALICE)).take(answer)


@pytest.mark.parametrize("fresh", [True, False])
@pytest.mark.check(6)
async def test_a_session_belongs_to_a_principal_in_a_context(make: Make, fresh: bool) -> None:
    sessions = make()
    session = opened(sessions)
    if fresh:
        sessions = make()
    assert not await found(sessions, session.id, id="key:bob")
    assert not await found(sessions, session.id, user="u1")
    assert not await found(sessions, session.id, context="other")
    assert await found(sessions, session.id, permissions=frozenset({"*"}))


async def test_the_rights_are_those_of_the_request_at_hand(make: Make) -> None:
    sessions = make()
    session = opened(sessions)
    poorer = replace(ALICE, permissions=frozenset())
    assert (await sessions.find(session.id, poorer)).peer.caller is poorer


async def test_an_ended_session_stays_ended(make: Make) -> None:
    sessions = make()
    session = opened(sessions)
    await sessions.end(session)
    assert not await found(sessions, session.id)


async def test_unused_token_expires_after_days(make: Make, machine: Machine) -> None:
    session = opened(make())
    machine.passes(SESSION_LIFETIME_SECONDS - 60)
    assert await found(make(), session.id)
    machine.passes(120)
    assert not await found(make(), session.id)


@pytest.mark.parametrize("jump", [25 * 3600.0, 8 * DAY, -8 * DAY])
async def test_a_jump_of_the_wall_clock_ends_no_session(make: Make, machine: Machine, jump: float) -> None:
    session = opened(make())
    machine.jumps(jump)
    assert await found(make(), session.id)
    machine.passes(SESSION_LIFETIME_SECONDS + 60)
    assert not await found(make(), session.id)


async def test_session_used_daily_does_not_expire(make: Make, machine: Machine) -> None:
    session = opened(make())
    for _ in range(20):
        machine.passes(DAY)
        sessions = make()
        await sessions.find(session.id, ALICE)
        await sessions.sync()
    machine.passes(SESSION_LIFETIME_SECONDS + 60)
    assert not await found(make(), session.id)


async def test_an_open_stream_is_use(make: Make, machine: Machine) -> None:
    sessions = make(idle_seconds=0)
    session = opened(sessions)
    session.stream = anyio.CancelScope()
    for _ in range(9):
        machine.passes(DAY)
        await sessions.sync()
    assert await found(make(), session.id)


async def test_use_is_stored_once_an_hour(make: Make, machine: Machine, store: Store) -> None:
    sessions = make()
    session = opened(sessions)
    machine.passes(RENEW_SECONDS - 1)
    await sessions.sync()
    assert await store.mcp_sessions.get(session.row) is None
    machine.passes(2)
    await sessions.sync()
    assert await store.mcp_sessions.get(session.row) is not None


async def test_an_ended_session_is_ended_in_every_process(make: Make) -> None:
    one, other = make(), make()
    session = opened(one)
    there = await other.find(session.id, ALICE)
    await one.end(session)
    assert not await found(make(), session.id)
    await other.sync()
    assert there.id == session.id
    assert not await found(other, session.id)


@pytest.mark.parametrize("newer", ["used", "ended"])
@pytest.mark.parametrize("quota", ["MAX_STORED_SESSIONS", "MAX_STORED_SESSIONS_PER_PRINCIPAL"])
async def test_an_ended_session_stays_ended_after_many_newer_ones(
    make: Make, machine: Machine, monkeypatch: pytest.MonkeyPatch, newer: str, quota: str
) -> None:
    monkeypatch.setattr(module, quota, 3)
    sessions = make()
    session = opened(sessions)
    await sessions.end(session)
    for _ in range(10):
        machine.passes(RENEW_SECONDS + 1)
        each = opened(sessions)
        if newer == "ended":
            await sessions.end(each)
        await sessions.sync()
    assert not await found(make(), session.id)
    machine.passes(1)
    assert await found(make(), opened(sessions).id)


async def test_forgotten_ends_of_one_key_end_no_sessions_of_others(
    make: Make, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_STORED_SESSIONS_PER_PRINCIPAL", 3)
    sessions, bob = make(), a_caller(id="key:bob", key="bob")
    his, mine = sessions.open(bob, "2025-11-25", {}, ("c", "1")), opened(sessions)
    machine.passes(RENEW_SECONDS + 1)
    used = opened(sessions)
    machine.passes(RENEW_SECONDS + 1)
    await sessions.sync()
    for _ in range(5):
        await sessions.end(opened(sessions))
        machine.passes(1)
    await sessions.sync()
    assert await make().find(his.id, bob)
    assert await found(make(), mine.id)
    assert await found(make(), used.id)


async def test_session_whose_end_is_not_stored_continues(
    make: Make, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    sessions = make()
    session = opened(sessions)

    async def away(_self: object, row: McpSessionRow) -> None:
        await checkpoint()
        raise Unavailable("SOURCE_DOWN", row.id)

    monkeypatch.setattr(type(store.mcp_sessions), "end", away)
    with pytest.raises(Unavailable):
        await sessions.end(session)
    assert await sessions.find(session.id, ALICE) is session


async def test_unused_session_is_evicted_its_token_stays_valid(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone: list[McpSession] = []
    sessions = make(idle_seconds=60, on_forgotten=gone.append)
    idle, busy = opened(sessions), opened(sessions)
    busy.stream = anyio.CancelScope()
    later = module.monotonic() + 61
    monkeypatch.setattr(module, "monotonic", lambda: later)
    opened(sessions)
    assert gone == [idle]
    assert await sessions.find(busy.id, ALICE) is busy
    assert await sessions.find(idle.id, ALICE) is not idle


def after(seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    later = module.monotonic() + seconds
    monkeypatch.setattr(module, "monotonic", lambda: later)


async def test_stateless_session_is_released_and_found_without_store(
    make: Make, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone: list[McpSession] = []
    sessions = make(on_forgotten=gone.append)
    session = opened(sessions)
    after(RELEASE_SECONDS - 1, monkeypatch)
    await sessions.sync()
    assert gone == []
    after(2, monkeypatch)
    await sessions.sync()
    assert gone == [session]

    async def away(_self: object, id: str) -> None:
        raise Unavailable("SOURCE_DOWN", "the store is away")

    monkeypatch.setattr(type(store.mcp_sessions), "get", away)
    again = await sessions.find(session.id, ALICE)
    assert again is not session
    assert (again.opened_here, again.renewed, again.peer) == (
        True,
        session.renewed,
        session.peer._replace(session=again, capabilities=again.peer.capabilities),
    )
    assert not await found(sessions, session.id, id="key:mallory")


@pytest.mark.parametrize("state", ["level", "subscribed_uris", "found_tools", "stream", "questions"])
async def test_unused_session_with_state_is_not_released(
    make: Make, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    sessions = make()
    session = opened(sessions)
    if state == "level":
        session.level = "debug"
    elif state == "subscribed_uris":
        session.subscribed_uris.add("file:///a")
    elif state == "found_tools":
        session.found_tools["a_tool"] = None
    elif state == "stream":
        session.stream = anyio.CancelScope()
    else:
        monkeypatch.setattr(type(session.questions), "were_sent", True)
    after(RELEASE_SECONDS + 1, monkeypatch)
    await sessions.sync()
    assert await sessions.find(session.id, ALICE) is session


async def test_released_session_that_ends_elsewhere_has_ended(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = make(), make()
    session = opened(one)
    after(RELEASE_SECONDS + 1, monkeypatch)
    await one.sync()
    await other.end(await other.find(session.id, ALICE))
    await one.sync()
    assert not await found(one, session.id)


async def test_released_session_lives_as_long_as_its_last_use_anywhere(
    make: Make, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = make(), make()
    used, unused = opened(one), opened(one)
    after(RELEASE_SECONDS + 1, monkeypatch)
    await one.sync()
    machine.passes(DAY)
    await other.find(used.id, ALICE)
    await other.sync()
    machine.passes(SESSION_LIFETIME_SECONDS - DAY / 2)
    assert await found(one, used.id)
    assert not await found(one, unused.id)


async def test_released_sessions_are_bounded(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    sessions = make(max_sessions=3, share=1.0)
    for _ in range(2):
        for _ in range(3):
            opened(sessions)
        after(RELEASE_SECONDS + 1, monkeypatch)
        await sessions.sync()
    assert sessions.released == 3


async def test_busy_sessions_are_limited(make: Make) -> None:
    sessions = make(max_sessions=2, share=1.0)
    first = opened(sessions)
    first.stream = anyio.CancelScope()
    second, third = opened(sessions), opened(sessions)
    assert await sessions.find(third.id, ALICE) is third
    third.stream = anyio.CancelScope()
    with pytest.raises(Refused) as refused:
        await sessions.find(second.id, ALICE)
    assert refused.value.problem.code == "OVERLOADED"


@pytest.mark.requirement("I10")
async def test_many_sessions_of_one_key_leave_those_of_others(make: Make) -> None:
    sessions, bob = make(max_sessions=8), a_caller(id="key:bob", key="bob")
    his = sessions.open(bob, "2025-11-25", {}, ("c", "1"))
    mine = [opened(sessions) for _ in range(20)]
    assert await sessions.find(his.id, bob) is his
    assert [await sessions.find(each.id, ALICE) is each for each in mine[-6:]] == [True] * 6
    more = [sessions.open(bob, "2025-11-25", {}, ("c", "1")) for _ in range(3)]
    assert [await sessions.find(each.id, bob) is each for each in (his, *more)] == [True] * 4


@pytest.mark.requirement("I10")
async def test_busy_sessions_of_one_key_do_not_keep_others_out(make: Make) -> None:
    sessions, bob = make(max_sessions=4), a_caller(id="key:bob", key="bob")
    for _ in range(3):
        opened(sessions).stream = anyio.CancelScope()
    with pytest.raises(Refused):
        opened(sessions)
    sessions.open(bob, "2025-11-25", {}, ("c", "1"))
    await sessions.end(sessions.open(bob, "2025-11-25", {}, ("c", "1")))


async def test_oversized_capabilities_are_reduced_to_names(make: Make) -> None:
    wordy = {"elicitation": {"form": {"x": "y" * 10_000}}, "sampling": {}}
    session = make().open(ALICE, "2025-11-25", wordy, ("c" * 1000, "1"))
    assert len(session.id) < 4096
    assert session.peer.capabilities == {"elicitation": {}, "sampling": {}}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.integers(min_value=0), with_=st.characters(min_codepoint=33, max_codepoint=126))
async def test_a_token_with_one_character_changed_is_none(make: Make, place: int, with_: str) -> None:
    token = opened(make()).id
    place %= len(token)
    changed = token[:place] + with_ + token[place + 1 :]
    assert changed == token or not await found(make(), changed)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text())
async def test_any_other_text_is_no_session(make: Make, text: str) -> None:
    assert not await found(make(), text)
