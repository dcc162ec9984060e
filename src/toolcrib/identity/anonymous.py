"""Anonymous callers: requests without a credential from loopback get one context and no permissions."""

from dataclasses import dataclass

from toolcrib.model import Caller, Credential


@dataclass(frozen=True)
class AnonymousIdentity:
    """The context that the operator opens to loopback clients without a credential."""

    context: str

    def caller(self, credential: Credential) -> Caller | None:
        """Return the anonymous caller; None unless the request comes from loopback."""
        if not credential.loopback:
            return None
        return Caller(id="anonymous", key="anonymous", context=self.context, contexts=frozenset())
