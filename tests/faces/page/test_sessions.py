"""Signing in by a link, and what the page's session may and may not do."""

import re
from collections.abc import AsyncGenerator

import pytest

from tests.doors import HOST, Doors, Reply, doors

pytestmark = pytest.mark.anyio

OWN = {"sec-fetch-site": "same-origin"}


@pytest.fixture
async def crib() -> AsyncGenerator[Doors]:
    async with doors(demo=True) as opened:
        yield opened


def session_of(reply: Reply) -> str:
    found = re.match(
        r"toolcrib_session=([^;]+); Path=/; HttpOnly; SameSite=Strict$", reply.headers["set-cookie"]
    )
    assert found is not None, reply.headers
    return found[1]


async def signed_in(crib: Doors) -> tuple[dict[str, str], str]:
    """Follow a fresh link; the answer is the cookie's header and the token of the page."""
    link = (await crib.ask("POST", "/api/signin")).json["url"]
    assert link.startswith(f"http://{HOST}/?token=")
    entered = await crib.ask("GET", link.removeprefix(f"http://{HOST}"), key=None)
    assert (entered.status, entered.headers["location"]) == (303, "/")
    cookie = {"cookie": f"toolcrib_session={session_of(entered)}"}
    page = await crib.ask("GET", "/", key=None, headers=cookie)
    found = re.search(rb'name="crib-token" content="([^"]+)"', page.body)
    assert found is not None
    return cookie, found[1].decode()


async def test_the_page_is_hardened_and_has_nothing_inline(crib: Doors) -> None:
    page = await crib.ask("GET", "/", key=None)
    policy = page.headers["content-security-policy"]
    assert policy == "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
    assert page.headers["x-frame-options"] == "DENY"
    assert page.headers["referrer-policy"] == "no-referrer"
    assert b'name="crib-token" content=""' in page.body
    for inline in (rb"<style", rb"\sstyle=", rb"\son\w+=", rb"<script(?![^>]*src=)", rb"https?://"):
        assert not re.search(inline, page.body), inline


async def test_the_pages_parts(crib: Doors) -> None:
    page = (await crib.ask("GET", "/", key=None)).body.decode()
    parts = set(re.findall(r'(?:href|src)="(/assets/[^"]+)"', page))
    assert len(parts) == 3
    script = (await crib.ask("GET", "/assets/page.js", key=None)).body.decode()
    imported = set(re.findall(r"from '(/assets/[^']+)'", script))
    assert imported == {"/assets/apps.js", "/assets/models.js"}
    kinds = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}
    for part in parts | imported:
        reply = await crib.ask("GET", part, key=None)
        assert (reply.status, reply.headers["content-type"]) == (200, kinds[part.rpartition(".")[2]])
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert b"innerHTML" not in reply.body
        assert not re.search(rb"https?://(?!www\.w3\.org/2000/svg)", reply.body)
    for path in ("/assets/none.js", "/assets/..", "/assets/page.py", "/assets/__init__.py"):
        assert (await crib.ask("GET", path, key=None)).status == 404


async def test_the_old_address(crib: Doors) -> None:
    reply = await crib.ask("GET", "/admin", key=None)
    assert (reply.status, reply.headers["location"]) == (303, "/")


async def test_a_link_works_once(crib: Doors) -> None:
    path = "/?token=" + crib.house.identity.sign_in.token()
    assert (await crib.ask("HEAD", path, key=None)).status == 200
    assert "set-cookie" in (await crib.ask("GET", path, key=None)).headers
    again = await crib.ask("GET", path, key=None)
    assert again.headers["location"] == "/#expired"
    assert "set-cookie" not in again.headers
    assert (await crib.ask("GET", "/?token=guess", key=None)).headers["location"] == "/#expired"


async def test_a_used_link_does_no_harm_to_who_is_in(crib: Doors) -> None:
    cookie, _ = await signed_in(crib)
    reply = await crib.ask("GET", "/?token=used", key=None, headers=cookie)
    assert reply.headers["location"] == "/"


async def test_the_page_reads_and_changes_with_its_token(crib: Doors) -> None:
    cookie, token = await signed_in(crib)
    assert (await crib.ask("GET", "/api/status", key=None, headers=cookie | OWN)).status == 200
    made = await crib.ask(
        "POST", "/api/keys", key=None, body={"name": "k"}, headers={**cookie, **OWN, "x-crib-token": token}
    )
    assert made.status == 201
    by_origin = {**cookie, "origin": f"http://{HOST}", "x-crib-token": token}
    assert (await crib.ask("DELETE", "/api/keys/k", key=None, headers=by_origin)).status == 200


@pytest.mark.parametrize("token", [None, "", "wrong", "é"])
async def test_a_change_without_the_token_is_refused(crib: Doors, token: str | None) -> None:
    cookie, _ = await signed_in(crib)
    headers = {**cookie, **OWN, **({} if token is None else {"x-crib-token": token})}
    reply = await crib.ask("POST", "/api/keys", key=None, body={"name": "k"}, headers=headers)
    assert (reply.status, reply.code) == (403, "ORIGIN_REFUSED")
    assert (await crib.ask("GET", "/api/keys")).json == {"keys": []}


async def test_a_token_of_another_session_is_refused(crib: Doors) -> None:
    cookie, _ = await signed_in(crib)
    _, other = await signed_in(crib)
    headers = {**cookie, **OWN, "x-crib-token": other}
    assert (await crib.ask("POST", "/api/keys", key=None, body={"name": "k"}, headers=headers)).status == 403


@pytest.mark.parametrize("site", ["cross-site", "same-site", "none", None])
async def test_the_cookie_counts_for_nobody_elses_requests(crib: Doors, site: str | None) -> None:
    cookie, token = await signed_in(crib)
    headers = {**cookie, "x-crib-token": token, **({} if site is None else {"sec-fetch-site": site})}
    assert (await crib.ask("GET", "/api/status", key=None, headers=headers)).code == "UNAUTHENTICATED"
    assert (await crib.call("add-numbers", key=None, headers=headers)).code == "UNAUTHENTICATED"


async def test_the_cookie_does_not_speak_mcp(crib: Doors) -> None:
    cookie, token = await signed_in(crib)
    headers = {**cookie, **OWN, "x-crib-token": token}
    assert (await crib.ask("POST", "/mcp", key=None, body={}, headers=headers)).code == "UNAUTHENTICATED"


async def test_a_key_goes_before_a_cookie(crib: Doors) -> None:
    cookie, token = await signed_in(crib)
    plain = await crib.key("plain")
    headers = {**cookie, **OWN, "x-crib-token": token}
    assert (await crib.ask("GET", "/api/status", key=plain, headers=headers)).code == "SCOPE_DENIED"
    assert (await crib.ask("GET", "/api/status", key="wrong", headers=headers)).code == "UNAUTHENTICATED"


async def test_signing_out(crib: Doors) -> None:
    cookie, token = await signed_in(crib)
    headers = {**cookie, **OWN, "x-crib-token": token}
    out = await crib.ask("POST", "/api/signout", key=None, headers=headers)
    assert out.json == {"signedOut": True}
    assert out.headers["set-cookie"] == "toolcrib_session=; Max-Age=0; Path=/; HttpOnly; SameSite=Strict"
    assert (await crib.ask("GET", "/api/status", key=None, headers=headers)).code == "UNAUTHENTICATED"
    assert (await crib.ask("POST", "/api/signout")).code == "INVALID_REQUEST"


async def test_behind_https_the_cookie_is_for_https_alone() -> None:
    async with doors("server: {public_url: 'https://crib.example/'}") as crib:
        host = {"host": "crib.example"}
        link = (await crib.ask("POST", "/api/signin", headers=host)).json["url"]
        assert link.startswith("https://crib.example/?token=")
        entered = await crib.ask("GET", link.removeprefix("https://crib.example"), key=None, headers=host)
        cookie = entered.headers["set-cookie"]
        assert cookie.startswith("__Host-toolcrib_session=")
        assert cookie.endswith("; Path=/; HttpOnly; SameSite=Strict; Secure")
        held = {**host, **OWN, "cookie": cookie.partition(";")[0]}
        assert (await crib.ask("GET", "/api/status", key=None, headers=held)).status == 200
        plain = {**held, "host": HOST}
        assert (await crib.ask("GET", "/api/status", key=None, headers=plain)).code == "UNAUTHENTICATED"
