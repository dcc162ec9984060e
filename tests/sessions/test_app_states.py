"""The app state machine: its transitions and stored states."""

import pytest

from tests.sessions.app_host import MemorySocket
from toolcrib.errors import Unavailable
from toolcrib.sessions.app_state import TRANSITIONS, AppStateMachine, AppStateTable, not_available

pytestmark = pytest.mark.anyio

PROBLEM = not_available("webhook", "it was not there", retryable=True)


def new_app(told: list[tuple[str, str | None]] | None = None) -> AppStateMachine:
    """Make an app state machine that records its changes."""
    heard = [] if told is None else told
    return AppStateMachine("u", "p", lambda app, reason: heard.append((app.state, reason)), lambda: 7.0)


@pytest.mark.requirement("D9")
async def test_app_has_six_states() -> None:
    names = {"connecting", "running", "grace_period", "resurrecting", "stopping", "stopped"}
    assert set(TRANSITIONS) == names
    assert set().union(*TRANSITIONS.values()) == names
    assert all(TRANSITIONS.values())


@pytest.mark.requirement("D9")
async def test_full_state_sequence() -> None:
    told: list[tuple[str, str | None]] = []
    app, first, second = new_app(told), MemorySocket(), MemorySocket()
    attempt = app.begin(activated=True)
    assert app.arrive(first) is None
    await attempt.wait()
    away = app.drop(first)
    assert away is not None
    assert away.open
    assert app.revive(away)
    assert app.arrive(second) is None
    await away.wait()
    assert app.leave("user_disabled")
    app.end("user_disabled")
    assert [state for state, _ in told] == [
        "connecting",
        "running",
        "grace_period",
        "resurrecting",
        "running",
        "stopping",
        "stopped",
    ]
    assert app.over.is_set()
    assert app.describe().as_json() == {
        "state": "stopped",
        "since": 7.0,
        "foreground": False,
        "activated": True,
        "error": None,
    }


async def test_late_events_are_ignored() -> None:
    app, socket = new_app(), MemorySocket()
    attempt = app.begin(activated=False)
    app.arrive(socket)
    app.fail(attempt, PROBLEM)
    assert app.state == "running"
    assert app.drop(MemorySocket()) is None
    assert not app.revive(attempt)
    away = app.drop(socket)
    assert away is not None
    assert app.drop(socket) is None
    app.fail(away, PROBLEM)
    assert not app.revive(attempt)
    assert app.state == "grace_period"
    app.release("late")
    assert app.state == "grace_period"
    assert app.leave("stop")
    assert not app.leave("stop")
    assert not app.revive(away)
    with pytest.raises(Unavailable, match="was stopped"):
        await away.wait()


async def test_attempts_are_independent() -> None:
    app, socket = new_app(), MemorySocket()
    first = app.begin(activated=False)
    app.arrive(socket)
    second = app.drop(socket)
    assert second is not None
    assert app.revive(second)
    app.fail(first, PROBLEM)
    assert app.state == "resurrecting"
    app.fail(second, PROBLEM)
    assert app.state == "stopped"


async def test_failure_reaches_all_waiters() -> None:
    app = new_app()
    attempt = app.begin(activated=False)
    app.fail(attempt, PROBLEM)
    for _ in range(2):
        with pytest.raises(Unavailable, match="it was not there"):
            await attempt.wait()
    assert app.describe().error == "it was not there"
    assert not app.accepts_connection


async def test_other_transitions_are_refused() -> None:
    app = new_app()
    with pytest.raises(AssertionError, match="cannot become running"):
        app.arrive(MemorySocket())


async def test_user_without_apps_is_dropped() -> None:
    lives = AppStateTable()
    app = AppStateMachine("u", "p", lambda app, _: lives.changed(app), lambda: 0.0)
    lives.add(app)
    attempt = app.begin(activated=False)
    assert (lives.users(), lives.of("u"), list(lives), lives.expected) == (1, (app,), [app], {app})
    app.fail(attempt, PROBLEM)
    assert (lives.users(), lives.of("u"), list(lives), lives.expected) == (0, (), [], set())
    assert lives.states("u")["p"].error == "it was not there"
    lives.forget("p")
    assert lives.states("u") == {}
