"""The desks of apps and users over a real store and real sessions; only the apps themselves are made up."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
import orjson
from anyio.abc import TaskGroup

from tests.sessions.app_host import MemorySocket
from toolcrib.admin import AppAdmin, UserAdmin
from toolcrib.apps import messages
from toolcrib.apps.definition import tool_of
from toolcrib.clock import Clock
from toolcrib.egress import AddressRules
from toolcrib.egress.json_post import PostResponse
from toolcrib.interfaces import AppRecord, ChangeSignal, Store
from toolcrib.model import Actor, AddressGiver, JsonObject, Tool
from toolcrib.observe import Audit, Redactor
from toolcrib.policy import DisabledRule, HardwareRule, InstalledRule, Policy
from toolcrib.sessions import AppTimeouts, UserSessions
from toolcrib.store import open_store
from toolcrib.store.shared import open_shared
from toolcrib.testing import a_caller, a_tool

NOTES, CAMERA = "com.example.notes", "com.example.camera"
NOTES_APP: JsonObject = {"name": "Notes", "publicUrl": "https://notes.example/app/", "appType": "standard"}
CAMERA_APP: JsonObject = {
    "name": "Camera",
    "publicUrl": "https://camera.example",
    "hardwareRequirements": [{"type": "CAMERA", "level": "REQUIRED"}],
}


def an_actor(**fields: Any) -> Actor:
    """Return an actor as the console receives it."""
    return Actor.of(a_caller(**fields), "library")


DEVELOPER = an_actor(key="dev", permissions=frozenset({"crib:apps"}))
OTHER = an_actor(key="other", permissions=frozenset({"crib:apps"}))
ADMIN = an_actor(key="admin", permissions=frozenset({"*"}), operator=True)
STEP = a_tool("local:step", description="A tool of no app.")
SECRET = a_tool("local:secret", hidden=True)


def a_definition(name: str = "add", **more: Any) -> JsonObject:
    """A tool as a developer defines it."""
    said = {"type": "string", "description": "What to write down."}
    schema = {"type": "object", "properties": {"text": said}, "required": ["text"]}
    return {"name": name, "description": "Writes something down.", "inputSchema": schema, **more}


class AdminSetup:
    """Both desks, and what they did beside the store."""

    def __init__(self, store: Store, tasks: TaskGroup) -> None:
        self.store, self._tasks = store, tasks
        self.shared, self.audit = open_shared("memory"), Audit(store.audit, Redactor())
        self.changes: list[ChangeSignal] = []
        for topic in ("apps", "users"):
            self.shared.listen(topic, self.changes.append)
        self.served: dict[str, AppRecord] = {}
        self.room = 10_000
        self.keys: dict[str, str] = {}
        """The API keys that the made-up apps know."""
        self.sockets: list[MemorySocket] = []
        self.sessions = UserSessions(AppTimeouts(), find=self.served.get, user=store.users.get, post=self)
        self.sessions.address = "http://127.0.0.1:6740"
        self.apps = AppAdmin(
            store=store,
            shared=self.shared,
            refresh=self.refresh,
            find=self.served.get,
            sessions=self.sessions,
            rules=AddressRules.of((), ()),
            taken=lambda package: package == "taken.by.another",
            served=lambda: list(self.served.values()),
            room=lambda: self.room,
            audit=self.audit,
        )
        self.users = UserAdmin(
            store=store,
            shared=self.shared,
            sessions=self.sessions,
            find=self.served.get,
            named=self.named,
            policy=Policy((InstalledRule(), DisabledRule(), HardwareRule())),
            audit=self.audit,
        )

    async def refresh(self) -> None:
        self.served.clear()
        self.served.update({app.package: app for app in await self.store.apps.all()})

    def named(self, name: str) -> Sequence[Tool]:
        apps = [tool_of(app, tool) for app in self.served.values() for tool in app.tools]
        return [tool for tool in (STEP, SECRET, *apps) if name in {tool.name, tool.local}]

    async def send(
        self,
        url: str,
        body: bytes,
        headers: Mapping[str, str],
        *,
        most_bytes: int,
        giver: AddressGiver | None = "other",
    ) -> PostResponse:
        """Act as every app: connect back on a session request."""
        asked = orjson.loads(body)
        package = asked["sessionId"].removeprefix(f"{asked['userId']}-")
        if asked["type"] == messages.SESSION_REQUEST and package in self.keys:
            socket = MemorySocket()
            self.sockets.append(socket)
            key = self.keys[package]
            socket.says(messages.connection_init(asked["sessionId"], package, key=key, now=0.0))
            self._tasks.start_soon(self.sessions.accept, socket)
        return PostResponse(200, "application/json", b"{}")

    async def add(
        self, package: str = NOTES, body: JsonObject = NOTES_APP, actor: Actor = DEVELOPER, *tools: str
    ) -> str:
        """Store a new app with its tools; its key."""
        _, key = await self.apps.put(package, body, actor)
        assert key is not None
        self.keys[package] = key
        names = tools or ("add", "list")
        await self.apps.define(package, [a_definition(name) for name in names], actor)
        return key

    def told(self) -> list[tuple[str, str]]:
        """Return the published change signals since the last call."""
        told = [(change.topic, change.about) for change in self.changes]
        self.changes.clear()
        return told

    def state(self, user: str, package: str = NOTES) -> str:
        found = self.sessions.states(user).get(package)
        return "stopped" if found is None else found.state


@asynccontextmanager
async def open_admin(clock: Clock | None = None) -> AsyncGenerator[AdminSetup]:
    """Open both for as long as the block lasts."""
    store = await open_store("sqlite://", clock)
    try:
        async with anyio.create_task_group() as tasks:
            made = AdminSetup(store, tasks)
            await tasks.start(made.sessions.run)
            yield made
            tasks.cancel_scope.cancel()
    finally:
        await store.close()
