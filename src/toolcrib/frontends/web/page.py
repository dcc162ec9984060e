"""The web page: files, sign-in and its sessions."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import cast

from toolcrib.errors import Refused
from toolcrib.http import HttpResponse, Request, Route, json_response
from toolcrib.http.response import SAFE_HEADERS, Headers
from toolcrib.identity import PageSession, SignIn
from toolcrib.model import Actor, Caller, Json

# --- Sessions of the web page: an HttpOnly cookie, and a secret in a header against CSRF ---

COOKIE, SECURE_COOKIE = "toolcrib_session", "__Host-toolcrib_session"
SECRET_HEADER = b"x-crib-token"
_ATTRIBUTES = "; Path=/; HttpOnly; SameSite=Strict"


class PageSessions:
    """Authenticates requests of the page by cookie and secret."""

    def __init__(self, sign_in: SignIn, public_url: str | None) -> None:
        self.sign_in = sign_in
        scheme, _, rest = (public_url or "").partition("://")
        self._secure_host = rest.partition("/")[0].lower().encode() if scheme == "https" else None

    def find(self, request: Request) -> PageSession | None:
        """Return the live session of a request; None if the cookie or the secret is missing or wrong."""
        secret = request.header(SECRET_HEADER)
        if secret is None or _from_another_page(request):
            return None
        cookie = request.cookie(SECURE_COOKIE if self._is_secure(request) else COOKIE)
        return None if cookie is None else self.sign_in.verify(cookie, secret)

    def verified(self, request: Request) -> PageSession | None:
        """Return the session of a request; None without a secret. Refuse a wrong secret or cookie.

        Browsers send a cookie to every port of a host, so other programs on that host can know it: without
        the secret it is ignored, and the request counts as one without a credential.
        """
        session = self.find(request)
        if session is None and SECRET_HEADER in request.headers:
            message = "this session of the web page is unknown or has ended; sign in again"
            raise Refused("UNAUTHENTICATED", message, path="X-Crib-Token")
        return session

    def cookie(self, request: Request, session: PageSession | None) -> tuple[bytes, bytes]:
        """Return the Set-Cookie header that sets a session's cookie, or removes it."""
        secure = self._is_secure(request)
        name, more = (SECURE_COOKIE, "; Secure") if secure else (COOKIE, "")
        value = f"{name}={session.cookie}" if session is not None else f"{name}=; Max-Age=0"
        return b"set-cookie", f"{value}{_ATTRIBUTES}{more}".encode()

    def _is_secure(self, request: Request) -> bool:
        host = request.headers.get(b"host", b"").lower()
        return request.scope.get("scheme") == "https" or host == self._secure_host


def from_own_page(request: Request) -> bool:
    """Return whether a page of this gateway sent the request. The guard has refused other Origins already."""
    if b"sec-fetch-site" in request.headers:
        return not _from_another_page(request)
    return b"origin" in request.headers


def _from_another_page(request: Request) -> bool:
    """Return whether the browser reports (Sec-Fetch-Site) that another origin sent the request.

    Over plain HTTP, except on loopback, browsers omit that header, and their GETs have no Origin. The secret
    is still required, in a header that another origin could send only if CORS allowed it, and it never does.
    """
    return request.headers.get(b"sec-fetch-site", b"same-origin") != b"same-origin"


# --- Serves the web page and its assets, and implements sign-in and sign-out ---

_FOLDER = Path(__file__).parent
# Content Security Policy: a script of this origin could read the session's secret, so only the page's own
# scripts may run, and Trusted Types prevent that text becomes one.
_POLICY = (
    b"default-src 'self'; object-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'; "
    b"require-trusted-types-for 'script'; trusted-types 'none'"
)
_PAGE_HEADERS: Headers = (
    *SAFE_HEADERS,
    (b"content-security-policy", _POLICY),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
_MEDIA_TYPES = {
    ".css": b"text/css; charset=utf-8",
    ".js": b"text/javascript; charset=utf-8",
    ".svg": b"image/svg+xml",
}
ADMIN = "crib:admin"
_SECRET_PARAMETER = {
    "name": "X-Crib-Token",
    "in": "header",
    "required": True,
    "description": "the session's secret",
    "schema": {"type": "string"},
}
MAX_EXCHANGE_BYTES = 1024
"""Maximum bytes of the body of an exchange: it holds only a token and is read before authentication."""
Audited = Callable[[Actor, str], AbstractAsyncContextManager[object]]
"""Returns a context manager that records its block as an audited action of that name."""


class Page:
    """A static page: it fetches its data from the API, as any other client would."""

    def __init__(
        self,
        sessions: PageSessions,
        make_link: Callable[[Caller, str | None], str],
        public_url: str | None,
        *,
        audited: Audited,
        actor: Callable[[Request, PageSession], Actor],
        link_failed: Callable[[Request], Awaitable[None]],
    ) -> None:
        self._sessions, self._make_link = sessions, make_link
        self._audited, self._actor, self._link_failed = audited, actor, link_failed
        self._public_url = public_url.rstrip("/") if public_url else None
        html = (b"content-type", b"text/html; charset=utf-8")
        self._index = HttpResponse(200, (_FOLDER / "index.html").read_bytes(), (html, *_PAGE_HEADERS))
        self._assets = {
            file.name: HttpResponse(
                200, file.read_bytes(), ((b"content-type", _MEDIA_TYPES[file.suffix]), *_PAGE_HEADERS)
            )
            for file in sorted((_FOLDER / "assets").iterdir())
            if file.suffix in _MEDIA_TYPES
        }

    async def index(self, request: Request) -> HttpResponse:
        """The web page."""
        del request  # the page is the same, signed in or not: it contains no data and no secret
        return self._index

    async def asset(self, request: Request) -> HttpResponse:
        """Returns an asset of the web page."""
        found = self._assets.get(request.params["file"])
        if found is None:
            raise Refused("NOT_FOUND", "the page has no such asset", path="file")
        return found

    async def moved(self, request: Request) -> HttpResponse:
        """Redirects to the web page."""
        del request
        return HttpResponse(303, b"", ((b"location", b"/"), *_PAGE_HEADERS))

    async def link(self, request: Request) -> HttpResponse:
        """Creates a single-use sign-in link for the web page."""
        own = f"{request.scope.get('scheme', 'http')}://{request.header(b'host')}"
        async with self._audited(request.actor, "signin.link"):
            # The token is in the URL fragment, which browsers never send.
            token = self._make_link(request.caller, request.header(b"authorization"))
        return json_response({"url": f"{self._public_url or own}/#token={token}"})

    async def exchange(self, request: Request) -> HttpResponse:
        """Exchanges a sign-in link for a session: sets the cookie, returns the secret once."""
        if not from_own_page(request):
            message = "only the gateway's own page can exchange a link; open the link in a browser"
            raise Refused("ORIGIN_REFUSED", message, path="Origin")
        token = _given_token(await request.json(MAX_EXCHANGE_BYTES))
        session = self._sessions.sign_in.exchange(token)
        if session is None:
            await self._link_failed(request)
            message = "this link has been used or has expired; create another with `toolcrib link`"
            raise Refused("UNAUTHENTICATED", message, path="token")
        async with self._audited(self._actor(request, session), "signin.start"):
            replaced = self._sessions.find(request)
            if replaced is not None:
                self._sessions.sign_in.end(replaced.cookie)
        return json_response({"secret": session.secret}, 200, self._sessions.cookie(request, session))

    async def sign_out(self, request: Request) -> HttpResponse:
        """Ends the web page's session."""
        session = self._sessions.verified(request)
        if session is None:
            message = "there is no session of the web page to end; revoke a key with DELETE /api/keys"
            raise Refused("INVALID_REQUEST", message)
        async with self._audited(request.actor, "signin.end"):
            self._sessions.sign_in.end(session.cookie)
        return json_response({"signedOut": True}, 200, self._sessions.cookie(request, None))

    def routes(self) -> tuple[Route, ...]:
        """Return every route of this frontend."""
        html = {"text/html": {"schema": {"type": "string"}}}
        page = {"responses": {"200": {"description": "the page", "content": html}}}
        redirect = {"responses": {"303": {"description": "go to `/`"}}}
        link, exchange = "/api/signin", {**_request_body("LinkToken"), **_json_response("SignedIn")}
        signed_out: dict[str, object] = {
            "parameters": [_SECRET_PARAMETER],
            "security": [{"page": []}],
            **_json_response("SignedOut"),
        }
        made = _json_response("Link")
        return (
            Route("GET", "/", self.index, page, access="open"),
            Route("GET", "/assets/{file}", self.asset, access="open"),
            Route("GET", "/admin", self.moved, redirect, access="open"),
            # Without a cookie: a session could renew itself forever.
            Route("POST", link, self.link, made, action="signin.link", needs=ADMIN, cookie=False),
            Route("POST", f"{link}/exchange", self.exchange, exchange, access="open"),
            Route("POST", "/api/signout", self.sign_out, signed_out, action="signin.end"),
        )


def _given_token(body: Json) -> str:
    token = cast("dict[str, Json]", body).get("token") if isinstance(body, dict) else None
    if not isinstance(token, str):
        raise Refused("INVALID_REQUEST", 'send {"token": "…"}, the token of a link', path="token")
    return token


def _content(shape: str) -> dict[str, object]:
    return {"application/json": {"schema": {"$ref": f"#/components/schemas/{shape}"}}}


def _request_body(shape: str) -> dict[str, object]:
    return {"requestBody": {"required": True, "content": _content(shape)}}


def _json_response(shape: str) -> dict[str, object]:
    return {"responses": {"200": {"description": "done", "content": _content(shape)}}}
