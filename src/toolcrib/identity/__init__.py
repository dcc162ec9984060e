"""From a credential to a Caller: in memory, so that no call waits to know who is asking."""

from dataclasses import replace
from functools import partial

from toolcrib.errors import Refused
from toolcrib.identity.admin import admin_key, derive
from toolcrib.identity.anonymous import Anonymous
from toolcrib.identity.keys import KeyRing, digest, new_key
from toolcrib.identity.people import People
from toolcrib.identity.sign_in import SignIn
from toolcrib.identity.trust_header import TrustHeader
from toolcrib.model import Caller, Credential

__all__ = [
    "Anonymous",
    "Identity",
    "KeyRing",
    "People",
    "SignIn",
    "TrustHeader",
    "admin_key",
    "check_user",
    "derive",
    "digest",
    "new_key",
]

ADMIN = Caller(id="admin", key="admin", permissions=frozenset({"*"}), act_as=True)
LONGEST_USER = 200
_MOST_SEEN = 4096


class Identity:
    """Believes an API key or the admin key, then what the chosen mode adds, and nothing else."""

    def __init__(
        self,
        ring: KeyRing,
        admin: str,
        *,
        people: People | None = None,
        trust_header: TrustHeader | None = None,
        anonymous: Anonymous | None = None,
    ) -> None:
        self.ring, self.sign_in = ring, SignIn()
        self.people = people or People(_nobody)
        """What is known of the users that callers act for."""
        self._admin, self._derive = digest(admin), partial(derive, admin)
        self._trust_header, self._anonymous = trust_header, anonymous

    def secret(self, purpose: str) -> bytes:
        """Return a key for one purpose, which every gateway with the same admin key has."""
        return self._derive(purpose)

    def caller(self, credential: Credential) -> Caller:
        """Return who this is; refuse whoever cannot show it."""
        found = self._found(credential)
        if found is None:
            raise Refused("UNAUTHENTICATED", "send an API key in the header `Authorization: Bearer KEY`")
        return found if credential.user is None else self.acting_for(found, credential.user)

    def bearer(self, authorization: bytes) -> Caller:
        """Return who an `Authorization` header stands for; one that is used again is not reckoned again."""
        seen = self.ring.seen
        caller = seen.get(authorization)
        if caller is None:
            caller = self._by_key(authorization.decode("latin-1"))
            if len(seen) >= _MOST_SEEN:
                seen.clear()
            seen[authorization] = caller
        return caller

    def _found(self, credential: Credential) -> Caller | None:
        if credential.authorization is not None:
            return self._by_key(credential.authorization)
        if credential.session is not None and self.sign_in.knows(credential.session):
            return ADMIN
        if self._trust_header is not None:
            return self._trust_header.caller(credential)
        if self._anonymous is not None and credential.user is None:
            return self._anonymous.caller(credential)
        return None

    def _by_key(self, authorization: str) -> Caller:
        scheme, _, key = authorization.partition(" ")
        if scheme.lower() != "bearer" or not key:
            raise Refused("UNAUTHENTICATED", "the header must read `Authorization: Bearer KEY`")
        found = digest(key.strip())
        if found == self._admin:
            return ADMIN
        caller = self.ring.caller(found)
        if caller is None:
            raise Refused("UNAUTHENTICATED", "this API key is unknown or has been revoked")
        return caller

    def acting_for(self, caller: Caller, user: str) -> Caller:
        """Return the caller as it acts for a user; one that may not is refused."""
        if user == caller.user:
            return caller
        if not caller.act_as:
            message = "this key may not act for others; name no user, or use a key that may"
            raise Refused("SCOPE_DENIED", message, path="user")
        check_user(user, "user")
        return replace(caller, id=f"user:{user}", user=user)


def check_user(id: str, path: str) -> None:
    """Refuse what cannot be the id of a user."""
    if not id or len(id) > LONGEST_USER or not id.isprintable():
        message = f"a user's id has 1 to {LONGEST_USER} printable characters"
        raise Refused("INVALID_REQUEST", message, path=path)


async def _nobody(user: str) -> None:
    """Where no users are kept, nothing is known of them."""
    del user
