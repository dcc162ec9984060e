"""The web page in a real browser: sign in by the link, run a tool, make a key; no text is ever executed."""

import json
import re
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import pytest
from anyio.from_thread import start_blocking_portal
from pydantic import Field

from tests.gateways import InProcessGateway, listening, open_gateway
from toolcrib import create_tool
from toolcrib.formats import PROVIDERS
from toolcrib.sdk import AnyTool

if TYPE_CHECKING:
    from playwright.sync_api import ConsoleMessage, Error, Page, Request

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.slow]

HOSTILE = (
    '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>\'"{{token}}javascript:hacked()'
)


@create_tool(
    title=HOSTILE,
    category="query",
    tags=[HOSTILE],
    examples=[{"description": HOSTILE, "params": {"text": HOSTILE}, "expectedResult": HOSTILE}],
)
async def repeat_text(text: Annotated[str, Field(description=HOSTILE)]) -> dict[str, str]:
    """Repeat <b onmouseover="window.hacked=1">what</b> it is given."""
    return {"text": text, HOSTILE: HOSTILE}


@dataclass
class Seen:
    """What the browser did and said."""

    page: "Page"
    url: str
    gateway: InProcessGateway
    troubles: list[str] = field(default_factory=list[str])
    asked: set[str] = field(default_factory=set[str])

    def watch(self) -> None:
        def console(message: "ConsoleMessage") -> None:
            if message.type in {"error", "warning"}:
                self.troubles.append(message.text)

        def error(raised: "Error") -> None:
            self.troubles.append(str(raised))

        def asked(request: "Request") -> None:
            self.asked.add(re.sub(r"^(\w+://[^/]+).*", r"\1", request.url))

        self.page.on("console", console)
        self.page.on("pageerror", error)
        self.page.on("request", asked)

    def sign_in(self) -> None:
        self.page.goto(f"{self.url}/#token={self.gateway.runtime.identity.sign_in.make_link()}")
        self.page.wait_for_selector("#tool h3")

    def choose(self, words: str) -> None:
        self.page.fill("#search", words)
        self.page.wait_for_selector("#list[aria-busy=false]")
        self.page.click("#list button")


@contextmanager
def opened(page: "Page", config: str = "", tools: Sequence[AnyTool] = (repeat_text,)) -> Generator[Seen]:
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(open_gateway(config, demo=True, tools=tools)) as gateway,
        portal.wrap_async_context_manager(listening(gateway.server)) as url,
    ):
        browser = Seen(page, url, gateway)
        browser.watch()
        yield browser
        page.close()


@pytest.fixture
def seen(page: "Page") -> Generator[Seen]:
    with opened(page) as browser:
        yield browser


def test_page_explains_sign_in(seen: Seen) -> None:
    seen.page.goto(seen.url)
    seen.page.wait_for_selector("text=Sign in to your gateway")
    assert not seen.page.is_visible("#inside")
    assert seen.troubles == []
    seen.page.goto(f"{seen.url}/#token=used")
    seen.page.wait_for_selector("#gate-note:visible")
    assert seen.page.url == f"{seen.url}/"
    # The browser itself reports the answer 401, and nothing else.
    assert all("401" in each for each in seen.troubles)


def test_link_signs_in_and_is_removed_from_url(seen: Seen) -> None:
    seen.sign_in()
    assert seen.page.url == f"{seen.url}/"
    (cookie,) = seen.page.context.cookies()
    assert (cookie.get("httpOnly"), cookie.get("sameSite"), cookie.get("path")) == (True, "Strict", "/")
    assert seen.page.text_content("#summary")
    seen.page.reload()
    seen.page.wait_for_selector("#tool h3")
    seen.page.click("text=Sign out")
    seen.page.wait_for_selector("#gate")


def test_a_tool_is_found_and_run(seen: Seen) -> None:
    seen.sign_in()
    seen.choose("convert units")
    assert seen.page.input_value("#tool input[type=number]") == "3"
    seen.page.fill("#tool input[type=number]", "10")
    seen.page.click("#tool button[type=submit]")
    seen.page.wait_for_selector("text=That is 16.0934 km.")
    assert '"value": 16.0934' in (seen.page.text_content(".outcome pre") or "")
    seen.page.click("role=tab[name=Hints]")
    assert "confidence" in (seen.page.text_content(".hints") or "")
    seen.page.wait_for_selector("#call-rows >> text=demo:convert-units")
    assert seen.troubles == []
    assert seen.asked == {seen.url}


def test_page_shows_declarations_of_every_provider(seen: Seen) -> None:
    seen.sign_in()
    seen.choose("convert units")
    seen.page.click("text=Declaration for a model")
    seen.page.wait_for_selector(".declared pre >> text=convert_units")
    offered = seen.page.eval_on_selector_all(".models option", "each => each.map(one => one.value)")
    assert set(offered) == set(PROVIDERS)
    seen.page.select_option(".models select", "gemini")
    seen.page.wait_for_selector(".declared pre >> text=functionDeclarations")
    (declared,) = json.loads(seen.page.text_content(".declared pre") or "")
    (tool,) = declared["functionDeclarations"]
    assert (tool["name"], tool["parameters"]["type"]) == ("convert_units", "OBJECT")
    assert seen.troubles == []


def test_page_shows_json_arguments_and_error_texts(seen: Seen) -> None:
    seen.sign_in()
    seen.choose("convert units")
    seen.page.click("role=tab[name=JSON]")
    seen.page.fill("#tool textarea[aria-label]", '{"value": 1, "unit": "mi", "to": "kg"}')
    seen.page.click("#tool button[type=submit]")
    seen.page.wait_for_selector("text=mi measures length and kg measures mass")
    seen.page.fill("#tool textarea[aria-label]", "{")
    seen.page.click("#tool button[type=submit]")
    seen.page.wait_for_selector("#trouble >> text=not JSON")


def test_progress_is_shown_while_it_runs(seen: Seen) -> None:
    seen.sign_in()
    seen.choose("count down")
    seen.page.fill("#tool input[step=any]", "1")
    seen.page.click("#tool button[type=submit]")
    seen.page.wait_for_selector(".progress >> text=to go")
    seen.page.wait_for_selector("text=Lift-off after 1")


def test_a_key_is_made_used_and_ended(seen: Seen) -> None:
    seen.sign_in()
    from playwright.sync_api import expect

    assert "YOUR_KEY" in (seen.page.text_content("#snippets") or "")
    seen.page.fill("#key-name", "my-agent")
    seen.page.click("text=Create key")
    key = seen.page.text_content("#made pre") or ""
    assert key.startswith("tc_")
    assert key in (seen.page.text_content("#snippets") or "")
    answer = seen.page.request.get(f"{seen.url}/api/tools", headers={"Authorization": f"Bearer {key}"})
    assert answer.status == 200
    seen.page.on("dialog", lambda dialog: dialog.accept())
    seen.page.click("role=button[name='Rotate my-agent']")
    expect(seen.page.locator("#made pre")).not_to_have_text(key)
    seen.page.click("role=button[name='Revoke my-agent']")
    seen.page.wait_for_selector("#key-rows >> text=revoked")
    again = seen.page.request.get(f"{seen.url}/api/tools", headers={"Authorization": f"Bearer {key}"})
    assert again.status == 401


@pytest.mark.check(18)
def test_page_never_executes_tool_output(seen: Seen) -> None:
    seen.sign_in()
    seen.choose("repeat")
    seen.page.click("#tool button[type=submit]")
    seen.page.wait_for_selector(".said")
    for name in ("Hints", "Full response", "Data"):
        seen.page.click(f"role=tab[name='{name}']")
    for name in ("MCP over stdio", "curl", "Python", "Command line"):
        seen.page.click(f"role=tab[name='{name}']")
    hacked: Any = seen.page.evaluate("window.hacked")
    assert hacked is None
    assert seen.page.locator("#inside img, #inside script").count() == 0
    assert seen.troubles == []


@pytest.mark.requirement("C6")
def test_failing_server_reason_fits_a_phone_screen(page: "Page") -> None:
    server = {"transport": "stdio", "command": [f"/nowhere/{HOSTILE}"], "restart": {"enabled": False}}
    with opened(page, json.dumps({"mcp": {"servers": {"gone": server}}})) as seen:
        page.set_viewport_size({"width": 360, "height": 740})
        seen.sign_in()
        page.wait_for_selector("#sources .fault >> text=/nowhere/")
        assert "gone0 tools, stopped" in (page.text_content("#sources") or "")
        assert page.evaluate("document.documentElement.scrollWidth") == 360
        assert page.locator("#inside img, #inside script").count() == 0
        assert seen.troubles == []


def test_it_fits_a_phone(seen: Seen) -> None:
    seen.page.set_viewport_size({"width": 360, "height": 740})
    seen.sign_in()
    assert seen.page.evaluate("document.documentElement.scrollWidth") == 360


def test_it_can_be_used_with_the_keyboard(seen: Seen) -> None:
    seen.sign_in()
    seen.page.focus("role=tab[name='MCP client']")
    seen.page.keyboard.press("ArrowRight")
    assert seen.page.get_attribute("role=tab[name='MCP over stdio']", "aria-selected") == "true"
    named = "e.labels?.length || e.textContent || e.ariaLabel"
    controls = "[...document.querySelectorAll('input,select,textarea,button')]"
    assert seen.page.evaluate(f"{controls}.filter(e => !({named})).length") == 0
