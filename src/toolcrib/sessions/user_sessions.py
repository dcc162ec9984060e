"""Live sessions of users: devices, apps and how long they last."""

import logging
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager
from functools import partial
from time import time

import anyio
from anyio import TASK_STATUS_IGNORED
from anyio.abc import TaskStatus

from toolcrib.apps import messages
from toolcrib.clock import Clock
from toolcrib.errors import Refused, ToolcribError
from toolcrib.interfaces import AppRecord, SessionRecord, StoredUsers, UserRecord
from toolcrib.model import Call, Device, JsonObject
from toolcrib.sessions.app_messages import AppCalls, AppMessages
from toolcrib.sessions.app_start import (
    AppStarter,
    PostsJson,
    TaskRunner,
    Webhooks,
    connected_device,
    stop_reason,
)
from toolcrib.sessions.app_state import AppSocket, AppState, AppStateMachine, AppStateTable, AppTimeouts
from toolcrib.sessions.handshake import AppHandshake, HandshakeRejected
from toolcrib.sessions.user_events import EventHub, EventListener, UserEvent, matching_stream

# --- App sessions of all users: starts, stops and monitors apps, and exchanges messages with them ---

_CHECKS_PER_TIMEOUT = 20
"""The minimum interval between idle checks is the idle timeout divided by this."""


class UserSessions:
    """App sessions of all users. `find` looks up apps, `user` reads a user, `post` calls webhooks."""

    def __init__(
        self,
        settings: AppTimeouts,
        *,
        find: Callable[[str], AppRecord | None],
        user: Callable[[str], Awaitable[UserRecord | None]],
        post: PostsJson,
        clock: Callable[[], float] = time,
    ) -> None:
        self.settings = settings
        self._find, self._user, self._clock = find, user, clock
        self._hub, self._lives = EventHub(settings.share), AppStateTable()
        self._calls = AppCalls(self._hub)
        self._webhooks = Webhooks(post, clock)
        self._background = TaskRunner()
        self._starting = AppStarter(settings, self._webhooks, self._background, find=find, user=user)
        self._door = AppHandshake(settings, self._lives, find=find, user=user, clock=clock)
        self._frames = AppMessages(settings, self._hub, self._calls, to_front=self._to_front, clock=clock)

    @property
    def address(self) -> str | None:
        """Base URL at which apps reach the gateway; None while nothing listens."""
        return self._webhooks.address

    @address.setter
    def address(self, address: str | None) -> None:
        self._webhooks.address = address

    async def run(self, *, task_status: TaskStatus[None] = TASK_STATUS_IGNORED) -> None:
        """Run background tasks and idle checks until cancelled; then close every app session."""
        async with anyio.create_task_group() as tasks:
            self._background.tasks = tasks
            task_status.started()
            try:
                await self._rounds()
            finally:
                self._background.tasks = None
                with anyio.CancelScope(shield=True):
                    for life in self._lives:
                        await self._close(life, "the gateway stops", code=1001)

    # --- lifecycle ---

    async def ready(self, call: Call) -> bool:
        """Ensure that the app of a call runs for its user; return True if this call started it."""
        user, package = call.caller.user, call.tool.source
        if user is None:
            raise Refused("NO_SESSION", f"{package} is an app: it is called on behalf of a user")
        life = self._lives.get(user, package)
        if life is not None and life.state == "running":
            life.touch()
            return False
        return await self._have(user, package, call.caller.device, activated=True)

    async def start(self, user: str, package: str) -> None:
        """Start an app for its user; a standard app takes the foreground, and the previous one stops."""
        record = await self._user(user)
        if record is None or not any(each.package == package for each in record.installs):
            raise Refused("NOT_FOUND", f"{package} is not installed for this user")
        if record.session is None:
            raise Refused("NO_SESSION", "the user has no active session; begin one first")
        await self._have(user, package, connected_device(record), activated=False)
        life = self._lives.get(user, package)
        if life is not None:
            await self._to_front(life)

    async def stop(self, user: str, package: str, reason: str = "user_disabled") -> bool:
        """Stop an app; return False if it does not run."""
        life = self._lives.get(user, package)
        return life is not None and await self._stop(life, reason)

    async def end(self, user: str) -> None:
        """Stop all apps of a user after the session has ended."""
        for life in self._lives.of(user):
            await self._stop(life, "system_stop")

    async def forget(self, package: str) -> None:
        """Close all sessions of an app that was removed or has another key."""
        for life in self._lives:
            if life.package == package:
                await self._stop(life, "system_stop")
        self._lives.forget(package)

    def states(self, user: str) -> Mapping[str, AppState]:
        """Return the states of a user's apps; an app without an entry is stopped."""
        return self._lives.states(user)

    def running(self) -> int:
        """Return the number of running apps, over all users."""
        return sum(life.state == "running" for life in self._lives)

    def users(self) -> int:
        """Return how many users have an app that is not stopped."""
        return self._lives.users()

    @property
    def ignored(self) -> int:
        """Return the number of app messages that were ignored."""
        return self._frames.ignored

    async def _have(self, user: str, package: str, device: Device | None, *, activated: bool) -> bool:
        life = self._lives.get(user, package)
        while life is not None and life.state == "stopping":
            await life.over.wait()
            life = self._lives.get(user, package)
        caused = life is None
        if life is None:
            app = self._starting.check(package, device)
            life = AppStateMachine(user, package, self._changed, self._clock)
            self._lives.add(life)
            life.begin(activated=activated)
            self._starting.begin(life, app)
        await life.attempt.wait()
        return caused

    def _changed(self, life: AppStateMachine, reason: str | None) -> None:
        self._lives.changed(life)
        self._tell_state(life, reason)

    def _tell_state(self, life: AppStateMachine, reason: str | None) -> None:
        said = {"packageName": life.package, "state": life.state}
        self._hub.tell(life.user, UserEvent("app", said if reason is None else {**said, "reason": reason}))

    async def _stop(self, life: AppStateMachine, reason: str) -> bool:
        if not await self._close(life, reason):
            return False
        app = self._find(life.package)
        if app is not None and app.public_url:
            self._background.begin(partial(self._webhooks.go, app, life.user, reason))
        return True

    async def _close(self, life: AppStateMachine, reason: str, *, code: int = 1000) -> bool:
        socket = life.socket
        if not life.leave(reason):
            return False
        try:
            if socket is not None:
                said = messages.app_stopped(life.session, reason=stop_reason(reason), now=self._clock())
                await socket.send(messages.encode(said))
                await socket.close(code, "App stopped")
        finally:
            life.end(reason)
        return True

    async def _to_front(self, life: AppStateMachine) -> None:
        app = self._find(life.package)
        if app is None or app.app_type != "standard" or life.state != "running" or life.foreground:
            return
        former = [other for other in self._lives.of(life.user) if other.foreground]
        life.foreground = True
        self._tell_state(life, "foreground")
        for other in former:
            await self._stop(other, "foreground")

    async def _rounds(self) -> None:
        idle = self.settings.idle
        if idle is None:
            await anyio.sleep_forever()
            return
        while True:
            now, soonest = anyio.current_time(), idle
            for life in self._lives:
                left = life.last + idle - now
                if left <= 0 and life.state == "running" and not self._busy(life):
                    await self._stop(life, "idle")
                else:
                    soonest = min(soonest, left)
            await anyio.sleep(max(soonest, idle / _CHECKS_PER_TIMEOUT))

    # --- notifications to apps ---

    def begin(self, session: SessionRecord, device: Device | None) -> None:
        """Handle a new or changed user session: notify its apps; stop those the device does not support."""
        capabilities = None if device is None else device.capabilities
        for life in self._lives.of(session.user):
            life.changes += 1
            if not self._starting.fits(life.package, device):
                self._background.begin(partial(self._stop, life, "hardware"))
            else:
                said = messages.capabilities_update(
                    life.session, capabilities, now=self._clock(), language=session.language
                )
                self._background.begin(partial(self._send, life, said))

    def configure(self, user: str, package: str, settings: JsonObject) -> None:
        """Notify an app session of changed settings."""
        life = self._lives.get(user, package)
        if life is not None:
            life.changes += 1
            said = messages.settings_update(life.session, package, settings, now=self._clock())
            self._background.begin(partial(self._send, life, said))

    async def transcribe(self, user: str, text: str, *, final: bool, language: str | None) -> int:
        """Send a transcription to the subscribed apps; return how many received it."""
        now, told = self._clock(), 0
        data = messages.transcription(text, final=final, language=language or "auto", now=now)
        for life in self._lives.of(user):
            stream = matching_stream(life.streams, language)
            if stream is not None and life.socket is not None:
                await self._send(life, messages.data_stream(life.session, stream, data, now=now))
                life.touch()
                told += 1
        return told

    async def _send(self, life: AppStateMachine, message: JsonObject) -> None:
        if life.socket is not None:
            await life.socket.send(messages.encode(message))

    # --- messages from apps ---

    async def accept(self, socket: AppSocket, rejected: HandshakeRejected | None = None) -> None:
        """Serve a connection until it ends; an app that lost it has the grace period to reconnect.

        `rejected` is called with the package of an app that sent a wrong key, before the app is notified.
        """
        try:
            life = await self._door.enter(socket, rejected)
            if life is not None:
                await self._read(life, socket)
        finally:
            self._door.left(socket)

    async def _read(self, life: AppStateMachine, socket: AppSocket) -> None:
        try:
            await self._frames.read(life, socket)
        finally:
            attempt = life.drop(socket)
            if attempt is not None:
                self._starting.lost(life, attempt)

    @contextmanager
    def following(self, call: Call) -> Generator[None]:
        """Route an app's progress to the caller of this call, while this is open."""
        with self._calls.following(call):
            try:
                yield
            finally:
                life = self._lives.get(call.caller.user or "", call.tool.source)
                if life is not None:
                    life.touch()

    def active(self, since: float) -> set[str]:
        """Return users with listeners, or with apps active since this time of the event loop's clock."""
        lives = (life for life in self._lives if life.last >= since or self._busy(life))
        return {life.user for life in lives} | set(self._hub)

    def _busy(self, life: AppStateMachine) -> bool:
        return self._calls.busy(life.user, life.package)

    # --- device events ---

    def listen(self, user: str, principal: str) -> AbstractAsyncContextManager[EventListener]:
        """Subscribe to the events for a user's devices while the context is open."""
        return self._hub.listen(user, principal)

    def tell(self, user: str, event: UserEvent) -> None:
        """Publish an event to a user's devices."""
        self._hub.tell(user, event)

    def hears(self, user: str) -> bool:
        """Whether a device of a user listens."""
        return self._hub.hears(user)


# --- Last use of user sessions: recorded in memory, written to the store in batches, for the idle timeout
# ---

log = logging.getLogger(__name__)

WRITES_PER_TIMEOUT = 20
"""A use is stored once the stored one is older than the idle timeout divided by this."""
MAX_ROUND_SECONDS = 60.0
"""Seconds; upper bound of the interval between rounds."""

EndSession = Callable[[str, float], Awaitable[object]]
"""Ends the session of a user, unless it was used since a time."""


class SessionUse:
    """When users were last active. Recording a use is one assignment; the store is written in rounds.

    `idle` is the idle timeout in seconds; None disables it.
    """

    def __init__(self, users: StoredUsers, sessions: UserSessions, clock: Clock, idle: float | None) -> None:
        self._users, self._sessions, self._clock, self._idle = users, sessions, clock, idle
        self._last: dict[str, float] = {}
        self._stored: dict[str, float] = {}

    def note(self, user: str) -> None:
        """Record that a user with a session is active."""
        if self._idle is not None:
            self._last[user] = self._clock.now()

    async def run(self, end: EndSession) -> None:
        """End idle sessions, until cancelled."""
        if self._idle is None:
            return
        period = min(MAX_ROUND_SECONDS, self._idle / WRITES_PER_TIMEOUT)
        while True:
            await anyio.sleep(period)
            try:
                await self.look(end, period)
            except ToolcribError as error:
                log.warning("unused sessions of users cannot be ended now: %s", error)

    async def look(self, end: EndSession, period: float) -> None:
        """Store the uses since the last round, and end the sessions that are idle."""
        if self._idle is None:
            return
        for user in self._sessions.active(anyio.current_time() - period):
            self.note(user)
        now, part = self._clock.now(), self._idle / WRITES_PER_TIMEOUT
        due = {user: at for user, at in self._last.items() if at - self._stored.get(user, 0.0) >= part}
        await self._users.used(due)
        self._stored.update(due)
        # Later by one part, since a use in another process may not be stored yet.
        since = now - self._idle - part
        for user in await self._users.unused_since(since):
            if self._last.get(user, 0.0) < since:
                await self._end(user, since, end)
        for user in [user for user, at in self._last.items() if at < since]:
            del self._last[user]
            self._stored.pop(user, None)

    async def _end(self, user: str, since: float, end: EndSession) -> None:
        try:
            await end(user, since)
        except Refused as error:
            # Another process ended it, or the user came back.
            log.debug("the session of a user was not ended: %s", error)
