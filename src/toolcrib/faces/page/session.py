"""The page's session: a cookie that no script reads and no other site can use."""

from toolcrib.asgi import Request
from toolcrib.errors import Refused
from toolcrib.identity import SignIn

PLAIN, SECURE = "toolcrib_session", "__Host-toolcrib_session"
TOKEN = b"x-crib-token"
_SAFE_METHODS = frozenset({"GET", "HEAD"})
_ATTRIBUTES = "; Path=/; HttpOnly; SameSite=Strict"


class Sessions:
    """Tells the page's own requests from everybody else's."""

    def __init__(self, sign_in: SignIn, public_url: str | None) -> None:
        self.sign_in = sign_in
        scheme, _, rest = (public_url or "").partition("://")
        self._secure_host = rest.partition("/")[0].lower().encode() if scheme == "https" else None

    def _is_secure(self, request: Request) -> bool:
        host = request.headers.get(b"host", b"").lower()
        return request.scope.get("scheme") == "https" or host == self._secure_host

    def held(self, request: Request) -> str | None:
        """Return the live session a browser holds, whatever it asks for."""
        session = request.cookie(SECURE if self._is_secure(request) else PLAIN)
        return session if session is not None and self.sign_in.knows(session) else None

    def vouched(self, request: Request) -> str | None:
        """Return the session as a credential, for the page's own requests alone; changes need its token."""
        if b"cookie" not in request.headers or not _from_here(request):
            return None
        session = self.held(request)
        if session is None or request.method in _SAFE_METHODS:
            return session
        if not self.sign_in.vouches(session, request.header(TOKEN)):
            message = "the header X-Crib-Token is missing or not this session's; load the page again"
            raise Refused("ORIGIN_REFUSED", message, path="X-Crib-Token")
        return session

    def cookie(self, request: Request, session: str | None) -> tuple[bytes, bytes]:
        """Return the header that gives a browser its session, or takes it away."""
        secure = self._is_secure(request)
        name, more = (SECURE, "; Secure") if secure else (PLAIN, "")
        value = f"{name}={session}" if session is not None else f"{name}=; Max-Age=0"
        return b"set-cookie", f"{value}{_ATTRIBUTES}{more}".encode()


def _from_here(request: Request) -> bool:
    """Whether a page of ours sent this. An Origin that is not ours has not come past the guard."""
    site = request.headers.get(b"sec-fetch-site")
    return site == b"same-origin" if site is not None else b"origin" in request.headers
