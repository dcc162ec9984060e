"""The web page's way in: a one-time link becomes a session, which lives in a cookie."""

from collections.abc import Callable
from hmac import compare_digest
from secrets import token_urlsafe
from time import monotonic

_LINK_SECONDS = 24 * 3600.0
_SESSION_SECONDS = 12 * 3600.0
_MOST = 1000


class SignIn:
    """Links and sessions of operators, in memory: a restart signs everyone out."""

    def __init__(self, now: Callable[[], float] = monotonic) -> None:
        self._now = now
        self._links: dict[str, float] = {}
        self._sessions: dict[str, tuple[float, str]] = {}

    def token(self) -> str:
        """Make the token of a link that works once."""
        self._sweep()
        token = token_urlsafe(32)
        self._links[token] = self._now() + _LINK_SECONDS
        return token

    def exchange(self, token: str) -> str | None:
        """Use a link up; return the session it opens, or None if it is unknown, used or too old."""
        until = self._links.pop(token, None)
        if until is None or until < self._now():
            return None
        session = token_urlsafe(32)
        self._sessions[session] = (self._now() + _SESSION_SECONDS, token_urlsafe(32))
        return session

    def knows(self, session: str) -> bool:
        """Whether a session is live."""
        held = self._sessions.get(session)
        return held is not None and held[0] >= self._now()

    def csrf(self, session: str) -> str | None:
        """Return the token the page's own unsafe requests must carry."""
        return self._sessions[session][1] if self.knows(session) else None

    def vouches(self, session: str, token: str | None) -> bool:
        """Whether an unsafe request carries its session's token."""
        expected = self.csrf(session)
        return (
            expected is not None and token is not None and compare_digest(expected.encode(), token.encode())
        )

    def end(self, session: str) -> None:
        """Sign out."""
        self._sessions.pop(session, None)

    def _sweep(self) -> None:
        now = self._now()
        self._links = {token: until for token, until in list(self._links.items())[-_MOST:] if until >= now}
        self._sessions = {key: held for key, held in list(self._sessions.items())[-_MOST:] if held[0] >= now}
