"""States of apps per user: start attempts, connection, grace period and stop."""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from math import inf
from typing import Any, Literal, Protocol

import anyio

from toolcrib.apps.messages import session_id
from toolcrib.errors import Unavailable, problem
from toolcrib.model import Problem
from toolcrib.slots import DEFAULT_SHARE

# --- Protocol of an app's WebSocket connection ---


class AppSocket(Protocol):
    """A message stream to and from an app; the frontend that accepted the connection implements it."""

    async def receive(self) -> str | bytes | None:
        """Return the next message; None after the connection has closed, on every call."""
        ...

    async def send(self, text: str) -> None:
        """Queue a message: does not wait for the app to read it, and does not raise after a disconnect."""
        ...

    async def close(self, code: int, reason: str = "") -> None:
        """Close the connection, once; `receive` returns None from then on."""
        ...


# --- Timeouts and limits of app sessions ---


@dataclass(frozen=True, slots=True, kw_only=True)
class AppTimeouts:
    """Timeouts in seconds, and limits of sizes and counts."""

    activation: float = 10.0
    """Time an app has to connect and authenticate after a start."""
    grace: float = 5.0
    """Time a disconnected app has to reconnect before its webhook is called."""
    heartbeat: float = 10.0
    """Interval of WebSocket pings; the frontend that owns the socket sends them."""
    idle: float | None = 600.0
    """An app without calls, messages or events for this long is stopped; None disables that."""
    first_frame: float = 5.0
    """Time a new connection has to send its first message, which authenticates it."""
    frame_bytes: int = 1 << 20
    """Bytes of the largest message an app may send."""
    webhook: float = 10.0
    """Timeout of a webhook response."""
    sockets: int = 4096
    """Maximum number of authenticated app connections."""
    share: float = DEFAULT_SHARE
    """Largest share of a limit for one principal: a key, or the key that owns the app."""
    phone_microphone: bool = True
    """Whether the phone's microphone counts as the device's."""


# --- Rate limit for messages of an app (token bucket) ---

# Tokens of a full bucket.
MESSAGE_BURST = 500.0
MESSAGES_PER_SECOND = 100.0
"""Tokens added per second."""
_BYTES_PER_TOKEN = 4_096
"""Bytes per extra token: a larger message costs several tokens."""


class MessageRate:
    """The token bucket of one app session."""

    def __init__(self) -> None:
        self._left, self._at = MESSAGE_BURST, anyio.current_time()

    def take(self, size: int) -> bool:
        """Charge a message of this size in bytes; return False if it exceeds the limit."""
        now = anyio.current_time()
        self._left = (
            min(MESSAGE_BURST, self._left + (now - self._at) * MESSAGES_PER_SECOND)
            - 1
            - size // _BYTES_PER_TOKEN
        )
        self._at = now
        return self._left >= 0


# --- One attempt to start or reconnect an app, shared by all waiters: it settles once ---

LATE_CONNECTION_SECONDS = 1.0
"""Seconds the right connection may still take after a failed one, once the webhook has responded."""


class StartAttempt:
    """Created when an app is requested to connect, or is expected to reconnect."""

    def __init__(self) -> None:
        self.limit = anyio.CancelScope(deadline=inf)
        """Scope around the timeout of the attempt; evidence of a failure shortens its deadline."""
        self.recalled = False
        """Whether a lost app's webhook is in flight; an app that is back by then releases and reconnects."""
        self._done = anyio.Event()
        self._problem: Problem | None = None
        self._suspicion: Problem | None = None
        self._named = self._answered = False

    @property
    def open(self) -> bool:
        """Whether the attempt has not settled."""
        return not self._done.is_set()

    def settle(self, found: Problem | None = None) -> None:
        """Settle the attempt, with an error or without; only the first call counts."""
        if self.open:
            self._problem = found
            self._done.set()

    async def ended(self) -> None:
        """Wait until the attempt has settled, whatever the result."""
        await self._done.wait()

    async def wait(self) -> None:
        """Wait until the app runs; raise the error of a failed attempt."""
        await self._done.wait()
        if self._problem is not None:
            raise unavailable(self._problem)

    # Evidence collected during the attempt. None of it is final: a connection is unauthenticated until it
    # has sent the key, and an unauthenticated client must not be able to fail the attempt for its waiters.

    def suspect(self, found: Problem, *, named: bool) -> None:
        """Record a probable cause, used if the attempt fails; `named` if the connection named this app."""
        if self._suspicion is None or (named and not self._named):
            self._suspicion, self._named = found, named
        self._shorten_deadline()

    def answered(self) -> None:
        """Record that the app has responded to the webhook."""
        self._answered = True
        self._shorten_deadline()

    def reason(self, otherwise: Problem) -> Problem:
        """Return the recorded cause, or else the given problem."""
        return self._suspicion or otherwise

    def _shorten_deadline(self) -> None:
        if self._named and self._answered:
            self.limit.deadline = min(self.limit.deadline, anyio.current_time() + LATE_CONNECTION_SECONDS)


def not_available(stage: str, message: str, *, retryable: bool) -> Problem:
    """Return the problem of an app that is not available."""
    return problem("APP_NOT_AVAILABLE", message, stage=stage, retryable=retryable)


def start_timeout(package: str, seconds: float) -> Problem:
    """Return the problem of an app that did not connect in time."""
    message = f"{package} was asked to start and did not connect within {seconds:g} s; try again"
    return problem("TIMEOUT", message, stage="timeout")


def unavailable(found: Problem) -> Unavailable:
    """Build an exception from a problem: each waiter must raise its own instance."""
    return Unavailable(found.code, found.message, stage=found.stage, retryable=found.retryable)


# --- State machine of one app session of one user: the states and the allowed transitions ---

AppStateName = Literal["connecting", "running", "grace_period", "resurrecting", "stopping", "stopped"]

TRANSITIONS: dict[AppStateName, frozenset[AppStateName]] = {
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

    state: AppStateName
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
    """One app session from the first webhook until it has stopped; reports every transition."""

    def __init__(
        self,
        user: str,
        package: str,
        on_transition: Callable[["AppStateMachine", str | None], None],
        clock: Callable[[], float],
    ) -> None:
        self.user, self.package, self.session = user, package, session_id(user, package)
        self._on_transition, self._clock = on_transition, clock
        self.state: AppStateName = "stopped"
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
    def accepts_connection(self) -> bool:
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
        self._move("resurrecting", "it did not reconnect")
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
        if not self.accepts_connection:
            return False
        self._move("stopping", reason)
        self.attempt.settle(not_available("connection", f"{self.package} was stopped", retryable=True))
        return True

    def end(self, reason: str) -> None:
        """Move to `stopped`; the last step of a stop, even if its message could not be sent."""
        self.socket = None
        self._move("stopped", reason)

    def _move(self, state: AppStateName, reason: str | None = None) -> None:
        if state not in TRANSITIONS[self.state]:
            message = f"an app that is {self.state} cannot become {state}"
            raise AssertionError(message)
        self.state, self.since = state, self._clock()
        if state == "stopped":
            self.streams, self.foreground = (), False
            self.over.set()
        self._on_transition(self, reason)


# --- Table of app sessions by user, and the errors of starts that failed ---

MAX_FAILED_STARTS = 1_000
"""Failed starts that are remembered; the oldest are evicted."""


class AppStateTable:
    """App sessions that are not stopped, by user; users without any have no entry."""

    def __init__(self) -> None:
        self._users: dict[str, dict[str, AppStateMachine]] = {}
        self._failed: OrderedDict[tuple[str, str], AppState] = OrderedDict()
        self.expected: set[AppStateMachine] = set()
        """Sessions that wait for their app to connect."""

    def get(self, user: str, package: str) -> AppStateMachine | None:
        """Return one app session, unless it is stopped."""
        apps = self._users.get(user)
        return None if apps is None else apps.get(package)

    def of(self, user: str) -> tuple[AppStateMachine, ...]:
        """Return a user's app sessions that are not stopped."""
        return tuple(self._users.get(user, {}).values())

    def __iter__(self) -> Iterator[AppStateMachine]:
        """Iterate over a snapshot of all app sessions: they may change during the iteration."""
        return iter([machine for apps in self._users.values() for machine in apps.values()])

    def users(self) -> int:
        """Return how many users have app sessions that are not stopped."""
        return len(self._users)

    def add(self, machine: AppStateMachine) -> None:
        """Add an app session that is starting."""
        self._failed.pop((machine.user, machine.package), None)
        self._users.setdefault(machine.user, {})[machine.package] = machine

    def changed(self, machine: AppStateMachine) -> None:
        """Update the table after a transition; remove a stopped session."""
        if machine.state in ("connecting", "resurrecting"):
            self.expected.add(machine)
        else:
            self.expected.discard(machine)
        if machine.state == "stopped":
            self._drop(machine)

    def _drop(self, machine: AppStateMachine) -> None:
        apps = self._users[machine.user]
        del apps[machine.package]
        if not apps:
            del self._users[machine.user]
        if machine.error is not None:
            self._failed[machine.user, machine.package] = machine.describe()
            if len(self._failed) > MAX_FAILED_STARTS:
                self._failed.popitem(last=False)

    def forget(self, package: str) -> None:
        """Forget the failed starts of an app."""
        for key in [key for key in self._failed if key[1] == package]:
            del self._failed[key]

    def states(self, user: str) -> Mapping[str, AppState]:
        """Return the states of a user's apps; stopped ones only if their start failed."""
        failed = {package: state for (owner, package), state in self._failed.items() if owner == user}
        return {**failed, **{machine.package: machine.describe() for machine in self.of(user)}}
