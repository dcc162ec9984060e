"""The page's session in a real browser: tabs, reloads, sign-out, a fresh sign-in, idle time, revoked keys."""

import json
import urllib.request
from collections.abc import Generator, Sized
from time import monotonic
from typing import TYPE_CHECKING, Any

import pytest

from tests.gateways import ADMIN
from tests.identity.test_sign_in import Clock
from tests.parts.browser import SWITCHES
from tests.parts.registry import require
from tests.walks.test_page import Seen, opened
from toolcrib.identity.sign_in import FRESH_SECONDS, IDLE_SECONDS

if TYPE_CHECKING:
    from playwright.sync_api import APIResponse, Browser, Page, Response, Route

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.slow, pytest.mark.requirement("I1")]

INSIDE, GATE = "#tool h3", "#gate:visible"
KEPT = "localStorage.getItem('toolcrib.secret')"


@pytest.fixture
def seen(page: "Page") -> Generator[Seen]:
    with opened(page) as browser:
        yield browser


@pytest.fixture
def clock(seen: Seen) -> Clock:
    """The clock of the gateway's sessions."""
    clock = Clock()
    seen.gateway.runtime.identity.sign_in.now = clock
    return clock


def asked(seen: Seen, method: str, path: str, key: str = ADMIN, body: object = None) -> Any:
    request = urllib.request.Request(
        seen.url + path,
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Authorization": f"Bearer {key}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


def second_tab(seen: Seen) -> "Page":
    tab = seen.page.context.new_page()
    tab.goto(seen.url)
    return tab


def test_reload_and_second_tab_stay_signed_in(seen: Seen) -> None:
    seen.sign_in()
    seen.page.reload()
    seen.page.wait_for_selector(INSIDE)
    other = second_tab(seen)
    other.wait_for_selector(INSIDE)
    other.close()
    assert seen.troubles == []


def test_nothing_that_is_kept_or_sent_holds_the_link(seen: Seen) -> None:
    sent: list[str] = []
    seen.page.on("request", lambda request: sent.append(request.url + str(request.headers)))
    seen.sign_in()
    assert seen.page.url == f"{seen.url}/"
    assert not any("tc_link_" in each for each in sent)
    seen.page.go_back()
    assert "tc_link_" not in seen.page.url


def test_sign_out_in_one_tab_signs_out_the_others(seen: Seen) -> None:
    seen.sign_in()
    other = second_tab(seen)
    other.wait_for_selector(INSIDE)
    seen.page.click("#signout")
    seen.page.wait_for_selector(GATE)
    other.wait_for_selector(GATE)
    assert seen.page.evaluate("localStorage.length") == 0
    assert not other.is_visible("#inside")
    # And in again: a link opened in one tab signs in the other, which shows how to sign in.
    seen.sign_in()
    other.wait_for_selector(INSIDE)
    other.close()


class HeldSignIn:
    """A sign-in of a tab that the gateway has answered, while the answer is still on its way."""

    def __init__(self, seen: Seen, page: "Page") -> None:
        self._page = page
        self._held: list[tuple[Route, APIResponse]] = []
        page.route("**/api/signin/exchange", lambda route: self._held.append((route, route.fetch())))
        page.evaluate("token => { location.hash = '#token=' + token }", _token(seen))
        _until_any(page, self._held)

    def arrive(self) -> None:
        for route, answer in self._held:
            route.fulfill(response=answer)
        self._page.unroute("**/api/signin/exchange")


def _until_any(page: "Page", held: Sized) -> None:
    """Let the browser go on until a request is held."""
    over = monotonic() + 30
    while not held:
        assert monotonic() < over, "no request was made"
        page.evaluate("0")


def _token(seen: Seen) -> str:
    return seen.gateway.runtime.identity.sign_in.make_link()


def _refused(answer: "Response") -> bool:
    return answer.status == 401


SEARCH = "**/api/tools?*"
FOUND = "#list[aria-busy=false] >> text=convert"


def test_request_during_sign_in_keeps_session(seen: Seen) -> None:
    seen.sign_in()
    before = seen.page.evaluate(KEPT)
    early: list[Route] = []
    seen.page.route(SEARCH, lambda route: route.continue_() if early else early.append(route))
    seen.page.fill("#search", "convert")
    _until_any(seen.page, early)
    signing_in = HeldSignIn(seen, seen.page)
    with seen.page.expect_response(_refused) as refused:
        early[0].continue_()
    refused.value.finished()
    assert seen.page.evaluate(KEPT) == before
    signing_in.arrive()
    seen.page.wait_for_selector(FOUND)
    assert seen.page.evaluate(KEPT) not in {None, before}
    assert not seen.page.is_visible(GATE)


def test_request_made_during_a_sign_in_waits_for_it(seen: Seen) -> None:
    seen.sign_in()
    refused: list[str] = []
    seen.page.on("response", lambda answer: refused.append(answer.url) if _refused(answer) else None)
    signing_in = HeldSignIn(seen, seen.page)
    seen.page.fill("#search", "convert")
    signing_in.arrive()
    seen.page.wait_for_selector(FOUND)
    assert refused == []


@pytest.mark.parametrize("arrives", [True, False])
def test_tab_waits_a_moment_for_the_sign_in_of_another(seen: Seen, arrives: bool) -> None:
    seen.sign_in()
    other = seen.page.context.new_page()
    other.clock.install()
    other.goto(seen.url)
    other.wait_for_selector(INSIDE)
    # From here on its time stands still, so that how fast this test is decides nothing.
    other.clock.pause_at(other.evaluate("Date.now() + 1"))
    signing_in = HeldSignIn(seen, seen.page)
    with other.expect_response(_refused) as refused:
        other.fill("#search", "convert")
    refused.value.finished()
    if arrives:
        signing_in.arrive()
        other.wait_for_selector(FOUND)
    else:
        assert other.evaluate(KEPT), "nothing is forgotten at once"
        other.clock.run_for(1000)
        other.wait_for_selector(GATE)
    other.close()


def test_page_works_over_plain_http_from_elsewhere(browser: "Browser", page: "Page") -> None:
    """There browsers tell neither the site a request comes from nor, with a GET, its origin."""
    far = browser.browser_type.launch(
        executable_path=require("chromium"),
        args=[*SWITCHES, "--host-resolver-rules=MAP crib.test 127.0.0.1"],
    )
    with opened(page, "server: {allowed_hosts: [crib.test]}") as near:
        seen = Seen(far.new_page(), near.url.replace("127.0.0.1", "crib.test"), near.gateway)
        sent: list[dict[str, str]] = []
        seen.page.on("request", lambda request: sent.append(request.all_headers()))
        seen.sign_in()
        assert seen.page.evaluate("isSecureContext") is False
        assert seen.page.text_content("#summary")
        far.close()
    assert not [headers for headers in sent if "sec-fetch-site" in headers]


def test_used_link_keeps_current_session(seen: Seen) -> None:
    seen.sign_in()
    seen.page.goto(f"{seen.url}/#token=used")
    seen.page.wait_for_selector("#trouble:visible")
    assert seen.page.is_visible(INSIDE)
    other = seen.page.context.new_page()
    other.goto(f"{seen.url}/#token=used")
    other.wait_for_selector(INSIDE)
    other.close()


def test_admin_key_signs_in_at_the_gate(seen: Seen) -> None:
    seen.page.goto(seen.url)
    seen.page.fill("#gate-key", "wrong")
    seen.page.click("#gate-form button")
    seen.page.wait_for_selector("#trouble:visible")
    seen.page.fill("#gate-key", ADMIN)
    seen.page.click("#gate-form button")
    seen.page.wait_for_selector(INSIDE)


def start_a_key(seen: Seen, name: str) -> None:
    seen.page.fill("#key-name", name)
    seen.page.fill("#key-permissions", "notes:read")
    seen.page.click("#key-form button[type=submit]")
    seen.page.wait_for_selector("#fresh[open]")
    assert seen.page.input_value("#key-permissions") == "notes:read"


def key_names(seen: Seen) -> list[str]:
    return [key["name"] for key in asked(seen, "GET", "/api/keys")["keys"]]


def test_new_key_needs_fresh_sign_in_by_link(seen: Seen, clock: Clock) -> None:
    seen.sign_in()
    clock.now += FRESH_SECONDS + 1
    start_a_key(seen, "by-link")
    seen.page.click("#fresh-cancel")
    seen.page.wait_for_selector("#trouble:visible")
    assert key_names(seen) == []
    start_a_key(seen, "by-link")
    # The link is opened in another tab; this one goes on with what was typed.
    tab = seen.page.context.new_page()
    tab.goto(asked(seen, "POST", "/api/signin")["url"])
    tab.wait_for_selector(INSIDE)
    seen.page.wait_for_selector("#made pre")
    assert not seen.page.is_visible("#fresh")
    assert key_names(seen) == ["by-link"]
    tab.close()


def test_new_key_needs_fresh_sign_in_by_key(seen: Seen, clock: Clock) -> None:
    seen.sign_in()
    clock.now += FRESH_SECONDS + 1
    start_a_key(seen, "by-key")
    seen.page.fill("#fresh-key", "wrong")
    seen.page.click("#fresh-form button")
    seen.page.wait_for_selector("#fresh-trouble:visible")
    seen.page.fill("#fresh-key", ADMIN)
    seen.page.click("#fresh-form button")
    seen.page.wait_for_selector("#made pre")
    assert key_names(seen) == ["by-key"]


def test_new_server_needs_fresh_sign_in(seen: Seen, clock: Clock) -> None:
    seen.sign_in()
    clock.now += FRESH_SECONDS + 1
    seen.choose("add an mcp server")
    seen.page.click("role=tab[name=JSON]")
    arguments = {"server_id": "later", "url": "http://127.0.0.1:9/mcp", "start": "lazy"}
    seen.page.fill("#tool textarea[aria-label]", json.dumps(arguments))
    seen.page.click("#tool button[type=submit]")
    seen.page.wait_for_selector("#fresh[open]")
    # A link opened in the same tab keeps what was typed as well.
    seen.page.goto(asked(seen, "POST", "/api/signin")["url"])
    seen.page.wait_for_selector(".outcome .pill.good")
    assert "later" in asked(seen, "GET", "/mcp/status")["servers"]


def test_unused_session_ends_with_message(seen: Seen, clock: Clock) -> None:
    seen.sign_in()
    clock.now += IDLE_SECONDS + 1
    seen.page.fill("#search", "convert")
    seen.page.wait_for_selector("#gate-ended:visible")
    assert not seen.page.is_visible("#inside")


def test_revoked_key_signs_its_page_out(seen: Seen) -> None:
    key = asked(seen, "POST", "/api/keys", body={"name": "ops", "permissions": ["crib:admin"]})["key"]
    seen.page.goto(asked(seen, "POST", "/api/signin", key)["url"])
    seen.page.wait_for_selector("#version:visible")
    asked(seen, "DELETE", "/api/keys/ops")
    seen.page.fill("#search", "convert")
    seen.page.wait_for_selector("#gate-ended:visible")


def test_footer_links_open_with_the_session(seen: Seen) -> None:
    seen.sign_in()
    with seen.page.context.expect_page() as opening:
        seen.page.click("footer a[href='/metrics']")
    shown = opening.value
    shown.wait_for_selector("text=toolcrib_")
    assert shown.url.startswith("blob:")
    shown.close()


@pytest.mark.check(18)
def test_no_text_becomes_markup_or_script(seen: Seen) -> None:
    seen.sign_in()
    sinks = (
        "document.createElement('div').innerHTML = '<b>x</b>'",
        "document.createElement('script').text = 'window.hacked = 1'",
        "document.createElement('iframe').srcdoc = '<script>1</script>'",
        "trustedTypes.createPolicy('default', {})",
    )
    for sink in sinks:
        script = f"(() => {{ try {{ {sink}; return 'done' }} catch (error) {{ return error.name }} }})()"
        assert seen.page.evaluate(script) == "TypeError", sink
