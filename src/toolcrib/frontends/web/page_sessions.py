"""Sessions of the web page: an HttpOnly cookie plus a secret in a header against CSRF; both are required."""

from toolcrib.errors import Refused
from toolcrib.http import Request
from toolcrib.identity import PageSession, SignIn

PLAIN, SECURE = "toolcrib_session", "__Host-toolcrib_session"
SECRET = b"x-crib-token"
_ATTRIBUTES = "; Path=/; HttpOnly; SameSite=Strict"


class PageSessions:
    """Authenticates requests of the page by cookie and secret."""

    def __init__(self, sign_in: SignIn, public_url: str | None) -> None:
        self.sign_in = sign_in
        scheme, _, rest = (public_url or "").partition("://")
        self._secure_host = rest.partition("/")[0].lower().encode() if scheme == "https" else None

    def find(self, request: Request) -> PageSession | None:
        """Return the live session of a request; None if the cookie or the secret is missing or wrong."""
        secret = request.header(SECRET)
        if secret is None or _from_another_page(request):
            return None
        cookie = request.cookie(SECURE if self._is_secure(request) else PLAIN)
        return None if cookie is None else self.sign_in.verify(cookie, secret)

    def verified(self, request: Request) -> PageSession | None:
        """Return the session of a request; None without a secret. Refuse a wrong secret or cookie.

        Browsers send a cookie to every port of a host, so other programs on that host can know it: without
        the secret it is ignored, and the request counts as one without a credential.
        """
        session = self.find(request)
        if session is None and SECRET in request.headers:
            message = "there is no such session of the page, or it has ended; sign in again"
            raise Refused("UNAUTHENTICATED", message, path="X-Crib-Token")
        return session

    def cookie(self, request: Request, session: PageSession | None) -> tuple[bytes, bytes]:
        """Return the Set-Cookie header that sets a session's cookie, or removes it."""
        secure = self._is_secure(request)
        name, more = (SECURE, "; Secure") if secure else (PLAIN, "")
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
