"""Sessions: tokens that nobody can make but us, owners, limits, and what is forgotten."""

from dataclasses import replace
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.errors import Refused
from toolcrib.faces.mcp import sessions as module
from toolcrib.faces.mcp.sessions import Session, Sessions
from toolcrib.testing import a_caller

KEY = b"k" * 32
ALICE = a_caller(id="key:alice")
CAPABILITIES: dict[str, Any] = {"elicitation": {"form": {}}, "sampling": {}, "experimental": {"x": {}}}


def opened(sessions: Sessions) -> Session:
    return sessions.open(ALICE, "2025-06-18", CAPABILITIES, ("a client", "1"))


def found(sessions: Sessions, token: str, **caller: Any) -> bool:
    try:
        sessions.find(token, replace(ALICE, **caller))
    except Refused as refused:
        return refused.problem.code != "NOT_FOUND"
    return True


def test_another_process_with_the_same_key_goes_on_with_a_session() -> None:
    session = opened(Sessions(KEY))
    again = Sessions(KEY).find(session.id, ALICE)
    assert again.peer.revision == "2025-06-18"
    assert again.peer.capabilities == {"elicitation": {"form": {}}, "sampling": {}}
    assert again.peer.client == ("a client", "1")
    assert session.at_home
    assert not again.at_home
    assert not found(Sessions(b"other" * 8), session.id)


def test_an_answer_to_a_question_asked_elsewhere_is_not_taken() -> None:
    session = opened(Sessions(KEY))
    answer: dict[str, Any] = {"jsonrpc": "2.0", "id": "crib-1", "result": {}}
    assert session.take(answer)
    assert not Sessions(KEY).find(session.id, ALICE).take(answer)


@pytest.mark.parametrize("fresh", [True, False])
def test_a_session_belongs_to_a_principal_in_a_context(fresh: bool) -> None:
    sessions = Sessions(KEY)
    session = opened(sessions)
    if fresh:
        sessions = Sessions(KEY)
    assert not found(sessions, session.id, id="key:bob")
    assert not found(sessions, session.id, user="u1")
    assert not found(sessions, session.id, context="other")
    assert found(sessions, session.id, permissions=frozenset({"*"}))


def test_the_rights_are_those_of_the_request_at_hand() -> None:
    sessions = Sessions(KEY)
    session = opened(sessions)
    poorer = replace(ALICE, permissions=frozenset())
    assert sessions.find(session.id, poorer).peer.caller is poorer


def test_an_ended_session_stays_ended() -> None:
    sessions = Sessions(KEY)
    session = opened(sessions)
    sessions.end(session)
    assert not found(sessions, session.id)


def test_a_token_is_good_for_days_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    session = opened(Sessions(KEY))
    later = module.time() + module.LONGEST_LIFE + 1
    monkeypatch.setattr(module, "time", lambda: later)
    assert not found(Sessions(KEY), session.id)


@pytest.mark.anyio
async def test_what_is_not_used_is_forgotten_and_its_token_stays_good(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gone: list[Session] = []
    sessions = Sessions(KEY, idle_seconds=60, gone=gone.append)
    idle, busy = opened(sessions), opened(sessions)
    busy.stream = anyio.CancelScope()
    later = module.monotonic() + 61
    monkeypatch.setattr(module, "monotonic", lambda: later)
    opened(sessions)
    assert gone == [idle]
    assert sessions.find(busy.id, ALICE) is busy
    assert sessions.find(idle.id, ALICE) is not idle


@pytest.mark.anyio
async def test_there_is_room_for_so_many_that_are_busy() -> None:
    sessions = Sessions(KEY, most=2)
    first = opened(sessions)
    first.stream = anyio.CancelScope()
    second, third = opened(sessions), opened(sessions)
    assert sessions.find(third.id, ALICE) is third
    third.stream = anyio.CancelScope()
    with pytest.raises(Refused, match="2 sessions are") as refused:
        sessions.find(second.id, ALICE)
    assert refused.value.problem.code == "OVERLOADED"


def test_capabilities_too_long_for_a_header_are_known_by_name_alone() -> None:
    wordy = {"elicitation": {"form": {"x": "y" * 10_000}}, "sampling": {}}
    session = Sessions(KEY).open(ALICE, "2025-11-25", wordy, ("c" * 1000, "1"))
    assert len(session.id) < 4096
    assert session.peer.capabilities == {"elicitation": {}, "sampling": {}}


@given(place=st.integers(min_value=0), with_=st.characters(min_codepoint=33, max_codepoint=126))
def test_a_token_with_one_character_changed_is_none(place: int, with_: str) -> None:
    token = opened(Sessions(KEY)).id
    place %= len(token)
    changed = token[:place] + with_ + token[place + 1 :]
    assert changed == token or not found(Sessions(KEY), changed)


@given(st.text())
def test_any_other_text_is_no_session(text: str) -> None:
    assert not found(Sessions(KEY), text)
