"""Apps at run time: sessions, sources of app tools and the demo's apps."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from time import time

from anyio.abc import TaskGroup

from toolcrib.config import Document
from toolcrib.egress import AddressRules
from toolcrib.egress.json_post import JsonPoster
from toolcrib.identity import UserCache
from toolcrib.interfaces import AppRecord, ChangeSignal, InstallRecord, Shared, Store
from toolcrib.model import JsonObject
from toolcrib.observe import CallEntry
from toolcrib.runtime.convert import rules_of
from toolcrib.sessions import AppTimeouts, SessionUse, UserEvent, UserSessions
from toolcrib.sources.apps import AppSource

# --- Composes the runtime of mini-apps: address rules, HTTP client, user sessions and the app source ---


@dataclass(frozen=True, kw_only=True)
class AppRuntime:
    """The running parts that serve mini-apps."""

    rules: AddressRules
    people: UserCache
    sessions: UserSessions
    use: SessionUse
    source: AppSource

    async def reread(self) -> None:
        """Refresh the apps; close the connections of each that was removed, moved or given another key."""
        before = self._places()
        await self.source.refresh()
        now = self._places()
        for package, place in before.items():
            if now.get(package) != place:
                await self.sessions.forget(package)

    def _places(self) -> dict[str, tuple[str | None, str | None]]:
        return {app.package: (app.digest, app.public_url) for app in self.source.apps()}


@asynccontextmanager
async def make_app_runtime(document: Document, store: Store) -> AsyncGenerator[AppRuntime]:
    """Build the app runtime; close its HTTP connections when the block ends."""
    rules = rules_of(document)
    post = JsonPoster(rules)
    apps = document.apps

    def find(package: str) -> AppRecord | None:
        return source.find(package)

    people = UserCache(store.users.get)
    sessions = UserSessions(settings_of(document), find=find, user=people.record, post=post)
    source = AppSource(
        store.apps.all,
        sessions,
        post,
        timeout=apps.timeout_ms / 1000,
        most_bytes=document.limits.result_bytes,
    )
    idle = None if apps.session_idle_ms is None else apps.session_idle_ms / 1000
    use = SessionUse(store.users, sessions, store.clock, idle)
    try:
        yield AppRuntime(rules=rules, people=people, sessions=sessions, use=use, source=source)
    finally:
        await post.close()


def settings_of(document: Document) -> AppTimeouts:
    """Return the timeouts and limits of app sessions, converted to seconds."""
    apps = document.apps
    return AppTimeouts(
        activation=apps.activation_ms / 1000,
        grace=apps.grace_ms / 1000,
        heartbeat=apps.heartbeat_ms / 1000,
        idle=None if apps.idle_stop_ms is None else apps.idle_stop_ms / 1000,
        share=document.limits.share,
        phone_microphone=apps.phone_microphone,
    )


class ToolEvents:
    """A sink that pushes an event to the user's device when one of the user's calls ends, and records use."""

    name = "device"
    dropped = 0

    def __init__(self, sessions: UserSessions, use: SessionUse) -> None:
        self._sessions, self._use = sessions, use

    def take(self, batch: Sequence[CallEntry]) -> None:
        """Record session use, and push an event for each call of a user with a connected event stream."""
        for entry in batch:
            user = entry.caller.user
            if user is None:
                continue
            if entry.caller.session:
                self._use.note(user)
            if self._sessions.has_listeners(user):
                self._sessions.publish(user, UserEvent("tool", _ended(entry)))

    async def flush(self) -> None:
        """Do nothing: these events are not persisted."""


def _ended(entry: CallEntry) -> JsonObject:
    problem = entry.problem
    ended = {"tool": entry.tool.name, "callId": entry.id, "state": "ended", "success": problem is None}
    return ended if problem is None else {**ended, "code": problem.code}


def rereading(
    mark: Callable[[], Awaitable[str]], refresh: Callable[[], Awaitable[None]]
) -> Callable[[], Awaitable[None]]:
    """Return a poller that calls `refresh` if the change mark differs from the one of its last run."""
    last = ""

    async def reread() -> None:
        nonlocal last
        now = await mark()
        if now != last:
            await refresh()
            last = now

    return reread


# --- Starts the demo apps and installs them for the demo user ---


@dataclass(frozen=True, kw_only=True)
class DemoApps:
    """The parts of the runtime in which the demo apps are registered."""

    room: AppRuntime
    store: Store
    shared: Shared
    tasks: TaskGroup

    async def start(self) -> None:
        """Serve the demo apps on this machine while the gateway runs, and install them for the demo user."""
        # Lazy import: only the demo needs these apps and their server.
        from toolcrib.demo.apps import DEMO_USER, serve_demo_apps

        await self.tasks.start(serve_demo_apps, self._registering(DEMO_USER))
        await self.room.source.refresh()
        self.shared.publish(ChangeSignal("users", DEMO_USER))

    def _registering(self, user: str) -> Callable[[AppRecord], Awaitable[None]]:
        async def register(app: AppRecord) -> None:
            apps = self.store.apps
            if not await apps.add(app):
                await apps.change(app)
                await apps.define(app.package, app.tools, app.updated)
            known = await self.store.users.get(user)
            if known is None or app.package not in {each.package for each in known.installs}:
                await self.store.users.install(user, InstallRecord(package=app.package, at=time()))

        return register
