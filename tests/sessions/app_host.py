"""App sessions with fake apps: sockets in memory, webhooks answered by a function."""

from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import anyio
import orjson
from anyio.abc import TaskGroup
from anyio.lowlevel import checkpoint

from tests.waiting import until
from toolcrib.apps import messages
from toolcrib.apps.hardware import parse_device
from toolcrib.apps.signature import key_digest, signing_secret
from toolcrib.egress.json_post import PostResponse
from toolcrib.errors import Unavailable
from toolcrib.interfaces import AppRecord, InstallRecord, SessionRecord, UserRecord
from toolcrib.model import AddressGiver, Call
from toolcrib.sessions import AppTimeouts, UserEvent, UserSessions
from toolcrib.testing import a_call, a_caller, a_tool

NOW = 1_800_000_000.0
USER = "u@example.com"
KEY = "the key of every app here"
PACKAGE = "org.example.todo"
GLASSES = "Even Realities G1"

Answer = Callable[[dict[str, Any]], Awaitable[int]]
"""How an app responds to its webhook; returns the HTTP status."""


class MemorySocket:
    """An app connection in memory; records the messages sent to the app."""

    def __init__(self) -> None:
        self.told: list[dict[str, Any]] = []
        self.closed: tuple[int, str] | None = None
        self._waiting: deque[str | bytes | None] = deque()
        self._stir = anyio.Event()

    async def receive(self) -> str | bytes | None:
        while not self._waiting:
            self._stir = anyio.Event()
            await self._stir.wait()
        return None if self._waiting[0] is None else self._waiting.popleft()

    async def send(self, text: str) -> None:
        self.told.append(orjson.loads(text))
        await checkpoint()

    async def close(self, code: int, reason: str = "") -> None:
        await checkpoint()
        if self.closed is None:
            self.closed = code, reason
        self._waiting.clear()
        self.leave()

    def says(self, message: Mapping[str, Any] | str | bytes) -> None:
        """Receive a message from the app."""
        raw = message if isinstance(message, str | bytes) else messages.encode(message)
        self._put(raw)

    @property
    def left(self) -> bool:
        """Whether the app has disconnected and its messages were processed."""
        return bool(self._waiting) and self._waiting[0] is None

    def leave(self) -> None:
        """Disconnect the app."""
        self._put(None)

    def _put(self, frame: str | bytes | None) -> None:
        self._waiting.append(frame)
        self._stir.set()

    def types(self) -> list[str]:
        """Return the types of the messages sent to the app."""
        return [each["type"] for each in self.told]

    def last(self, kind: str) -> dict[str, Any]:
        """Return the last message of a type."""
        return [each for each in self.told if each["type"] == kind][-1]


class Posted(NamedTuple):
    """A webhook that was called."""

    url: str
    body: bytes
    headers: Mapping[str, str]
    message: dict[str, Any]


class AppHost:
    """The sessions and the apps. By default an app connects when its webhook is called."""

    def __init__(self, tasks: TaskGroup, settings: AppTimeouts) -> None:
        self.tasks = tasks
        self.apps: dict[str, AppRecord] = {}
        self.users: dict[str, UserRecord] = {}
        self.posted: list[Posted] = []
        self.sockets: list[MemorySocket] = []
        self.events: list[UserEvent] = []
        self.refused: list[Unavailable] = []
        self.answer: Answer = self.connects
        self.farewell: Answer = self.stays_away
        """How apps respond to the stop webhook."""
        self.before_user: Callable[[], Awaitable[object]] = checkpoint
        """Called before a user is read."""
        self.after_user: Callable[[], Awaitable[object]] = checkpoint
        """Called after a user was read, before the record is returned."""
        self.sessions = UserSessions(
            settings, find=self.apps.get, user=self.user, post=self, clock=lambda: NOW
        )
        self.sessions.address = "http://gateway.example:8080"
        self.add(PACKAGE)

    # --- dependencies of the sessions ---

    async def user(self, id: str) -> UserRecord | None:
        await self.before_user()
        found = self.users.get(id)
        await self.after_user()
        return found

    async def send(
        self,
        url: str,
        body: bytes,
        headers: Mapping[str, str],
        *,
        most_bytes: int,
        giver: AddressGiver | None = "other",
    ) -> PostResponse:
        message = orjson.loads(body)
        self.posted.append(Posted(url, body, headers, message))
        come = message["type"] == messages.SESSION_REQUEST
        status = await (self.answer if come else self.farewell)(message)
        return PostResponse(status, "application/json", b'{"status":"success"}')

    # --- apps and users ---

    def add(self, package: str, *, user: str = USER, **fields: Any) -> AppRecord:
        """Add an app and install it for a user with a session."""
        fields.setdefault("public_url", f"http://{package}.example")
        fields.setdefault("digest", key_digest(KEY))
        fields.setdefault("signing", signing_secret(KEY))
        self.apps[package] = AppRecord(package=package, name=package, owner="dev", **fields)
        glasses = dict(parse_device(GLASSES).capabilities)
        fresh = UserRecord(id=user, session=SessionRecord(user=user, id="s1", device=glasses))
        known = self.users.get(user, fresh)
        install = InstallRecord(package=package, at=0.0, settings={"size": 3})
        self.users[user] = replace(known, installs=(*known.installs, install))
        return self.apps[package]

    def requests(self, kind: str = messages.SESSION_REQUEST) -> list[dict[str, Any]]:
        """Return the webhooks of a type that were called."""
        return [each.message for each in self.posted if each.message["type"] == kind]

    # --- behaviour of apps ---

    async def connects(self, request: dict[str, Any]) -> int:
        """Connect with the right key, and answer."""
        await self.connect(request["sessionId"])
        return 200

    async def stays_away(self, request: dict[str, Any]) -> int:
        """Answer, and never connect."""
        return 200

    def open(self, session: str, *, key: str = KEY, package: str | None = None) -> MemorySocket:
        """Open a connection and send the handshake."""
        socket = self.silent()
        name = package or session.partition("-")[2]
        socket.says(messages.connection_init(session, name, key=key, now=NOW))
        return socket

    def silent(self) -> MemorySocket:
        """Open a silent connection."""
        socket = MemorySocket()
        self.sockets.append(socket)
        self.tasks.start_soon(self.sessions.accept, socket)
        return socket

    async def connect(self, session: str = f"{USER}-{PACKAGE}", *, key: str = KEY) -> MemorySocket:
        """Open a connection, and wait until it is accepted or refused."""
        socket = self.open(session, key=key)
        await until(lambda: bool(socket.told) or socket.closed is not None)
        return socket

    # --- calls and states ---

    async def try_ready(self) -> None:
        """Call a tool of an app that may not connect."""
        try:
            await self.ready()
        except Unavailable as error:
            self.refused.append(error)

    async def ready(self, package: str = PACKAGE, **more: Any) -> bool:
        """Make an app ready as for a call."""
        return await self.sessions.ready(self.call(package, **more))

    def call(
        self, package: str = PACKAGE, *, user: str | None = USER, worn: str = GLASSES, id: str = "call-1"
    ) -> Call:
        """Make a call of a user with a device."""
        caller = a_caller(user=user, device=parse_device(worn), session="s1", apps=frozenset(self.apps))
        return a_call(a_tool(f"{package}:add", family="app"), caller=caller, id=id)

    def state(self, package: str = PACKAGE, user: str = USER) -> str:
        """Return the state of an app."""
        found = self.sessions.states(user).get(package)
        return "stopped" if found is None else found.state

    async def told(self, kind: str = "app") -> list[Mapping[str, Any]]:
        """Return the events sent to the user's device."""
        await anyio.sleep(0.001)
        return [event.data for event in self.events if event.kind == kind]

    async def path(self, package: str = PACKAGE) -> list[str]:
        """Return the states of an app that the device was notified of."""
        return [each["state"] for each in await self.told() if each.get("packageName") == package]

    async def listen(self) -> None:
        """Record the events of a user's device."""
        async with self.sessions.listen(USER, "key") as events:
            async for event in events:
                self.events.append(event)


@asynccontextmanager
async def app_host(*, device: bool = True, **settings: Any) -> AsyncGenerator[AppHost]:
    """Run sessions, by default with a listening device."""
    async with anyio.create_task_group() as apps:
        made = AppHost(apps, AppTimeouts(**settings))
        if device:
            apps.start_soon(made.listen)
            await until(lambda: made.sessions.has_listeners(USER))
        async with anyio.create_task_group() as tasks:
            await tasks.start(made.sessions.run)
            yield made
            tasks.cancel_scope.cancel()
        apps.cancel_scope.cancel()
