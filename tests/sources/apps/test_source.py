"""All apps as one source: what is offered, what stays the same, and what goes over the wire with a call."""

import copy
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import orjson
import pytest
from aiohttp import web

from tests.sources.apps.registered import (
    KEY,
    LOOPBACK,
    MUSIC,
    NOW,
    TODO,
    FakeAppStore,
    FakeSessions,
    RecordingLink,
    app_at,
    call_to,
    definition,
    record,
    saying,
    sourced,
    tool_in,
)
from tests.texts import matches
from toolcrib.apps.signature import (
    KEY_HEADER,
    SIGNATURE_HEADER,
    SignedRequest,
    key_digest,
    signing_secret,
    verify,
)
from toolcrib.egress import AddressRules, Egress
from toolcrib.egress.json_post import JsonPoster
from toolcrib.errors import Refused, Unavailable
from toolcrib.interfaces.apps import AppRecord, AppTool
from toolcrib.model import Origin, Requirement, Tool
from toolcrib.sources.apps import AppSource

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

CALL = "00000000-0000-4000-8000-00000000c0de"
TRACE = "0af76519-16cd-43dd-8448-eb211c80319c"
DONE = {"success": True, "content": "done"}


def tools_of(*names: str, **more: Any) -> tuple[AppTool, ...]:
    return tuple(AppTool(definition=definition(name, **more)) for name in names)


class Offered:
    """A source that runs, and what it offers."""

    def __init__(self, *records: AppRecord) -> None:
        self.store, self.shelf = FakeAppStore(*records), RecordingLink()
        self.source = AppSource(self.store.all, FakeSessions(), JsonPoster(AddressRules.same(LOOPBACK)))

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.source.run, self.shelf)
            await anyio.wait_all_tasks_blocked()
            yield
            tasks.cancel_scope.cancel()

    @property
    def tools(self) -> list[Tool]:
        return list(self.shelf.offers[-1].tools)


# What is offered


@pytest.mark.requirement("B3")
async def test_tools_of_all_apps_are_offered_oldest_app_first() -> None:
    needs = (Requirement(type="CAMERA"),)
    offered = Offered(
        record(MUSIC, created=2.0, tools=tools_of("play", "stop")),
        record("com.example.b", created=1.0),
        record("com.example.a", created=1.0, hardware=needs),
    )
    async with offered.running():
        assert [tool.name for tool in offered.tools] == [
            "com.example.a:add",
            "com.example.b:add",
            f"{MUSIC}:play",
            f"{MUSIC}:stop",
        ]
        first = offered.tools[0]
        assert (first.source, first.family, first.keeper) == ("com.example.a", "app", "apps")
        assert (first.hardware, first.timeout, first.category) == (needs, None, "mutation")
        assert len(offered.shelf.offers) == 1
        assert offered.source.details() == {"apps": 3}


async def test_app_source_cannot_die_and_has_one_timeout() -> None:
    source = AppSource(FakeAppStore().all, FakeSessions(), JsonPoster(AddressRules.same(LOOPBACK)))
    assert (source.id, source.family, source.mortal, source.timeout) == ("apps", "app", False, 30.0)


async def test_unchanged_app_keeps_object_identity() -> None:
    offered = Offered(record(TODO, created=1.0), record(MUSIC, created=2.0))
    async with offered.running():
        todo, music = offered.tools
        offered.store.records = (
            record(TODO, created=1.0, tools=tools_of("add")),
            record(MUSIC, created=2.0, version=2, tools=tools_of("play")),
        )
        await offered.source.refresh()
        again, changed = offered.tools
        assert again is todo
        assert changed.name == f"{MUSIC}:play" != music.name
        offered.store.records = (record(TODO, created=9.0, tools=tools_of("other")),)
        await offered.source.refresh()
        assert [tool.name for tool in offered.tools] == [f"{TODO}:other"]


async def test_app_lookup_returns_current_record() -> None:
    store = FakeAppStore(record(TODO))
    source = AppSource(store.all, FakeSessions(), JsonPoster(AddressRules.same(LOOPBACK)))
    assert source.find(TODO) is None
    await source.refresh()
    store.records = (record(TODO, digest=key_digest("another")),)
    await source.check()
    found = source.find(TODO)
    assert found is not None
    assert found.digest == key_digest("another")


async def test_a_definition_that_cannot_be_used_spoils_no_other() -> None:
    broken: list[dict[str, Any]] = [
        {},
        {"name": "x"},
        {"id": "old"},
        definition(description=None),
        definition(inputSchema=3),
    ]
    offered = Offered(
        record(TODO, tools=(*(AppTool(definition=each) for each in broken), *tools_of("good"))), record(MUSIC)
    )
    async with offered.running():
        assert [tool.name for tool in offered.tools] == [f"{MUSIC}:add", f"{TODO}:good"]
    withheld = offered.shelf.offers[-1].withheld
    assert [each.name for each in withheld] == [
        f"{TODO}:{name}" for name in ("tools[0]", "x", "old", "add", "add")
    ]
    for place, each in enumerate(withheld):
        assert each.source == TODO
        assert each.reason.startswith(f"tools[{place}]")


async def test_an_old_definition_is_served_in_the_new_shape() -> None:
    todo = {"type": "string", "description": "What.", "required": True}
    old = {"id": "add_todo", "description": "Adds.", "parameters": {"todo_item": todo}}
    offered = Offered(record(tools=(AppTool(definition=old),)))
    async with offered.running():
        assert offered.tools[0].name == f"{TODO}:add_todo"
        assert offered.tools[0].input_schema["required"] == ["todo_item"]


async def test_concurrent_refreshes_share_one_later_read() -> None:
    store = FakeAppStore(record(TODO))
    store.open = anyio.Event()
    source = AppSource(store.all, FakeSessions(), JsonPoster(AddressRules.same(LOOPBACK)))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(source.refresh)
        await anyio.wait_all_tasks_blocked()
        store.records = (record(MUSIC),)
        for _ in range(20):
            tasks.start_soon(source.refresh)
        await anyio.wait_all_tasks_blocked()
        store.open.set()
    assert store.reads == 2
    assert source.find(MUSIC) is not None


async def test_failing_store_keeps_apps_and_is_read_again() -> None:
    store = FakeAppStore(record(TODO))
    source = AppSource(store.all, FakeSessions(), JsonPoster(AddressRules.same(LOOPBACK)))
    await source.refresh()
    store.records, store.fault = (record(MUSIC),), Unavailable("SOURCE_DOWN", "the store is away")
    with pytest.raises(Unavailable):
        await source.refresh()
    assert source.find(TODO) is not None
    store.fault = None
    await source.refresh()
    assert (source.find(TODO), source.find(MUSIC)) == (None, store.records[0])


# What goes over the wire


class Heard:
    """An app that keeps what it was sent."""

    def __init__(self) -> None:
        self.requests: list[web.BaseRequest] = []
        self.bodies: list[bytes] = []

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(request)
        self.bodies.append(await request.read())
        return web.json_response(DONE)


@pytest.mark.requirement("D6")
@pytest.mark.parametrize("activated", [True, False])
async def test_payload_suits_old_and_new_apps(activated: bool) -> None:
    heard, given = Heard(), {"item": "milk", "more": {"n": [1, 2.5, None, "ü"]}}
    before = copy.deepcopy(given)
    async with app_at(heard) as url:
        app = record(url=url)
        async with sourced(app) as source:
            result = await source.call(call_to(app, id=CALL, arguments=given, activated=activated))
    assert result.data == "done"
    assert given == before
    moment = "2023-11-14T22:13:20.250Z"
    assert orjson.loads(heard.bodies[0]) == {
        "name": "add",
        "arguments": before,
        "context": {
            "userId": "ann@example.com",
            "timestamp": moment,
            "activatedForTool": activated,
            "callId": CALL,
            "sessionId": "s-1",
            "language": "en",
        },
        "toolId": "add",
        "toolParameters": before,
        "userId": "ann@example.com",
        "timestamp": moment,
        "callId": CALL,
        "sessionId": "s-1",
    }


@pytest.mark.requirement("D6")
async def test_signed_headers_bind_gateway_user_and_body() -> None:
    heard = Heard()
    origin = Origin(trace_id=TRACE, correlation_id="c")
    async with app_at(heard) as url:
        app = record(url=url)
        async with sourced(app) as source:
            await source.call(call_to(app, id=CALL, origin=origin))
    headers, body = heard.requests[0].headers, heard.bodies[0]
    assert headers[KEY_HEADER] == key_digest(KEY)
    assert verify(signing_secret(KEY), headers[SIGNATURE_HEADER], body=body, now=NOW + 59) == SignedRequest(
        "ann@example.com", "add"
    )
    assert headers["traceparent"] == "00-0af7651916cd43dd8448eb211c80319c-800000000000c0de-01"
    assert headers["Content-Type"] == "application/json"


@pytest.mark.requirement("D6")
async def test_an_app_without_a_key_is_shown_none() -> None:
    heard = Heard()
    async with app_at(heard) as url:
        app = record(url=url, digest=None)
        async with sourced(app) as source:
            await source.call(call_to(app))
    assert not {KEY_HEADER, SIGNATURE_HEADER, "traceparent"} & set(heard.requests[0].headers)


@pytest.mark.parametrize("tail", ["", "/", "//", "/my/app", "/my/app/"])
async def test_tools_are_called_below_the_public_url(tail: str) -> None:
    heard = Heard()
    path = "/my/app/tool" if "my" in tail else "/tool"
    async with app_at(heard, path) as url:
        app = record(url=url + tail)
        async with sourced(app) as source:
            await source.call(call_to(app))
    assert heard.requests[0].raw_path == path


@pytest.mark.requirement("D14")
async def test_progress_is_followed_while_the_call_runs_and_no_longer() -> None:
    room, seen = FakeSessions(), list[list[str]]()

    async def answer(_request: web.Request) -> web.StreamResponse:
        seen.append(list(room.now))
        return web.json_response(DONE)

    async with app_at(answer) as url:
        app = record(url=url)
        async with sourced(app, room=room) as source:
            await source.call(call_to(app, id=CALL))
    assert seen == [[CALL]]
    assert room.now == []


async def test_arguments_that_are_no_json_are_not_sent() -> None:
    heard = Heard()
    async with app_at(heard) as url:
        app = record(url=url)
        async with sourced(app) as source:
            with pytest.raises(Refused) as refused:
                await source.call(call_to(app, arguments={"item": object()}))
    assert (refused.value.problem.code, refused.value.problem.path) == ("INVALID_ARGUMENTS", "arguments")
    assert heard.bodies == []


# Apps that cannot be called


@pytest.mark.requirement("D5")
async def test_app_without_url_or_removed_app_is_not_available() -> None:
    app = record(url=None)
    async with sourced(app) as source:
        for call in (call_to(app), call_to(record(MUSIC), tool=tool_in(record(MUSIC)))):
            with pytest.raises(Unavailable) as gone:
                await source.call(call)
            assert matches("sources", f"{call.tool.source} is not available", str(gone.value))
            assert (gone.value.problem.code, gone.value.problem.stage) == ("APP_NOT_AVAILABLE", "webhook")
            assert not gone.value.problem.retryable


@pytest.mark.requirement("D5")
async def test_an_app_at_a_forbidden_address_is_not_called() -> None:
    heard, room = Heard(), FakeSessions()
    async with app_at(heard) as url:
        app = record(url=url)
        async with sourced(app, egress=Egress(), room=room) as source:
            with pytest.raises(Unavailable) as refused:
                await source.call(call_to(app))
    problem = refused.value.problem
    assert (problem.code, problem.stage, problem.retryable) == ("APP_NOT_AVAILABLE", "webhook", False)
    assert "127.0.0.1" not in problem.message
    assert heard.bodies == []
    assert room.now == []


async def test_a_key_that_is_rotated_is_used_from_the_next_call_on() -> None:
    heard = Heard()
    async with app_at(heard) as url:
        store, post = FakeAppStore(record(url=url)), JsonPoster(AddressRules.same(LOOPBACK))
        source = AppSource(store.all, FakeSessions(), post, clock=lambda: NOW)
        await source.refresh()
        await source.call(call_to(record(url=url)))
        store.records = (record(url=url, digest=key_digest("new")),)
        await source.refresh()
        await source.call(call_to(record(url=url)))
        await post.close()
    assert [each.headers[KEY_HEADER] for each in heard.requests] == [key_digest(KEY), key_digest("new")]


async def test_an_answer_is_read() -> None:
    async with app_at(saying({"status": "success", "reply": {"n": 1}})) as url:
        app = record(url=url)
        async with sourced(app) as source:
            assert (await source.call(call_to(app))).data == {"n": 1}
