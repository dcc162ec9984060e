"""Sign-in to the web page: one-time links, and sessions that require a cookie and a secret."""

from collections.abc import Callable
from dataclasses import dataclass, field
from hmac import compare_digest
from secrets import token_urlsafe

from toolcrib.clock import elapsed_seconds
from toolcrib.errors import Refused
from toolcrib.model import Caller

# Seconds; lifetime of an unused link.
LINK_SECONDS = 10 * 60.0
FRESH_SECONDS = 15 * 60.0
"""Seconds after a sign-in during which a session may create keys, apps and servers."""
# Seconds; idle timeout of a session.
IDLE_SECONDS = 30 * 60.0
# Seconds; maximum lifetime of a session.
SESSION_SECONDS = 12 * 3600.0
MAX_LINKS = MAX_SESSIONS = 1000
"""Creating a link evicts the oldest beyond these; only credentials with `crib:admin` can create any."""
# They share the prefix of API keys: the redactor masks such values by their format, anywhere.
_LINK_PREFIX, _COOKIE_PREFIX, _SECRET_PREFIX = "tc_link_", "tc_page_", "tc_secret_"


@dataclass(slots=True, kw_only=True)
class PageSession:
    """One sign-in. The browser sends the cookie automatically; the page's script adds the secret (CSRF)."""

    cookie: str = field(repr=False)
    secret: str = field(repr=False)
    maker: str | None = field(repr=False)
    """Digest of the key that created the link; None for the admin key."""
    signed_in: float
    last_used: float

    def is_live(self, now: float) -> bool:
        """Whether neither the idle timeout nor the maximum lifetime has passed."""
        return now <= self.last_used + IDLE_SECONDS and now <= self.signed_in + SESSION_SECONDS


class SignIn:
    """Links and sessions of operators, in memory: a restart ends them all."""

    def __init__(self, now: Callable[[], float] = elapsed_seconds) -> None:
        self.now = now
        self._links: dict[str, tuple[float, str | None]] = {}
        self._sessions: dict[str, PageSession] = {}

    def make_link(self, maker: str | None = None) -> str:
        """Create a one-time link for the key with this digest; return its token."""
        self._remove_expired()
        token = _LINK_PREFIX + token_urlsafe(32)
        self._links[token] = (self.now() + LINK_SECONDS, maker)
        return token

    def exchange(self, token: str) -> PageSession | None:
        """Consume a link; return the session it opens, or None if it is unknown, used or expired."""
        expires, maker = self._links.pop(token, (-1.0, None))
        now = self.now()
        if expires < now:
            return None
        session = PageSession(
            cookie=_COOKIE_PREFIX + token_urlsafe(32),
            secret=_SECRET_PREFIX + token_urlsafe(32),
            maker=maker,
            signed_in=now,
            last_used=now,
        )
        self._sessions[session.cookie] = session
        return session

    def session(self, cookie: str) -> PageSession | None:
        """Return the live session of a cookie. The cookie alone does not authenticate: see `verify`."""
        held = self._sessions.get(cookie)
        return held if held is not None and held.is_live(self.now()) else None

    def verify(self, cookie: str, secret: str) -> PageSession | None:
        """Return the session with this cookie and secret, and restart its idle timeout."""
        held = self.session(cookie)
        if held is None or not compare_digest(held.secret.encode(), secret.encode()):
            return None
        held.last_used = self.now()
        return held

    def is_fresh(self, session: PageSession) -> bool:
        """Whether the sign-in is recent enough for privileged operations."""
        return self.now() <= session.signed_in + FRESH_SECONDS

    def end(self, cookie: str) -> None:
        """End the session, in every tab."""
        self._sessions.pop(cookie, None)

    def _remove_expired(self) -> None:
        now = self.now()
        self._links = {
            token: link for token, link in list(self._links.items())[1 - MAX_LINKS :] if link[0] >= now
        }
        live = {cookie: held for cookie, held in self._sessions.items() if held.is_live(now)}
        self._sessions = dict(list(live.items())[1 - MAX_SESSIONS :])


def require_fresh(caller: Caller) -> None:
    """Refuse a page session if its sign-in is too old for privileged operations."""
    if caller.stale:
        minutes = round(FRESH_SECONDS / 60)
        message = (
            f"this needs a sign-in of the last {minutes} minutes; "
            "make a link with `toolcrib link`, open it in this browser and try again"
        )
        details = {"freshSignIn": True, "maxAgeSeconds": FRESH_SECONDS}
        raise Refused("UNAUTHENTICATED", message, path="X-Crib-Token", details=details)
