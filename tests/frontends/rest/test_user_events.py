"""Server-sent events to a device: their content, and the end of the stream."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from tests.gateways import ADMIN, HOST, AsgiConnection, InProcessGateway, open_gateway, scope
from tests.waiting import until
from toolcrib.frontends.rest.user_routes import UserEventStream
from toolcrib.http import Request
from toolcrib.sessions import UserEvent

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("D16")]


def asked(key: str = ADMIN) -> dict[str, Any]:
    headers = [(b"host", HOST.encode()), (b"authorization", f"Bearer {key}".encode())]
    return scope("GET", "/api/users/ann/events", headers)


class Device(AsgiConnection):
    """Listens until it leaves."""

    def __init__(self) -> None:
        self.gone, self.ended = anyio.Event(), False
        super().__init__(leaves=self.gone)

    def heard(self) -> str:
        return b"".join(part.get("body", b"") for part in self.sent[1:]).decode()

    async def listen(self, gateway: InProcessGateway, key: str = ADMIN) -> None:
        await gateway.server(asked(key), self.receive, self.send)
        self.ended = True


@asynccontextmanager
async def worn(gateway: InProcessGateway, key: str = ADMIN) -> AsyncGenerator[Device]:
    """A listening device, from its first event on."""
    device = Device()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(device.listen, gateway, key)
        await until(lambda: "listening" in device.heard())
        yield device
        tasks.cancel_scope.cancel()


async def test_app_display_and_speech_events(gateway: InProcessGateway) -> None:
    sessions = gateway.runtime.sessions
    async with worn(gateway) as device:
        assert device.sent[0]["status"] == 200
        assert (b"content-type", b"text/event-stream") in device.sent[0]["headers"]
        sessions.publish("ann", UserEvent("speak", {"text": "grüß\ndich"}))
        sessions.publish("bob", UserEvent("speak", {"text": "not for ann"}))
        sessions.publish(
            "ann", UserEvent("display", {"layout": {"layoutType": "text_wall", "text": "hello"}})
        )
        await until(lambda: "hello" in device.heard())
        assert device.heard() == (
            ": listening\n\n"
            'event: speak\ndata: {"text":"grüß\\ndich"}\n\n'
            'event: display\ndata: {"layout":{"layoutType":"text_wall","text":"hello"}}\n\n'
        )
        device.gone.set()
        await until(lambda: device.ended)
        assert not sessions.has_listeners("ann")


async def test_tool_call_is_an_event(gateway: InProcessGateway) -> None:
    await gateway.request("PUT", "/api/users/ann/session")
    async with worn(gateway) as device:
        await gateway.call("add", {"a": 1}, headers={"x-user-id": "ann"})
        await until(lambda: "event: tool" in device.heard())
        assert '"tool":"tools:add"' in device.heard()


async def test_event_streams_end_on_shutdown(gateway: InProcessGateway) -> None:
    async with worn(gateway) as device:
        gateway.server.drain()
        await until(lambda: device.ended)
        with anyio.fail_after(10):
            await gateway.server.idle()


@pytest.mark.requirement("I1")
async def test_with_the_key_ends_the_listening(gateway: InProcessGateway) -> None:
    anns, other = await gateway.key("anns", user="ann"), await gateway.key("other", user="ann")
    async with worn(gateway, anns) as device, worn(gateway, other) as stays:
        await gateway.request("DELETE", "/api/keys/anns")
        await until(lambda: device.ended)
        assert not stays.ended


async def test_too_many_devices_of_one_user_are_refused(gateway: InProcessGateway) -> None:
    async with anyio.create_task_group() as tasks:
        for _ in range(16):
            tasks.start_soon(Device().listen, gateway)
        await anyio.wait_all_tasks_blocked()
        refused = await gateway.request("GET", "/api/users/ann/events", leaves=True)
        assert (refused.status, refused.code) == (503, "OVERLOADED")
        tasks.cancel_scope.cancel()


async def test_a_silent_stream_stays_in_touch() -> None:
    async with open_gateway() as gateway:
        outward, device = UserEventStream(gateway.runtime.console.users, keep_alive=0.001), Device()
        request = Request(asked(), device.receive, device.send)
        request.params, request.caller = (
            {"id": "ann"},
            gateway.runtime.identity.bearer(f"Bearer {ADMIN}".encode()),
        )
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(outward.listen, request)
            await until(lambda: device.heard().count(": still here\n\n") > 1)
            outward.end()


@pytest.mark.parametrize("user", ["a" * 201, "a%0ab"])
async def test_an_id_that_no_user_can_have_opens_no_stream(gateway: InProcessGateway, user: str) -> None:
    reply = await gateway.request("GET", f"/api/users/{user}/events")
    assert (reply.status, reply.code, reply.json["error"]["path"]) == (400, "INVALID_REQUEST", "id")
