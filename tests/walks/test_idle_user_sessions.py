"""`apps.session_idle_ms` through a running gateway: an idle user session ends, and a tool call is use."""

from typing import Any

import pytest

from tests.gateways import open_gateway
from tests.waiting import until, until_true
from tests.walks.app_host import AppHost, app_host
from tests.walks.fake_app import FakeApp

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.requirement("I10")]
PACKAGE = "com.example.notes"
IDLE_MS = 1_500
LONG_IDLE_MS = 20_000
"""Use is stored every twentieth of this: after a second, long before the session could end."""


async def session_of(host: AppHost, user: str) -> Any:
    return (await host.made("GET", f"/api/users/{user}"))["session"]


async def test_an_idle_session_ends_with_its_apps() -> None:
    async with app_host(f"apps: {{session_idle_ms: {IDLE_MS}}}") as host, FakeApp(PACKAGE).running() as app:
        await host.admit(app)
        await host.session()
        assert (await host.call(f"{PACKAGE}:note")).status == 200

        async def ended() -> bool:
            return await session_of(host, "ann") is None

        await until_true(ended)
        await until(lambda: len(app.kinds("stop_request")) == 1)
        (record,) = (await host.made("GET", "/api/audit?action=users.end_session"))["records"]
        assert (record["actor"]["kind"], record["target"]) == ("system", "ann")
        assert record["after"] == {"reason": "unused"}


async def test_a_tool_call_for_a_user_is_stored_as_use() -> None:
    async with open_gateway(f"apps: {{session_idle_ms: {LONG_IDLE_MS}}}") as gateway:
        await gateway.begin("ann")
        store = gateway.runtime.console.store
        before_call = store.clock.now()
        assert await store.users.unused_since(before_call) == ["ann"]
        reply = await gateway.call("get_datetime", {}, headers={"x-user-id": "ann"})
        assert reply.status == 200

        async def used() -> bool:
            return await store.users.unused_since(before_call) == []

        await until_true(used)
