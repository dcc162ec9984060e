"""Serves the page, its script and style, and signs its reader in and out."""

from pathlib import Path

from toolcrib.asgi import Answer, Request, Route, json_answer
from toolcrib.asgi.answer import SAFE, Headers
from toolcrib.errors import Refused
from toolcrib.faces.page.session import Sessions

_FOLDER = Path(__file__).parent
_POLICY = b"default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
_HARDENED: Headers = (
    *SAFE,
    (b"content-security-policy", _POLICY),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
_TYPES = {
    ".css": b"text/css; charset=utf-8",
    ".js": b"text/javascript; charset=utf-8",
    ".svg": b"image/svg+xml",
}
_PLACE = b"{{token}}"
ADMIN = "crib:admin"


class Page:
    """One page. What it shows it asks the API for, as any other client would."""

    def __init__(self, sessions: Sessions, public_url: str | None) -> None:
        self._sessions = sessions
        self._public_url = public_url.rstrip("/") if public_url else None
        self._before, _, self._after = (_FOLDER / "index.html").read_bytes().partition(_PLACE)
        self._assets = {
            file.name: Answer(200, file.read_bytes(), ((b"content-type", _TYPES[file.suffix]), *_HARDENED))
            for file in sorted((_FOLDER / "assets").iterdir())
            if file.suffix in _TYPES
        }

    async def index(self, request: Request) -> Answer:
        """Show the page; a one-time link becomes a session first, and leaves the address bar."""
        token = dict(request.pairs()).get("token")
        if token is not None and request.method == "GET":
            return self._enter(request, token)
        session = self._sessions.held(request)
        ticket = self._sessions.sign_in.csrf(session) if session is not None else None
        body = self._before + (ticket or "").encode() + self._after
        return Answer(200, body, ((b"content-type", b"text/html; charset=utf-8"), *_HARDENED))

    def _enter(self, request: Request, token: str) -> Answer:
        session = self._sessions.sign_in.exchange(token)
        if session is None:
            # A reader who is signed in already may well open the same link again.
            place = b"/" if self._sessions.held(request) is not None else b"/#expired"
            return Answer(303, b"", ((b"location", place), *_HARDENED))
        return Answer(303, b"", ((b"location", b"/"), self._sessions.cookie(request, session), *_HARDENED))

    async def asset(self, request: Request) -> Answer:
        """Give the page its parts."""
        found = self._assets.get(request.params["file"])
        if found is None:
            raise Refused("NOT_FOUND", "the page has no such part", path="file")
        return found

    async def moved(self, request: Request) -> Answer:
        """Lead to where the page is."""
        del request
        return Answer(303, b"", ((b"location", b"/"), *_HARDENED))

    async def link(self, request: Request) -> Answer:
        """Make a link that signs one reader in, once."""
        own = f"{request.scope.get('scheme', 'http')}://{request.header(b'host')}"
        return json_answer({"url": f"{self._public_url or own}/?token={self._sessions.sign_in.token()}"})

    async def sign_out(self, request: Request) -> Answer:
        """End the session."""
        session = self._sessions.vouched(request)
        if session is None:
            message = "there is no session of the page to end; a key is ended by DELETE /api/keys"
            raise Refused("INVALID_REQUEST", message)
        self._sessions.sign_in.end(session)
        return json_answer({"signedOut": True}, 200, self._sessions.cookie(request, None))

    def routes(self) -> tuple[Route, ...]:
        """Return every route of this face."""
        return (*self._shown(), *self._signing())

    def _shown(self) -> tuple[Route, ...]:
        html = {"text/html": {"schema": {"type": "string"}}}
        return (
            Route(
                method="GET",
                path="/",
                handler=self.index,
                summary="The web page.",
                access="open",
                document={"responses": {"200": {"description": "the page", "content": html}}},
            ),
            Route(
                method="GET",
                path="/assets/{file}",
                handler=self.asset,
                summary="The page's script, style and picture.",
                access="open",
            ),
            Route(
                method="GET",
                path="/admin",
                handler=self.moved,
                summary="Leads to the web page.",
                access="open",
                document={"responses": {"303": {"description": "go to `/`"}}},
            ),
        )

    def _signing(self) -> tuple[Route, ...]:
        return (
            Route(
                method="POST",
                path="/api/signin",
                handler=self.link,
                summary="Makes a link that signs one reader of the web page in, once.",
                needs=ADMIN,
                document=_json("Link"),
            ),
            Route(
                method="POST",
                path="/api/signout",
                handler=self.sign_out,
                summary="Ends the web page's session.",
                document=_json("SignedOut"),
            ),
        )


def _json(shape: str) -> dict[str, object]:
    content = {"application/json": {"schema": {"$ref": f"#/components/schemas/{shape}"}}}
    return {"responses": {"200": {"description": "done", "content": content}}}
