"""One app of one user, and how it is doing: every state there is, and every way from one to the next."""

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
"""Where each state may lead. One that has come to `stopped` is over: the next start makes another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AppState:
    """How an app is doing, for whoever asks."""

    state: State
    since: float
    """When it came to that."""
    foreground: bool = False
    activated: bool = False
    """Whether a tool call has started it, rather than its user."""
    error: str | None = None
    """Why it does not run, where its last start failed."""

    def as_json(self) -> dict[str, Any]:
        """Spell it."""
        return asdict(self)


class AppStateMachine:
    """From the first webhook until it has stopped. `hear` is told of every change, and why."""

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
        """Where it is connected; only while it runs."""
        self.streams: tuple[str, ...] = ()
        """What it has subscribed to."""
        self.changes = 0
        """How often there was something to tell it of its user, connected or not."""
        self.attempt = StartAttempt()
        """What those wait for who need it."""
        self.allowance = MessageRate()
        """How much it may say, over whichever connection: one that comes anew has no more for that."""
        self.over = anyio.Event()
        self.touch()

    def touch(self) -> None:
        """Take note that it is of use."""
        self.last = anyio.current_time()

    def describe(self) -> AppState:
        """Say how it is doing."""
        return AppState(
            state=self.state,
            since=self.since,
            foreground=self.foreground,
            activated=self.activated,
            error=self.error,
        )

    # --- what may happen to it ---

    def begin(self, *, activated: bool) -> StartAttempt:
        """It is wanted."""
        self.activated = activated
        self._move("connecting")
        return self.attempt

    @property
    def welcome(self) -> bool:
        """Whether it may connect now."""
        return self.state in ("connecting", "running", "grace_period", "resurrecting")

    def arrive(self, socket: AppSocket) -> AppSocket | None:
        """It has connected and is known; return the connection that this one replaces."""
        former, self.socket = self.socket, socket
        self.touch()
        if self.state != "running":
            self._move("running")
        self.attempt.settle()
        return former

    def drop(self, socket: AppSocket) -> StartAttempt | None:
        """A connection broke; where it was the one in use, return what its coming back is waited for with."""
        if self.state != "running" or self.socket is not socket:
            return None
        self.socket, self.attempt = None, StartAttempt()
        self._move("grace_period", "the connection was lost")
        return self.attempt

    def revive(self, attempt: StartAttempt) -> bool:
        """It has not come back by itself; whether that is still so, and it is to be asked."""
        if self.state != "grace_period" or self.attempt is not attempt:
            return False
        attempt.recalled = True
        self._move("resurrecting", "it did not come back by itself")
        return True

    def fail(self, attempt: StartAttempt, found: Problem) -> None:
        """It did not come; nothing happens where it has, or where it is over anyway."""
        if self.attempt is not attempt or self.state not in ("connecting", "resurrecting"):
            return
        self.error = found.message
        self._move("stopped", found.stage)
        attempt.settle(found)

    def release(self, reason: str) -> None:
        """It has given the session up."""
        if self.state == "running":
            self.socket = None
            self._move("stopped", reason)

    def leave(self, reason: str) -> bool:
        """It is to stop; False where it does so already."""
        if not self.welcome:
            return False
        self._move("stopping", reason)
        self.attempt.settle(refusal("connection", f"{self.package} was stopped", retryable=True))
        return True

    def end(self, reason: str) -> None:
        """It has been told to stop."""
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
