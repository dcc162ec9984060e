"""Apps to call: a record in one line, the source that carries their calls, and servers in their place."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import anyio
from aiohttp import web

from toolcrib.apps.definition import tool_of
from toolcrib.apps.signature import key_digest, signing_secret
from toolcrib.egress import AddressRules, Egress
from toolcrib.egress.json_post import JsonPoster
from toolcrib.interfaces import Offer
from toolcrib.interfaces.apps import AppRecord, AppTool
from toolcrib.model import Call, Tool
from toolcrib.sources.apps import AppSource
from toolcrib.testing import a_call, a_caller

TODO, MUSIC = "com.example.todo", "com.example.music"
KEY = "k" * 64
LOOPBACK = Egress(allow_private=("127.0.0.0/8",))
NOW = 1_700_000_000.25

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


def definition(name: str = "add", **more: Any) -> dict[str, Any]:
    """What a developer writes of a tool."""
    item = {"type": "string", "description": "What to add."}
    schema = {"type": "object", "properties": {"item": item}, "required": ["item"]}
    return {"name": name, "description": f"Does {name}.", "inputSchema": schema, **more}


def record(package: str = TODO, url: str | None = None, **fields: Any) -> AppRecord:
    """An app with one tool, unless more is said."""
    fields.setdefault("tools", (AppTool(definition=definition()),))
    fields.setdefault("digest", key_digest(KEY))
    fields.setdefault("signing", None if fields["digest"] is None else signing_secret(KEY))
    return AppRecord(package=package, name=package, owner="dev", public_url=url, **fields)


def tool_in(app: AppRecord, place: int = 0) -> Tool:
    return tool_of(app, app.tools[place])


def call_to(app: AppRecord, **fields: Any) -> Call:
    """A call of somebody who has a session."""
    fields.setdefault("arguments", {"item": "milk"})
    fields.setdefault(
        "caller", a_caller(user="ann@example.com", session="s-1", apps=frozenset({TODO, MUSIC}))
    )
    return a_call(fields.pop("tool", None) or tool_in(app), **fields)


class RecordingLink:
    """A link that keeps what is offered."""

    def __init__(self) -> None:
        self.offers: list[Offer] = []

    def up(self, offer: Offer) -> None:
        self.offers.append(offer)

    def down(self, reason: str) -> None:
        raise AssertionError(reason)

    def updated(self, uri: str) -> None:
        raise AssertionError(uri)


class FakeSessions:
    """Stands in for the sessions: knows which calls are followed now, and which ever were."""

    def __init__(self) -> None:
        self.now: list[str] = []
        self.ever: list[str] = []

    @contextmanager
    def following(self, call: Call) -> Generator[None]:
        self.now.append(call.id)
        self.ever.append(call.id)
        try:
            yield
        finally:
            self.now.remove(call.id)


class FakeAppStore:
    """The apps there are, and how often they were read; a reading may take its time, or fail."""

    def __init__(self, *records: AppRecord) -> None:
        self.records: Sequence[AppRecord] = records
        self.reads = 0
        self.fault: Exception | None = None
        self.open = anyio.Event()
        self.open.set()

    async def all(self) -> Sequence[AppRecord]:
        self.reads += 1
        found = self.records
        await self.open.wait()
        if self.fault is not None:
            raise self.fault
        return found


@asynccontextmanager
async def sourced(
    *records: AppRecord, room: FakeSessions | None = None, **options: Any
) -> AsyncGenerator[AppSource]:
    """The source of some apps, which has read them."""
    post = JsonPoster(AddressRules.same(options.pop("egress", LOOPBACK)))
    source = AppSource(FakeAppStore(*records).all, room or FakeSessions(), post, clock=lambda: NOW, **options)
    await source.refresh()
    try:
        yield source
    finally:
        await post.close()


@asynccontextmanager
async def app_at(answer: Answer, path: str = "/tool") -> AsyncGenerator[str]:
    """A web server that answers what is posted to one path by a function; its URL."""

    async def handle(request: web.Request) -> web.StreamResponse:
        return await answer(request)

    server = web.Application(client_max_size=16 << 20)
    server.router.add_post(path, handle)
    runner = web.AppRunner(server, handler_cancellation=True, shutdown_timeout=0.05)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def saying(body: object, status: int = 200) -> Answer:
    """Answer everything with the same JSON."""

    async def answer(_request: web.Request) -> web.StreamResponse:
        return web.json_response(body, status=status)

    return answer
