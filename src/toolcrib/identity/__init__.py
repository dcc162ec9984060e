"""Authentication: resolves a credential to a Caller, in memory, so that calls do not wait for the store."""

from dataclasses import replace
from functools import lru_cache, partial

from toolcrib.errors import Refused
from toolcrib.identity.failed_logins import FailedLogins, Failure, Untried
from toolcrib.identity.keys import KeyRing, digest, is_generated, new_key
from toolcrib.identity.local_callers import AnonymousIdentity, TrustHeaderIdentity, admin_key, derive
from toolcrib.identity.sign_in import PageSession, SignIn, require_fresh
from toolcrib.identity.users import UserCache
from toolcrib.model import OPERATOR, Caller, Credential

__all__ = [
    "ADMIN",
    "AnonymousIdentity",
    "FailedLogins",
    "Failure",
    "Identity",
    "KeyRing",
    "PageSession",
    "SignIn",
    "TrustHeaderIdentity",
    "Untried",
    "UserCache",
    "admin_key",
    "check_user",
    "derive",
    "digest",
    "new_key",
    "require_fresh",
    "require_whole",
]

ADMIN = Caller(id="admin", key=OPERATOR, permissions=frozenset({"*"}), act_as=True, operator=True)
# Characters of a user id.
MAX_USER_CHARS = 200
# Entries of each cache of `Authorization` headers; a full cache is cleared.
_MAX_CACHED_HEADERS = 4096


class Identity:
    """Authenticates API keys, the admin key, page sessions, and what the configured mode adds."""

    def __init__(
        self,
        ring: KeyRing,
        admin: str,
        *,
        people: UserCache | None = None,
        trust_header: TrustHeaderIdentity | None = None,
        anonymous: AnonymousIdentity | None = None,
    ) -> None:
        self.ring, self.sign_in = ring, SignIn()
        self.people = people or UserCache(_nobody)
        """Cache of the users that callers act for."""
        self._admin, self._derive = digest(admin), partial(derive, admin)
        self._trust_header, self._anonymous = trust_header, anonymous
        self._accepted: set[bytes] = set()

    def secret(self, purpose: str) -> bytes:
        """Derive the secret for a purpose; all gateways with the same admin key derive the same one."""
        return self._derive(purpose)

    def caller(self, credential: Credential) -> Caller:
        """Authenticate a credential; raise UNAUTHENTICATED if that fails."""
        found = self._found(credential)
        if found is None:
            raise Refused("UNAUTHENTICATED", "send an API key in the header `Authorization: Bearer KEY`")
        return found if credential.user is None else self.acting_for(found, credential.user)

    def bearer(self, authorization: bytes) -> Caller:
        """Authenticate an `Authorization` header; results are cached, so a repeated one is not hashed."""
        seen = self.ring.seen
        caller = seen.get(authorization)
        if caller is None:
            caller = self._by_key(authorization.decode("latin-1"))
            if len(seen) >= _MAX_CACHED_HEADERS:
                seen.clear()
            if len(self._accepted) >= _MAX_CACHED_HEADERS:
                self._accepted.clear()
            seen[authorization] = caller
            self._accepted.add(authorization)
        return caller

    def may_be_a_guess(self, authorization: bytes) -> bool:
        """Whether a header has not been accepted before and could be guessed: it is not a generated key."""
        # Separate from `seen`, which every change of any key empties.
        return authorization not in self._accepted and not is_generated(authorization)

    def _found(self, credential: Credential) -> Caller | None:
        if credential.authorization is not None:
            return self._by_key(credential.authorization)
        session = None if credential.session is None else self.sign_in.session(credential.session)
        if session is not None:
            return self.session_caller(session)
        if self._trust_header is not None:
            return self._trust_header.caller(credential)
        if self._anonymous is not None and credential.user is None:
            return self._anonymous.caller(credential)
        return None

    def make_link(self, caller: Caller, authorization: str | None = None) -> str:
        """Return the token of a sign-in link; its session acts as the caller's key while that is valid.

        After a rotation two secrets of a key are valid; the session ends with the one in `authorization`.
        """
        if caller.key == ADMIN.key:
            return self.sign_in.make_link()
        shown = None if authorization is None else _digest_in(authorization)
        maker = self.ring.digest_of(caller.key) if shown is None else shown
        if maker is None or self.ring.caller(maker) is None:
            raise Refused("UNAUTHENTICATED", "this API key is no longer valid; use another one")
        return self.sign_in.make_link(maker)

    def session_caller(self, session: PageSession) -> Caller | None:
        """Return the caller of a page session; if its key is no longer valid, end it and return None."""
        caller = ADMIN if session.maker is None else self.ring.caller(session.maker)
        if caller is None:
            # The key that created the link was revoked or rotated, or has expired.
            self.sign_in.end(session.cookie)
            return None
        return caller if self.sign_in.is_fresh(session) else _stale(caller)

    def _by_key(self, authorization: str) -> Caller:
        scheme, _, key = authorization.partition(" ")
        if scheme.lower() != "bearer" or not key:
            raise Refused("UNAUTHENTICATED", "the header must read `Authorization: Bearer KEY`")
        found = digest(key.strip())
        if found == self._admin:
            return ADMIN
        caller = self.ring.caller(found)
        if caller is None:
            # Only a client with the key itself learns that it has expired.
            expired = self.ring.has_expired(found)
            what = "has expired; ask for another one" if expired else "is unknown or has been revoked"
            raise Refused("UNAUTHENTICATED", f"this API key {what}")
        return caller

    def ended_name(self, authorization: str) -> str:
        """Return the name of the revoked or expired key in an `Authorization` header; empty for any other."""
        return self.ring.ended_name(_digest_in(authorization))

    def acting_for(self, caller: Caller, user: str) -> Caller:
        """Return the caller acting for a user; raise SCOPE_DENIED if it may not."""
        if user == caller.user:
            return caller
        if not caller.act_as:
            message = "this key may not act for others; name no user, or use a key that may"
            raise Refused("SCOPE_DENIED", message, path="user")
        check_user(user, "user")
        return replace(caller, id=f"user:{user}", user=user)


def _digest_in(authorization: str) -> str:
    return digest(authorization.partition(" ")[2].strip())


@lru_cache(maxsize=64)
def _stale(caller: Caller) -> Caller:
    # Cached: per-caller caches of the gateway are keyed by the identity of the object.
    return replace(caller, stale=True)


def check_user(id: str, path: str) -> None:
    """Raise INVALID_REQUEST if this cannot be a user id."""
    if not id or len(id) > MAX_USER_CHARS or not id.isprintable():
        message = f"a user's id has 1 to {MAX_USER_CHARS} printable characters"
        raise Refused("INVALID_REQUEST", message, path=path)


def require_whole(caller: Caller) -> None:
    """Raise SCOPE_DENIED for a caller restricted to contexts: the operation concerns the whole gateway."""
    if caller.narrowed:
        message = "this concerns the whole gateway, and your key is confined to contexts; use one that is not"
        raise Refused("SCOPE_DENIED", message)


async def _nobody(user: str) -> None:
    """Return None: without a user store, no user is known."""
    del user
