"""The user named in a header is believed; for loopback behind a proxy that has checked it."""

from dataclasses import dataclass

from toolcrib.model import TRUST_HEADER, Caller, Credential


@dataclass(frozen=True)
class TrustHeaderIdentity:
    """Takes `X-User-Id` at its word, from this machine only."""

    def caller(self, credential: Credential) -> Caller | None:
        """Return the caller the header names, or None where there is none to believe."""
        user = credential.user
        if not user or not credential.loopback or not user.isprintable():
            return None
        return Caller(id=f"user:{user}", user=user, key=TRUST_HEADER, contexts=frozenset())
