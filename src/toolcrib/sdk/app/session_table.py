"""All sessions of an app: one per user, started and ended by requests of the gateway."""

import logging
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakValueDictionary

import anyio
from anyio.abc import TaskGroup

from toolcrib.sdk.app.audio import Transcription
from toolcrib.sdk.app.connection import AppCredentials, SessionAddress, SessionEnded, Unreachable, awaited
from toolcrib.sdk.app.session import AppSession

START_WAIT_SECONDS = 10.0
"""Maximum wait of a tool call for running `on_session` hooks."""
_STOP_WAIT_SECONDS = 5.0

log = logging.getLogger(__name__)

OnSession = Callable[[AppSession], Any]
OnStop = Callable[[AppSession, str], Any]
OnTranscription = Callable[[AppSession, Transcription], Any]


class NotRunning(RuntimeError):
    """The app is not running, so it cannot hold sessions; the message states the fix."""


@dataclass(slots=True)
class Hooks:
    """Session hooks of an app; each sync or async."""

    session: list[OnSession] = field(default_factory=list[OnSession])
    stop: list[OnStop] = field(default_factory=list[OnStop])
    transcription: list[tuple[OnTranscription, str | None]] = field(
        default_factory=list[tuple[OnTranscription, str | None]]
    )


class SessionTable:
    """Runs each session in a separate task, while `running` is open."""

    def __init__(
        self,
        credentials: AppCredentials,
        hooks: Hooks,
        *,
        clock: Callable[[], float],
        pauses: Sequence[float],
    ) -> None:
        self._credentials, self._hooks, self._clock, self._pauses = credentials, hooks, clock, pauses
        self._by_user: dict[str, AppSession] = {}
        self._locks: WeakValueDictionary[str, anyio.Lock] = WeakValueDictionary()
        self._tasks: TaskGroup | None = None

    def __len__(self) -> int:
        return len(self._by_user)

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Accept sessions during the block; at its end all are closed gracefully."""
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            try:
                yield
            finally:
                self._tasks = None
                with anyio.move_on_after(_STOP_WAIT_SECONDS, shield=True):
                    await self._end_all(tuple(self._by_user.values()))
                tasks.cancel_scope.cancel()

    def now(self, user: str) -> AppSession | None:
        """Return a user's session, which may still be starting."""
        return self._by_user.get(user)

    async def ready(self, user: str) -> AppSession | None:
        """Return a user's session, if there is one, after waiting for its start."""
        session = self._by_user.get(user)
        if session is not None and not session.started.is_set():
            with anyio.move_on_after(START_WAIT_SECONDS):
                await session.started.wait()
        return session

    async def begin(self, address: SessionAddress) -> None:
        """Open a session, replacing the user's last one, and run the `on_session` hooks.

        Raises Unreachable if the gateway cannot be reached, and what `on_session` raises.
        """
        await self._replace(address.user)
        async with self._lock(address.user):
            await self._replace(address.user)
            session = await self._connected(address)
            try:
                with session.starting:
                    for hook in self._hooks.session:
                        await awaited(hook(session))
            except BaseException:
                with anyio.CancelScope(shield=True):
                    await session.close("error", release="clean_shutdown")
                raise
            finally:
                session.started.set()
        if session.starting.cancelled_caught:
            raise Unreachable("the session ended before the app was ready for it")

    async def stop(self, user: str, session_id: str, reason: str) -> None:
        """End a user's session, if it has this id; wait for the `on_stop` hooks."""
        session = self._by_user.get(user)
        if session is not None and session.session_id == session_id:
            await self._end(session, reason)

    # How

    async def _replace(self, user: str) -> None:
        """End the current session, also one with `on_session` hooks still running."""
        old = self._by_user.get(user)
        if old is not None:
            await self._end(old, "replaced", release="switching_clouds")

    def _lock(self, user: str) -> anyio.Lock:
        """Return the lock that serializes session starts of one user."""
        return self._locks.setdefault(user, anyio.Lock())

    async def _connected(self, address: SessionAddress) -> AppSession:
        tasks = self._tasks
        if tasks is None:
            raise NotRunning("the app is not running: use app.run, or a server with ASGI lifespan support")
        session = AppSession(
            address, self._credentials, changed=self._subscribe, clock=self._clock, pauses=self._pauses
        )
        for hook, language in self._hooks.transcription:
            session.events.on_transcription(_bound_hook(hook, session), language)
        try:
            await session.connect()
        except BaseException:
            with anyio.CancelScope(shield=True):
                await session.close("unreachable")
            raise
        self._by_user[address.user] = session
        tasks.start_soon(self._run_session, session)
        return session

    def _subscribe(self, session: AppSession) -> None:
        if self._tasks is not None:
            self._tasks.start_soon(_subscribe, session)

    async def _run_session(self, session: AppSession) -> None:
        reason = await session.run()
        session.starting.cancel()
        if self._by_user.get(session.user_id) is session:
            del self._by_user[session.user_id]
        try:
            for hook in self._hooks.stop:
                await awaited(hook(session, reason))
        except Exception:  # boundary to the app's own handlers, which may raise anything
            log.exception("on_stop failed for %r", session)
        finally:
            session.ended.set()

    async def _end(self, session: AppSession, reason: str, *, release: str | None = None) -> None:
        await session.close(reason, release=release)
        with anyio.move_on_after(_STOP_WAIT_SECONDS):
            await session.ended.wait()

    async def _end_all(self, sessions: Iterable[AppSession]) -> None:
        async with anyio.create_task_group() as tasks:
            for session in sessions:
                tasks.start_soon(lambda each=session: self._end(each, "shutdown", release="clean_shutdown"))


def _bound_hook(hook: OnTranscription, session: AppSession) -> Callable[[Transcription], Any]:
    def call_hook(transcription: Transcription) -> Any:
        return hook(session, transcription)

    return call_hook


async def _subscribe(session: AppSession) -> None:
    try:
        await session.subscribe()
    except SessionEnded:
        log.debug("%r ended before it had subscribed", session)
