"""Callers without a credential, from this machine only, get one context and no permissions."""

from dataclasses import dataclass

from toolcrib.model import Caller, Credential


@dataclass(frozen=True)
class AnonymousIdentity:
    """What the operator opens to whoever is on this machine."""

    context: str

    def caller(self, credential: Credential) -> Caller | None:
        """Return the anonymous caller, or None for someone from elsewhere."""
        if not credential.loopback:
            return None
        return Caller(id="anonymous", key="anonymous", context=self.context, contexts=frozenset())
