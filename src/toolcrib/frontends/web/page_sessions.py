"""The page's session takes both: a cookie no script reads, and a secret no other origin reads."""

from toolcrib.errors import Refused
from toolcrib.http import Request
from toolcrib.identity import PageSession, SignIn

PLAIN, SECURE = "toolcrib_session", "__Host-toolcrib_session"
SECRET = b"x-crib-token"
_ATTRIBUTES = "; Path=/; HttpOnly; SameSite=Strict"


class PageSessions:
    """Tells the page's own requests from all others."""

    def __init__(self, sign_in: SignIn, public_url: str | None) -> None:
        self.sign_in = sign_in
        scheme, _, rest = (public_url or "").partition("://")
        self._secure_host = rest.partition("/")[0].lower().encode() if scheme == "https" else None

    def find(self, request: Request) -> PageSession | None:
        """Return the live session of a request; None where either half is missing or wrong."""
        secret = request.header(SECRET)
        if secret is None or _from_another_page(request):
            return None
        cookie = request.cookie(SECURE if self._is_secure(request) else PLAIN)
        return None if cookie is None else self.sign_in.verify(cookie, secret)

    def verified(self, request: Request) -> PageSession | None:
        """Return the session whose cookie and secret a request of the page carries.

        Browsers send a cookie to every port of a host, so that other programs there know it: without the
        secret it counts for nothing, and the request is one without a credential.
        """
        session = self.find(request)
        if session is None and SECRET in request.headers:
            message = "there is no such session of the page, or it has ended; sign in again"
            raise Refused("UNAUTHENTICATED", message, path="X-Crib-Token")
        return session

    def cookie(self, request: Request, session: PageSession | None) -> tuple[bytes, bytes]:
        """Return the header that gives a browser the cookie of a session, or takes it away."""
        secure = self._is_secure(request)
        name, more = (SECURE, "; Secure") if secure else (PLAIN, "")
        value = f"{name}={session.cookie}" if session is not None else f"{name}=; Max-Age=0"
        return b"set-cookie", f"{value}{_ATTRIBUTES}{more}".encode()

    def _is_secure(self, request: Request) -> bool:
        host = request.headers.get(b"host", b"").lower()
        return request.scope.get("scheme") == "https" or host == self._secure_host


def from_own_page(request: Request) -> bool:
    """Whether a page of this gateway sent this. The guard has refused every other Origin already."""
    if b"sec-fetch-site" in request.headers:
        return not _from_another_page(request)
    return b"origin" in request.headers


def _from_another_page(request: Request) -> bool:
    """Whether the browser says that another page sent this.

    Over plain HTTP to another machine browsers say nothing, nor do their GETs have an Origin. It takes the
    secret all the same, in a header that another origin may send only if we allow it, and we never do.
    """
    return request.headers.get(b"sec-fetch-site", b"same-origin") != b"same-origin"
