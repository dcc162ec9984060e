"""Trusts the user header of a loopback client, such as an authenticating reverse proxy."""

from dataclasses import dataclass

from toolcrib.model import TRUST_HEADER, Caller, Credential


@dataclass(frozen=True)
class TrustHeaderIdentity:
    """Accepts `X-User-Id` from loopback without further checks."""

    def caller(self, credential: Credential) -> Caller | None:
        """Return the caller that the header names; None if it is missing, invalid, or not from loopback."""
        user = credential.user
        if not user or not credential.loopback or not user.isprintable():
            return None
        return Caller(id=f"user:{user}", user=user, key=TRUST_HEADER, contexts=frozenset())
