"""State machine of one app session of one user: the states and the allowed transitions."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Literal

import anyio

from toolcrib.apps.messages import session_id
from toolcrib.model import Problem
from toolcrib.sessions.message_rate import MessageRate
from toolcrib.sessions.socket import AppSocket
from toolcrib.sessions.start_attempt import StartAttempt, refusal

State = Literal["connecting", "running", "grace_period", "resurrecting", "stopping", "stopped"]

WAYS: dict[State, frozenset[State]] = {
    "stopped": frozenset({"connecting"}),
    "connecting": frozenset({"running", "stopping", "stopped"}),
    "running": frozenset({"grace_period", "stopping", "stopped"}),
    "grace_period": frozenset({"running", "resurrecting", "stopping"}),
    "resurrecting": frozenset({"running", "stopping", "stopped"}),
    "stopping": frozenset({"stopped"}),
}
"""Allowed transitions. A machine that reaches `stopped` is finished: the next start creates another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AppState:
    """The state of an app session, for API responses."""

    state: State
    since: float
    """Unix time of the last transition."""
    foreground: bool = False
    activated: bool = False
    """Whether a tool call started it, rather than its user."""
    error: str | None = None
    """Why the last start failed, if it did."""

    def as_json(self) -> dict[str, Any]:
        """Serialize the state."""
        return asdict(self)


class AppStateMachine:
    """One app session from the first webhook until it has stopped. `hear` is called on every transition."""

    def __init__(
        self,
        user: str,
        package: str,
        hear: Callable[["AppStateMachine", str | None], None],
        clock: Callable[[], float],
    ) -> None:
        self.user, self.package, self.session = user, package, session_id(user, package)
        self._hear, self._clock = hear, clock
        self.state: State = "stopped"
        self.since = clock()
        self.foreground = self.activated = False
        self.error: str | None = None
        self.socket: AppSocket | None = None
        """The connection; set only while the app runs."""
        self.streams: tuple[str, ...] = ()
        """The subscribed streams."""
        self.changes = 0
        """Counts changes of user data that the app must receive; detects races in the handshake."""
        self.attempt = StartAttempt()
        """The start attempt that waiters share."""
        self.allowance = MessageRate()
        """Message rate limit, across connections: reconnecting does not refill it."""
        self.over = anyio.Event()
        self.touch()

    def touch(self) -> None:
        """Record activity; resets the idle timeout."""
        self.last = anyio.current_time()

    def describe(self) -> AppState:
        """Return the current state."""
        return AppState(
            state=self.state,
            since=self.since,
            foreground=self.foreground,
            activated=self.activated,
            error=self.error,
        )

    # --- transitions ---

    def begin(self, *, activated: bool) -> StartAttempt:
        """Move to `connecting`; return the start attempt."""
        self.activated = activated
        self._move("connecting")
        return self.attempt

    @property
    def welcome(self) -> bool:
        """Whether a connection of the app is accepted now."""
        return self.state in ("connecting", "running", "grace_period", "resurrecting")

    def arrive(self, socket: AppSocket) -> AppSocket | None:
        """Set the authenticated connection and move to `running`; return the connection it replaces."""
        former, self.socket = self.socket, socket
        self.touch()
        if self.state != "running":
            self._move("running")
        self.attempt.settle()
        return former

    def drop(self, socket: AppSocket) -> StartAttempt | None:
        """Handle a lost connection; return the attempt that awaits the reconnect, None if it is stale."""
        if self.state != "running" or self.socket is not socket:
            return None
        self.socket, self.attempt = None, StartAttempt()
        self._move("grace_period", "the connection was lost")
        return self.attempt

    def revive(self, attempt: StartAttempt) -> bool:
        """Move to `resurrecting` if the grace period ended without a reconnect; return whether it did."""
        if self.state != "grace_period" or self.attempt is not attempt:
            return False
        attempt.recalled = True
        self._move("resurrecting", "it did not come back by itself")
        return True

    def fail(self, attempt: StartAttempt, found: Problem) -> None:
        """Fail a start attempt; does nothing if the attempt is stale or the app is connected or stopped."""
        if self.attempt is not attempt or self.state not in ("connecting", "resurrecting"):
            return
        self.error = found.message
        self._move("stopped", found.stage)
        attempt.settle(found)

    def release(self, reason: str) -> None:
        """Move to `stopped`: the app has released its session."""
        if self.state == "running":
            self.socket = None
            self._move("stopped", reason)

    def leave(self, reason: str) -> bool:
        """Move to `stopping`; return False if it is stopping or stopped already."""
        if not self.welcome:
            return False
        self._move("stopping", reason)
        self.attempt.settle(refusal("connection", f"{self.package} was stopped", retryable=True))
        return True

    def end(self, reason: str) -> None:
        """Move to `stopped`; the last step of a stop, even if its message could not be sent."""
        self.socket = None
        self._move("stopped", reason)

    def _move(self, state: State, reason: str | None = None) -> None:
        if state not in WAYS[self.state]:
            message = f"an app that is {self.state} cannot become {state}"
            raise AssertionError(message)
        self.state, self.since = state, self._clock()
        if state == "stopped":
            self.streams, self.foreground = (), False
            self.over.set()
        self._hear(self, reason)
