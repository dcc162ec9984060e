"""The page's panels of apps and users, in a real browser: what is there, why not, and never as markup."""

from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from anyio.from_thread import start_blocking_portal

from tests.gateways import InProcessGateway, listening, open_gateway
from toolcrib.model import JsonObject

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.slow]

HOSTILE = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>'
CAMERA = {"type": "CAMERA", "level": "REQUIRED", "description": HOSTILE}
TOOL: JsonObject = {
    "name": "snap",
    "description": "Take one.",
    "inputSchema": {"type": "object", "properties": {}},
}


async def filled(gateway: InProcessGateway) -> None:
    """Two apps, and a user who has both but no camera."""
    apps = {
        "com.example.notes": {"name": HOSTILE, "appType": "background"},
        "com.example.snap": {"name": "Snap", "appType": "standard", "hardwareRequirements": [CAMERA]},
    }
    for package, body in apps.items():
        whole = {"publicUrl": "http://127.0.0.1:9", "hardwareRequirements": [], **body}
        assert (await gateway.request("PUT", f"/api/apps/{package}", body=whole)).status == 201
        assert (await gateway.request("PUT", f"/api/users/ada/apps/{package}")).status == 201
    assert (
        await gateway.request("POST", "/api/apps/com.example.snap/tools", body={"tools": [TOOL]})
    ).status == 200
    worn = {"device": "Even Realities G1", "language": "de"}
    assert (await gateway.request("PUT", "/api/users/ada/session", body=worn)).status == 200
    assert (await gateway.request("PUT", "/api/users/ada/tools/com.example.notes/disabled")).status == 200
    await gateway.key("adas", user="ada")
    assert (await gateway.request("PUT", "/api/users/%3Cb%3Ebob%3C%2Fb%3E", body={})).status == 200


async def crowded(gateway: InProcessGateway) -> None:
    """More users than are shown at once."""
    for number in range(51):
        users = gateway.runtime.console.store.users
        await users.put(f"user-{number:02}", language=None, time_zone=None, at=0.0)


async def empty(gateway: InProcessGateway) -> None:
    """Nobody, and nothing."""


@contextmanager
def opened(page: "Page", fill: Callable[[InProcessGateway], Awaitable[None]]) -> Generator[list[str]]:
    """The page, signed in; gives what the browser complains of."""
    troubles: list[str] = []
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("console", lambda said: troubles.append(said.text) if said.type in {"error", "warning"} else None)
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(open_gateway()) as gateway,
        portal.wrap_async_context_manager(listening(gateway.server)) as url,
    ):
        portal.call(fill, gateway)
        page.goto(f"{url}/#token={gateway.runtime.identity.sign_in.make_link()}")
        page.wait_for_selector("#user-rows td")
        yield troubles
        page.close()


def text(page: "Page", selector: str) -> str:
    return " ".join((page.text_content(selector) or "").split())


def test_apps_and_users_are_shown_with_faults(page: "Page") -> None:
    with opened(page, filled) as troubles:
        snap = page.locator("#app-rows tr:nth-child(2) td").all_text_contents()
        assert snap == ["Snapcom.example.snap", "snap", "standard", "camera", "admin", "2"]
        page.click("role=button[name='Details of ada']")
        page.wait_for_selector("#user-rows .inside")
        inside = text(page, "#user-rows .inside")
        assert "Even Realities G1" in inside
        assert "com.example.notes" in inside
        assert "not compatible" in inside
        assert "a camera" in inside
        assert "switched off" in inside
        assert "de" in page.locator("#user-rows .inside dd").all_text_contents()
        assert "acts for ada" in text(page, "#key-rows")
        page.click("role=button[name='Details of ada']")
        page.wait_for_selector("#user-rows .inside", state="detached")
        assert "<b>bob</b>" in text(page, "#user-rows")
        hacked: Any = page.evaluate("window.hacked")
        assert hacked is None
        assert page.locator("#inside img, #inside script, #user-rows b b").count() == 0
        page.set_viewport_size({"width": 360, "height": 740})
        assert page.evaluate("document.documentElement.scrollWidth") == 360
        assert troubles == []


def test_empty_page_explains_registration(page: "Page") -> None:
    with opened(page, empty) as troubles:
        assert "PUT /api/apps/{package} registers one" in text(page, "#app-rows")
        assert "No users yet" in text(page, "#user-rows")
        assert not page.is_visible("#app-more")
        assert troubles == []


def test_more_users_load_on_request(page: "Page") -> None:
    with opened(page, crowded) as troubles:
        assert page.locator("#user-rows tr").count() == 50
        page.click("#user-more")
        page.wait_for_selector("#user-rows >> text=user-50")
        assert page.locator("#user-rows tr").count() == 51
        assert not page.is_visible("#user-more")
        assert troubles == []
