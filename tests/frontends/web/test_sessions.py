"""Signing in by a link, and what the page's session may and may not do."""

import re
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.gateways import ADMIN, HOST, InProcessGateway, Reply, open_gateway
from tests.identity.test_sign_in import Clock
from toolcrib.identity.sign_in import FRESH_SECONDS

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("I1")]

OWN = {"sec-fetch-site": "same-origin"}


@pytest.fixture
async def gateway() -> AsyncGenerator[InProcessGateway]:
    async with open_gateway(demo=True) as opened:
        yield opened


@dataclass(frozen=True)
class SignedIn:
    """What a browser holds after a sign-in: the cookie it sends, and the secret that the page adds."""

    cookie: str
    secret: str

    @property
    def cookie_alone(self) -> dict[str, str]:
        """What another port of the host receives, with all a program can make up beside it."""
        return {"cookie": self.cookie, **OWN, "origin": f"http://{HOST}"}

    @property
    def both(self) -> dict[str, str]:
        return {"cookie": self.cookie, **OWN, "x-crib-token": self.secret}


async def exchanged(gateway: InProcessGateway, token: str, **headers: str) -> Reply:
    return await gateway.request(
        "POST", "/api/signin/exchange", key=None, body={"token": token}, headers=OWN | headers
    )


async def link_token(gateway: InProcessGateway, key: str = ADMIN) -> str:
    link = (await gateway.request("POST", "/api/signin", key=key)).json["url"]
    start, _, token = link.partition("/#token=")
    assert start == f"http://{HOST}"
    return token


async def signed_in(gateway: InProcessGateway, key: str = ADMIN) -> SignedIn:
    """Use a fresh link up, as the page's script does."""
    reply = await exchanged(gateway, await link_token(gateway, key))
    assert reply.status == 200, reply.body
    cookie = re.match(
        r"(toolcrib_session=[^;]+); Path=/; HttpOnly; SameSite=Strict$", reply.headers["set-cookie"]
    )
    assert cookie is not None, reply.headers
    return SignedIn(cookie[1], reply.json["secret"])


async def test_the_page_is_hardened_and_has_nothing_inline(gateway: InProcessGateway) -> None:
    page = await gateway.request("GET", "/", key=None)
    policy = set(page.headers["content-security-policy"].split("; "))
    assert policy == {
        "default-src 'self'",
        "object-src 'none'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
        "form-action 'self'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    }
    assert page.headers["x-frame-options"] == "DENY"
    assert page.headers["referrer-policy"] == "no-referrer"
    for inline in (rb"<style", rb"\sstyle=", rb"\son\w+=", rb"<script(?![^>]*src=)", rb"https?://"):
        assert not re.search(inline, page.body), inline


async def test_the_pages_parts(gateway: InProcessGateway) -> None:
    page = (await gateway.request("GET", "/", key=None)).body.decode()
    parts = set(re.findall(r'(?:href|src)="(/assets/[^"]+)"', page))
    assert len(parts) == 3
    script = (await gateway.request("GET", "/assets/page.js", key=None)).body.decode()
    imported = set(re.findall(r"from '(/assets/[^']+)'", script))
    assert imported == {"/assets/apps.js", "/assets/hints.js", "/assets/models.js", "/assets/session.js"}
    kinds = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}
    for part in parts | imported:
        reply = await gateway.request("GET", part, key=None)
        assert (reply.status, reply.headers["content-type"]) == (200, kinds[part.rpartition(".")[2]])
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert b"innerHTML" not in reply.body
        assert not re.search(rb"https?://(?!www\.w3\.org/2000/svg)", reply.body)
    for path in ("/assets/none.js", "/assets/..", "/assets/page.py", "/assets/__init__.py"):
        assert (await gateway.request("GET", path, key=None)).status == 404


async def test_the_old_address(gateway: InProcessGateway) -> None:
    reply = await gateway.request("GET", "/admin", key=None)
    assert (reply.status, reply.headers["location"]) == (303, "/")


async def test_shell_is_the_same_for_everyone(gateway: InProcessGateway) -> None:
    session = await signed_in(gateway)
    plain = await gateway.request("GET", "/", key=None)
    for headers in ({}, session.cookie_alone, session.both):
        for target in ("/", "/?token=anything", "/?%ff"):
            page = await gateway.request("GET", target, key=None, headers=headers)
            assert (page.status, page.body, page.headers) == (200, plain.body, plain.headers)


async def test_link_works_once(gateway: InProcessGateway) -> None:
    token = await link_token(gateway)
    # The old form put the token into the address that servers log: it is not looked at any more.
    assert "set-cookie" not in (await gateway.request("GET", f"/?token={token}", key=None)).headers
    assert (await exchanged(gateway, token)).status == 200
    again = await exchanged(gateway, token)
    assert (again.status, again.code) == (401, "UNAUTHENTICATED")
    assert again.json["error"]["path"] == "token"
    assert "set-cookie" not in again.headers


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "none"},
        {"origin": "http://127.0.0.1:6741"},
        {"sec-fetch-site": "same-origin", "origin": "http://127.0.0.1:6741"},
    ],
)
async def test_exchange_is_for_the_own_page_alone(gateway: InProcessGateway, headers: dict[str, str]) -> None:
    token = await link_token(gateway)
    reply = await gateway.request(
        "POST", "/api/signin/exchange", key=None, body={"token": token}, headers=headers
    )
    assert (reply.status, reply.code) == (403, "ORIGIN_REFUSED")
    assert (await exchanged(gateway, token, origin=f"http://{HOST}")).status == 200


@pytest.mark.parametrize(
    "body, code",
    [
        ([], "INVALID_REQUEST"),
        ({}, "INVALID_REQUEST"),
        ({"token": 1}, "INVALID_REQUEST"),
        (b"{", "INVALID_REQUEST"),
        ({"token": "x" * 2000}, "PAYLOAD_TOO_LARGE"),
    ],
)
async def test_malformed_exchange_is_refused(gateway: InProcessGateway, body: Any, code: str) -> None:
    reply = await gateway.request("POST", "/api/signin/exchange", key=None, body=body, headers=OWN)
    assert reply.code == code
    assert "set-cookie" not in reply.headers


async def test_fresh_sign_in_replaces_the_session(gateway: InProcessGateway) -> None:
    first = await signed_in(gateway)
    reply = await exchanged(gateway, await link_token(gateway), **first.both)
    assert reply.status == 200
    assert (
        await gateway.request("GET", "/api/status", key=None, headers=first.both)
    ).code == "UNAUTHENTICATED"


async def test_sign_in_with_anothers_cookie_ends_nothing(gateway: InProcessGateway) -> None:
    victim = await signed_in(gateway)
    assert (await exchanged(gateway, await link_token(gateway), **victim.cookie_alone)).status == 200
    assert (await gateway.request("GET", "/api/status", key=None, headers=victim.both)).status == 200


async def test_page_reads_and_changes_with_both(gateway: InProcessGateway) -> None:
    session = await signed_in(gateway)
    assert (await gateway.request("GET", "/api/status", key=None, headers=session.both)).status == 200
    made = await gateway.request("POST", "/api/keys", key=None, body={"name": "k"}, headers=session.both)
    assert made.status == 201
    by_origin = {
        "cookie": session.cookie,
        "origin": f"http://{HOST}",
        "x-crib-token": session.secret,
    }
    assert (await gateway.request("DELETE", "/api/keys/k", key=None, headers=by_origin)).status == 200


@pytest.mark.parametrize("sites", [True, False])
@pytest.mark.parametrize("token", [None, "", "wrong", "é"])
async def test_cookie_alone_reads_and_changes_nothing(
    gateway: InProcessGateway, token: str | None, sites: bool
) -> None:
    session = await signed_in(gateway)
    alone = session.cookie_alone if sites else {"cookie": session.cookie}
    headers = {**alone, **({} if token is None else {"x-crib-token": token})}
    for method, path, body in (
        ("POST", "/api/keys", {"name": "k"}),
        ("GET", "/api/keys", None),
        ("GET", "/api/status", None),
        ("GET", "/api/tools", None),
        ("POST", "/api/signin", None),
        ("POST", "/api/signout", None),
        ("POST", "/api/tools/execute", {"name": "add-numbers"}),
    ):
        reply = await gateway.request(method, path, key=None, body=body, headers=headers)
        assert (reply.status, reply.code) == (401, "UNAUTHENTICATED"), (method, path)
    assert (await gateway.request("GET", "/api/keys")).json == {"keys": []}
    assert (await gateway.request("GET", "/api/status", key=None, headers=session.both)).status == 200


async def test_secret_alone_is_no_credential(gateway: InProcessGateway) -> None:
    session = await signed_in(gateway)
    headers = {**OWN, "x-crib-token": session.secret}
    assert (await gateway.request("GET", "/api/status", key=None, headers=headers)).code == "UNAUTHENTICATED"


async def test_secret_of_another_session_is_refused(gateway: InProcessGateway) -> None:
    session, other = await signed_in(gateway), await signed_in(gateway)
    headers = {**session.both, "x-crib-token": other.secret}
    assert (await gateway.request("GET", "/api/status", key=None, headers=headers)).code == "UNAUTHENTICATED"


@pytest.mark.parametrize("site", ["cross-site", "same-site", "none", ""])
async def test_session_counts_for_no_other_page(gateway: InProcessGateway, site: str) -> None:
    session = await signed_in(gateway)
    headers = {"cookie": session.cookie, "x-crib-token": session.secret, "sec-fetch-site": site}
    assert (await gateway.request("GET", "/api/status", key=None, headers=headers)).code == "UNAUTHENTICATED"
    assert (await gateway.call("add-numbers", key=None, headers=headers)).code == "UNAUTHENTICATED"


async def test_both_count_where_the_browser_names_no_site(gateway: InProcessGateway) -> None:
    """As over plain HTTP to another machine, where a GET of the page itself has no Origin either."""
    session = await signed_in(gateway)
    headers = {"cookie": session.cookie, "x-crib-token": session.secret}
    assert (await gateway.request("GET", "/api/status", key=None, headers=headers)).status == 200
    foreign = {**headers, "origin": "http://127.0.0.1:6741"}
    assert (await gateway.request("GET", "/api/status", key=None, headers=foreign)).code == "ORIGIN_REFUSED"


async def test_no_preflight_for_the_secret_is_granted(gateway: InProcessGateway) -> None:
    wanted = {"access-control-request-method": "GET", "access-control-request-headers": "x-crib-token"}
    for origin in ({}, {"origin": "http://127.0.0.1:6741"}, {"origin": f"http://{HOST}"}):
        reply = await gateway.request("OPTIONS", "/api/status", key=None, headers={**wanted, **origin})
        assert reply.status in {403, 405}
        assert not [name for name in reply.headers if name.startswith("access-control-")]


@pytest.mark.parametrize(
    "method, path",
    [
        ("POST", "/mcp"),
        ("GET", "/mcp"),
        ("POST", "/contexts/default/mcp"),
        ("POST", "/api/signin"),
        ("GET", "/api/users/ann/events"),
    ],
)
async def test_session_is_no_credential_for(gateway: InProcessGateway, method: str, path: str) -> None:
    session = await signed_in(gateway)
    body: Any = {} if method == "POST" else None
    reply = await gateway.request(method, path, key=None, body=body, headers=session.both, leaves=True)
    assert reply.code == "UNAUTHENTICATED"


async def test_key_takes_precedence_over_cookie(gateway: InProcessGateway) -> None:
    session = await signed_in(gateway)
    plain = await gateway.key("plain")
    assert (
        await gateway.request("GET", "/api/status", key=plain, headers=session.both)
    ).code == "SCOPE_DENIED"
    assert (
        await gateway.request("GET", "/api/status", key="wrong", headers=session.both)
    ).code == "UNAUTHENTICATED"


async def test_signing_out(gateway: InProcessGateway) -> None:
    session = await signed_in(gateway)
    out = await gateway.request("POST", "/api/signout", key=None, headers=session.both)
    assert out.json == {"signedOut": True}
    cookie, *attributes = out.headers["set-cookie"].split("; ")
    assert cookie == "toolcrib_session="
    assert attributes == ["Max-Age=0", "Path=/", "HttpOnly", "SameSite=Strict"]
    assert (
        await gateway.request("GET", "/api/status", key=None, headers=session.both)
    ).code == "UNAUTHENTICATED"
    assert (await gateway.request("POST", "/api/signout")).code == "INVALID_REQUEST"


async def test_ended_session_is_not_taken_for_anonymous() -> None:
    async with open_gateway("{auth: {anonymous: {context: open}}, contexts: {open: {tools: []}}}") as gateway:
        session = await signed_in(gateway)
        await gateway.request("POST", "/api/signout", key=None, headers=session.both)
        ended = await gateway.request("GET", "/api/tools", key=None, headers=session.both)
        assert (ended.code, ended.json["error"]["path"]) == ("UNAUTHENTICATED", "X-Crib-Token")
        assert (
            await gateway.request("GET", "/api/tools", key=None, headers=session.cookie_alone)
        ).status == 200


async def test_session_of_a_key_has_its_permissions_and_end(gateway: InProcessGateway) -> None:
    key = await gateway.key("ops", permissions=["crib:admin"])
    first = await signed_in(gateway, key)
    needs_more = {"name": "k", "permissions": ["*"], "actAs": True}
    assert (
        await gateway.request("POST", "/api/keys", key=None, body=needs_more, headers=first.both)
    ).status == 201
    assert (await gateway.call("mcp_list_servers", key=None, headers=first.both)).status == 200
    acting = {**first.both, "x-user-id": "ann"}
    assert (await gateway.request("GET", "/api/tools", key=None, headers=acting)).code == "SCOPE_DENIED"
    rotated = (await gateway.request("POST", "/api/keys/ops/rotate")).json["key"]
    assert (
        await gateway.request("GET", "/api/status", key=None, headers=first.both)
    ).code == "UNAUTHENTICATED"
    second = await signed_in(gateway, rotated)
    assert (await gateway.request("GET", "/api/status", key=None, headers=second.both)).status == 200
    assert (await gateway.request("DELETE", "/api/keys/ops")).status == 200
    assert (
        await gateway.request("GET", "/api/status", key=None, headers=second.both)
    ).code == "UNAUTHENTICATED"


FRESH = {
    ("POST", "/api/keys"),
    ("POST", "/api/keys/{name}/rotate"),
    ("PUT", "/api/apps/{package}"),
    ("POST", "/api/apps/{package}/key/rotate"),
    ("POST", "/api/apps/{package}/tools"),
    ("POST", "/api/pins"),
    ("POST", "/reload"),
}


async def test_granting_permissions_needs_fresh_sign_in(gateway: InProcessGateway) -> None:
    routes = gateway.server.router.routes
    assert {(route.method, route.path) for route in routes if route.fresh} == FRESH
    clock = Clock()
    gateway.runtime.identity.sign_in.now = clock
    session = await signed_in(gateway)
    clock.now += FRESH_SECONDS + 1
    for method, path in FRESH:
        target = re.sub(r"\{\w+\}", "x.example.app", path)
        stale = await gateway.request(method, target, key=None, body={"name": "x"}, headers=session.both)
        assert (stale.status, stale.code) == (401, "UNAUTHENTICATED"), path
        assert stale.json["error"]["details"] == {"freshSignIn": True, "maxAgeSeconds": 900.0}
        assert (await gateway.request(method, target, body={"name": "x"})).status != 401
    adding = {"server_id": "s", "url": "http://127.0.0.1:9/mcp", "start": "lazy"}
    stale = await gateway.call("mcp_add_server", adding, key=None, headers=session.both)
    assert (stale.code, stale.json["error"]["details"]["freshSignIn"]) == ("UNAUTHENTICATED", True)
    assert "s" not in (await gateway.request("GET", "/mcp/status")).json["servers"]
    # All else goes on, above all what takes power away.
    assert (await gateway.request("GET", "/api/keys", key=None, headers=session.both)).status == 200
    assert (await gateway.request("DELETE", "/api/keys/x", key=None, headers=session.both)).status == 200
    reply = await exchanged(gateway, await link_token(gateway), **session.both)
    cookie = reply.headers["set-cookie"].partition(";")[0]
    again = SignedIn(cookie, reply.json["secret"])
    made = await gateway.request("POST", "/api/keys", key=None, body={"name": "y"}, headers=again.both)
    assert made.status == 201
    assert (await gateway.call("mcp_add_server", adding, key=None, headers=again.both)).status == 200


async def test_behind_https_the_cookie_is_for_https_alone() -> None:
    async with open_gateway("server: {public_url: 'https://crib.example/'}") as gateway:
        host = {"host": "crib.example"}
        link = (await gateway.request("POST", "/api/signin", headers=host)).json["url"]
        assert link.startswith("https://crib.example/#token=")
        entered = await exchanged(gateway, link.partition("#token=")[2], **host)
        cookie = entered.headers["set-cookie"]
        assert cookie.startswith("__Host-toolcrib_session=")
        assert cookie.endswith("; Path=/; HttpOnly; SameSite=Strict; Secure")
        held = {**host, **OWN, "cookie": cookie.partition(";")[0], "x-crib-token": entered.json["secret"]}
        assert (await gateway.request("GET", "/api/status", key=None, headers=held)).status == 200
        plain = {**held, "host": HOST}
        assert (
            await gateway.request("GET", "/api/status", key=None, headers=plain)
        ).code == "UNAUTHENTICATED"
