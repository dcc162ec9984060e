"""Every way from one state to another, and none but these; and what is kept of it all."""

import pytest

from tests.sessions.stage import MemorySocket
from toolcrib.errors import Unavailable
from toolcrib.sessions.app_state import WAYS, AppStateMachine
from toolcrib.sessions.app_states import AppStates
from toolcrib.sessions.start_attempt import refusal

pytestmark = pytest.mark.anyio

PROBLEM = refusal("webhook", "it was not there", retryable=True)


def a_life(told: list[tuple[str, str | None]] | None = None) -> AppStateMachine:
    """Make an app whose changes are kept."""
    heard = [] if told is None else told
    return AppStateMachine("u", "p", lambda life, reason: heard.append((life.state, reason)), lambda: 7.0)


@pytest.mark.requirement("D9")
async def test_app_has_six_states() -> None:
    names = {"connecting", "running", "grace_period", "resurrecting", "stopping", "stopped"}
    assert set(WAYS) == names
    assert set().union(*WAYS.values()) == names
    assert all(WAYS.values())


@pytest.mark.requirement("D9")
async def test_full_state_sequence() -> None:
    told: list[tuple[str, str | None]] = []
    life, first, second = a_life(told), MemorySocket(), MemorySocket()
    attempt = life.begin(activated=True)
    assert life.arrive(first) is None
    await attempt.wait()
    away = life.drop(first)
    assert away is not None
    assert away.open
    assert life.revive(away)
    assert life.arrive(second) is None
    await away.wait()
    assert life.leave("user_disabled")
    life.end("user_disabled")
    assert [state for state, _ in told] == [
        "connecting",
        "running",
        "grace_period",
        "resurrecting",
        "running",
        "stopping",
        "stopped",
    ]
    assert life.over.is_set()
    assert life.describe().as_json() == {
        "state": "stopped",
        "since": 7.0,
        "foreground": False,
        "activated": True,
        "error": None,
    }


async def test_late_events_are_ignored() -> None:
    life, socket = a_life(), MemorySocket()
    attempt = life.begin(activated=False)
    life.arrive(socket)
    life.fail(attempt, PROBLEM)
    assert life.state == "running"
    assert life.drop(MemorySocket()) is None
    assert not life.revive(attempt)
    away = life.drop(socket)
    assert away is not None
    assert life.drop(socket) is None
    life.fail(away, PROBLEM)
    assert not life.revive(attempt)
    assert life.state == "grace_period"
    life.release("late")
    assert life.state == "grace_period"
    assert life.leave("stop")
    assert not life.leave("stop")
    assert not life.revive(away)
    with pytest.raises(Unavailable, match="was stopped"):
        await away.wait()


async def test_attempts_are_independent() -> None:
    life, socket = a_life(), MemorySocket()
    first = life.begin(activated=False)
    life.arrive(socket)
    second = life.drop(socket)
    assert second is not None
    assert life.revive(second)
    life.fail(first, PROBLEM)
    assert life.state == "resurrecting"
    life.fail(second, PROBLEM)
    assert life.state == "stopped"


async def test_failure_reaches_all_waiters() -> None:
    life = a_life()
    attempt = life.begin(activated=False)
    life.fail(attempt, PROBLEM)
    for _ in range(2):
        with pytest.raises(Unavailable, match="it was not there"):
            await attempt.wait()
    assert life.describe().error == "it was not there"
    assert not life.welcome


async def test_other_transitions_are_refused() -> None:
    life = a_life()
    with pytest.raises(AssertionError, match="cannot become running"):
        life.arrive(MemorySocket())


async def test_user_without_apps_is_dropped() -> None:
    lives = AppStates()
    life = AppStateMachine("u", "p", lambda life, _: lives.changed(life), lambda: 0.0)
    lives.add(life)
    attempt = life.begin(activated=False)
    assert (lives.users(), lives.of("u"), list(lives), lives.expected) == (1, (life,), [life], {life})
    life.fail(attempt, PROBLEM)
    assert (lives.users(), lives.of("u"), list(lives), lives.expected) == (0, (), [], set())
    assert lives.states("u")["p"].error == "it was not there"
    lives.forget("p")
    assert lives.states("u") == {}
