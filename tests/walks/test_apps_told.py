"""Who listens is told when the apps of its user change, and the next list is right; others hear nothing."""

from typing import Any

import pytest

from tests.walks.app_host import TOOL, AppHost, host_with_apps
from tests.walks.list_listeners import ListListener, list_listeners

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.requirement("D3")]
PACKAGE = "com.example.notes"
NOTE, OTHER = "com_example_notes_note", "com_example_notes_other"
CAMERA = [{"type": "CAMERA", "level": "REQUIRED"}]


async def _hear(host: AppHost, hers: list[ListListener], names: set[str]) -> None:
    """All of hers are told, and find the same on every face."""
    for ear in hers:
        await ear.changed()
        assert await ear.names() == names, ear.era
        assert not ear.told, (ear.era, "it is told once")
    user = {"x-user-id": "ann"}
    reply = await host.gateway.request("GET", "/api/tools?style=safe", headers=user)
    listed: list[Any] = reply.json["tools"] if reply.status == 200 else []
    assert {tool["name"] for tool in listed if tool["name"].startswith("com_")} == names


@pytest.mark.requirement("D4", "D13")
async def test_user_changes_notify_only_clients_of_that_user() -> None:
    async with host_with_apps(PACKAGE, hardware=CAMERA) as (host, _):
        await host.session("ann", "Mentra Live")
        await host.session("bob", "Mentra Live")
        mine, foreign = await host.gateway.key("anns", user="ann"), await host.gateway.key("bobs", user="bob")
        app, tools = f"/api/users/ann/apps/{PACKAGE}", f"/api/users/ann/tools/{PACKAGE}"
        more = {"tools": [TOOL, TOOL | {"name": "other"}]}
        async with list_listeners(host.url, mine) as hers, list_listeners(host.url, foreign) as his:
            steps: list[tuple[str, str, Any, set[str]]] = [
                ("DELETE", app, None, set()),
                ("PUT", app, None, {NOTE}),
                ("PUT", f"{tools}/disabled", None, set()),
                ("DELETE", f"{tools}/disabled", None, {NOTE}),
                ("PUT", f"{tools}:note/disabled", None, set()),
                ("DELETE", f"{tools}:note/disabled", None, {NOTE}),
                ("PUT", "/api/users/ann/session", {"device": "Even Realities G1"}, set()),
                ("PUT", "/api/users/ann/session", {"device": "Mentra Live"}, {NOTE}),
                ("POST", f"/api/apps/{PACKAGE}/tools", more, {NOTE, OTHER}),
                ("DELETE", "/api/users/ann/session", None, set()),
                ("PUT", "/api/users/ann/session", {"device": "Mentra Live"}, {NOTE, OTHER}),
                ("DELETE", f"/api/apps/{PACKAGE}", None, set()),
            ]
            for method, target, body, names in steps:
                await host.made(method, target, body)
                await _hear(host, hers, names)
            assert [ear.told for ear in his] == [[], []]


async def test_no_notification_without_change() -> None:
    async with host_with_apps(PACKAGE) as (host, _):
        mine = await host.gateway.key("anns", user="ann")
        async with list_listeners(host.url, mine) as hers:
            await host.session("ann")
            await host.install("ann", PACKAGE)
            await host.made("PUT", "/api/users/ann", {"timeZone": "Europe/Berlin"})
            assert (await host.call(f"{PACKAGE}:note")).status == 200
            await host.made("DELETE", f"/api/users/ann/apps/{PACKAGE}")
            await _hear(host, hers, set())
