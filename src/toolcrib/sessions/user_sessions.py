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
        self._hub, self._machines = EventHub(settings.share), AppStateTable()
        self._calls = AppCalls(self._hub)
        self._webhooks = Webhooks(post, clock)
        self._background = TaskRunner()
        self._starting = AppStarter(settings, self._webhooks, self._background, find=find, user=user)
        self._handshake = AppHandshake(settings, self._machines, find=find, user=user, clock=clock)
        self._messages = AppMessages(settings, self._hub, self._calls, to_front=self._to_front, clock=clock)

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
                await self._stop_idle_apps()
            finally:
                self._background.tasks = None
                with anyio.CancelScope(shield=True):
                    for machine in self._machines:
                        await self._close(machine, "the gateway stops", code=1001)

    # --- lifecycle ---

    async def ready(self, call: Call) -> bool:
        """Ensure that the app of a call runs for its user; return True if this call started it."""
        user, package = call.caller.user, call.tool.source
        if user is None:
            raise Refused("NO_SESSION", f"{package} is an app: it is called on behalf of a user")
        machine = self._machines.get(user, package)
        if machine is not None and machine.state == "running":
            machine.touch()
            return False
        return await self._ensure_running(user, package, call.caller.device, activated=True)

    async def start(self, user: str, package: str) -> None:
        """Start an app for its user; a standard app takes the foreground, and the previous one stops."""
        record = await self._user(user)
        if record is None or not any(each.package == package for each in record.installs):
            raise Refused("NOT_FOUND", f"{package} is not installed for this user")
        if record.session is None:
            message = "the user has no active session; begin one first"
            raise Refused("NO_SESSION", message, details={"user": user})
        await self._ensure_running(user, package, connected_device(record), activated=False)
        machine = self._machines.get(user, package)
        if machine is not None:
            await self._to_front(machine)

    async def stop(self, user: str, package: str, reason: str = "user_disabled") -> bool:
        """Stop an app; return False if it does not run."""
        machine = self._machines.get(user, package)
        return machine is not None and await self._stop(machine, reason)

    async def end(self, user: str) -> None:
        """Stop all apps of a user after the session has ended."""
        for machine in self._machines.of(user):
            await self._stop(machine, "system_stop")

    async def forget(self, package: str) -> None:
        """Close all sessions of an app that was removed or has another key."""
        for machine in self._machines:
            if machine.package == package:
                await self._stop(machine, "system_stop")
        self._machines.forget(package)

    def states(self, user: str) -> Mapping[str, AppState]:
        """Return the states of a user's apps; an app without an entry is stopped."""
        return self._machines.states(user)

    def running(self) -> int:
        """Return the number of running apps, over all users."""
        return sum(machine.state == "running" for machine in self._machines)

    def users(self) -> int:
        """Return how many users have an app that is not stopped."""
        return self._machines.users()

    @property
    def ignored(self) -> int:
        """Return the number of app messages that were ignored."""
        return self._messages.ignored

    async def _ensure_running(
        self, user: str, package: str, device: Device | None, *, activated: bool
    ) -> bool:
        machine = self._machines.get(user, package)
        while machine is not None and machine.state == "stopping":
            await machine.over.wait()
            machine = self._machines.get(user, package)
        is_started = machine is None
        if machine is None:
            app = self._starting.check(package, device)
            machine = AppStateMachine(user, package, self._changed, self._clock)
            self._machines.add(machine)
            machine.begin(activated=activated)
            self._starting.begin(machine, app)
        await machine.attempt.wait()
        return is_started

    def _changed(self, machine: AppStateMachine, reason: str | None) -> None:
        self._machines.changed(machine)
        self._tell_state(machine, reason)

    def _tell_state(self, machine: AppStateMachine, reason: str | None) -> None:
        data = {"packageName": machine.package, "state": machine.state}
        self._hub.publish(
            machine.user, UserEvent("app", data if reason is None else {**data, "reason": reason})
        )

    async def _stop(self, machine: AppStateMachine, reason: str) -> bool:
        if not await self._close(machine, reason):
            return False
        app = self._find(machine.package)
        if app is not None and app.public_url:
            self._background.begin(partial(self._webhooks.request_stop, app, machine.user, reason))
        return True

    async def _close(self, machine: AppStateMachine, reason: str, *, code: int = 1000) -> bool:
        socket = machine.socket
        if not machine.leave(reason):
            return False
        try:
            if socket is not None:
                message = messages.app_stopped(machine.session, reason=stop_reason(reason), now=self._clock())
                await socket.send(messages.encode(message))
                await socket.close(code, "App stopped")
        finally:
            machine.end(reason)
        return True

    async def _to_front(self, machine: AppStateMachine) -> None:
        app = self._find(machine.package)
        if app is None or app.app_type != "standard" or machine.state != "running" or machine.foreground:
            return
        former = [other for other in self._machines.of(machine.user) if other.foreground]
        machine.foreground = True
        self._tell_state(machine, "foreground")
        for other in former:
            await self._stop(other, "foreground")

    async def _stop_idle_apps(self) -> None:
        idle = self.settings.idle
        if idle is None:
            await anyio.sleep_forever()
            return
        while True:
            now, soonest = anyio.current_time(), idle
            for machine in self._machines:
                left = machine.last + idle - now
                if left <= 0 and machine.state == "running" and not self._busy(machine):
                    await self._stop(machine, "idle")
                else:
                    soonest = min(soonest, left)
            await anyio.sleep(max(soonest, idle / _CHECKS_PER_TIMEOUT))

    # --- notifications to apps ---

    def begin(self, session: SessionRecord, device: Device | None) -> None:
        """Handle a new or changed user session: notify its apps; stop those the device does not support."""
        capabilities = None if device is None else device.capabilities
        for machine in self._machines.of(session.user):
            machine.changes += 1
            if not self._starting.fits(machine.package, device):
                self._background.begin(partial(self._stop, machine, "hardware"))
            else:
                message = messages.capabilities_update(
                    machine.session, capabilities, now=self._clock(), language=session.language
                )
                self._background.begin(partial(self._send, machine, message))

    def configure(self, user: str, package: str, settings: JsonObject) -> None:
        """Notify an app session of changed settings."""
        machine = self._machines.get(user, package)
        if machine is not None:
            machine.changes += 1
            message = messages.settings_update(machine.session, package, settings, now=self._clock())
            self._background.begin(partial(self._send, machine, message))

    async def transcribe(self, user: str, text: str, *, final: bool, language: str | None) -> int:
        """Send a transcription to the subscribed apps; return how many received it."""
        now, receivers = self._clock(), 0
        data = messages.transcription(text, final=final, language=language or "auto", now=now)
        for machine in self._machines.of(user):
            stream = matching_stream(machine.streams, language)
            if stream is not None and machine.socket is not None:
                await self._send(machine, messages.data_stream(machine.session, stream, data, now=now))
                machine.touch()
                receivers += 1
        return receivers

    async def _send(self, machine: AppStateMachine, message: JsonObject) -> None:
        if machine.socket is not None:
            await machine.socket.send(messages.encode(message))

    # --- messages from apps ---

    async def accept(self, socket: AppSocket, rejected: HandshakeRejected | None = None) -> None:
        """Serve a connection until it ends; an app that lost it has the grace period to reconnect.

        `rejected` is called with the package of an app that sent a wrong key, before the app is notified.
        """
        try:
            machine = await self._handshake.enter(socket, rejected)
            if machine is not None:
                await self._read(machine, socket)
        finally:
            self._handshake.left(socket)

    async def _read(self, machine: AppStateMachine, socket: AppSocket) -> None:
        try:
            await self._messages.read(machine, socket)
        finally:
            attempt = machine.drop(socket)
            if attempt is not None:
                self._starting.lost(machine, attempt)

    @contextmanager
    def following(self, call: Call) -> Generator[None]:
        """Route an app's progress to the caller of this call, while this is open."""
        with self._calls.following(call):
            try:
                yield
            finally:
                machine = self._machines.get(call.caller.user or "", call.tool.source)
                if machine is not None:
                    machine.touch()

    def active(self, since: float) -> set[str]:
        """Return users with listeners, or with apps active since this time of the event loop's clock."""
        machines = (machine for machine in self._machines if machine.last >= since or self._busy(machine))
        return {machine.user for machine in machines} | set(self._hub)

    def _busy(self, machine: AppStateMachine) -> bool:
        return self._calls.busy(machine.user, machine.package)

    # --- device events ---

    def listen(self, user: str, principal: str) -> AbstractAsyncContextManager[EventListener]:
        """Subscribe to the events for a user's devices while the context is open."""
        return self._hub.listen(user, principal)

    def publish(self, user: str, event: UserEvent) -> None:
        """Publish an event to a user's devices."""
        self._hub.publish(user, event)

    def has_listeners(self, user: str) -> bool:
        """Whether a device of a user listens."""
        return self._hub.has_listeners(user)


# --- Last use of user sessions, for the idle timeout: recorded in memory, stored in batches ---

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
