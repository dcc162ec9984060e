"""`apps.session_idle_ms` through a running gateway: an idle user session ends, and a tool call is use."""

from typing import Any

import pytest

from tests.doors import doors
from tests.waiting import until, until_true
from tests.walks.app_house import AppHouse, app_house
from tests.walks.puppet import Puppet

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.requirement("I10")]
PACKAGE = "com.example.notes"
IDLE_MS = 1_500
LONG_IDLE_MS = 20_000
"""Use is stored every twentieth of this: after a second, long before the session could end."""


async def session_of(house: AppHouse, user: str) -> Any:
    return (await house.made("GET", f"/api/users/{user}"))["session"]


async def test_an_idle_session_ends_with_its_apps() -> None:
    async with app_house(f"apps: {{session_idle_ms: {IDLE_MS}}}") as house, Puppet(PACKAGE).running() as app:
        await house.admit(app)
        await house.session()
        assert (await house.call(f"{PACKAGE}:note")).status == 200

        async def ended() -> bool:
            return await session_of(house, "ann") is None

        await until_true(ended)
        await until(lambda: len(app.kinds("stop_request")) == 1)
        (record,) = (await house.made("GET", "/api/audit?action=users.end_session"))["records"]
        assert (record["actor"]["kind"], record["target"]) == ("system", "ann")
        assert record["after"] == {"reason": "unused"}


async def test_a_tool_call_for_a_user_is_stored_as_use() -> None:
    async with doors(f"apps: {{session_idle_ms: {LONG_IDLE_MS}}}") as crib:
        await crib.begin("ann")
        store = crib.house.console.store
        before_call = store.clock.now()
        assert await store.users.unused_since(before_call) == ["ann"]
        reply = await crib.call("get_datetime", {}, headers={"x-user-id": "ann"})
        assert reply.status == 200

        async def used() -> bool:
            return await store.users.unused_since(before_call) == []

        await until_true(used)
