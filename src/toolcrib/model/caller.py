"""The authenticated caller of a request: identity, context, permissions."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from toolcrib.model.device import Device

AddressGiver = Literal["operator", "other"]
"""Kind of caller that supplied an address for the gateway to connect to."""
OPERATOR = "admin"
"""Credential name of the operator: the admin key, and page sessions signed in with it."""
EVERY_CONTEXT = "*"
"""Wildcard for all contexts in a key's list of contexts."""
NO_CONTEXT = ""
"""Context of a key without one, if `auth.default` is deny; no real context has this name."""
TRUST_HEADER = "trust_header"
"""Credential name of callers named by a trusted proxy; each is a separate user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """An authenticated credential. Loaded once and cached, so that the call path does no I/O for it."""

    id: str
    """Key of its rate limits, cache entries and usage counts."""
    context: str = "default"
    contexts: frozenset[str] | None = None
    """Contexts this caller may select besides its own; None means any."""
    permissions: frozenset[str] = frozenset()
    user: str | None = None
    """The user it acts for; None for a system caller."""
    key: str = ""
    """Name of the credential, for logs and audit."""
    act_as: bool = False
    operator: bool = False
    """Whether the credential is the admin key or a page session of it; no permission grants this."""
    language: str = "en"
    time_zone: str = "UTC"
    disabled: frozenset[str] = frozenset()
    """Canonical names of tools, or ids of whole sources, that this caller disabled."""
    session: str = ""
    """Id of its user's active session; empty if there is none."""
    apps: frozenset[str] = frozenset()
    """Packages of the apps its user has installed; empty without a session."""
    device: Device | None = None
    """Its user's connected device, or None."""
    stale: bool = False
    """Whether it is a page session with a sign-in too old for privileged actions."""
    retiring: float | None = None
    """When its secret expires, if the key was rotated since; None for the current secret."""
    principal: str = field(init=False, repr=False, compare=False)
    """Unit of fair sharing: its credential, or its own id if a trusted proxy names it."""

    def __post_init__(self) -> None:
        """Derive the principal once, as every call reads it several times."""
        key = self.key
        object.__setattr__(self, "principal", key if key and key != TRUST_HEADER else self.id)

    @property
    def giver(self) -> AddressGiver:
        """Recorded origin of the addresses that this caller supplies."""
        return "operator" if self.operator else "other"

    @property
    def narrowed(self) -> bool:
        """Whether it is limited to some contexts, and so may not administer the gateway as a whole."""
        return self.contexts is not None

    def may(self, permission: str) -> bool:
        """Whether this caller has a permission, directly or by a wildcard."""
        return permission in self.permissions or permits(self.permissions, permission)

    def may_enter(self, context: str) -> bool:
        """Whether this caller may select this context."""
        return context == self.context or self.contexts is None or context in self.contexts


@dataclass(frozen=True, slots=True, kw_only=True)
class Credential:
    """Unverified credentials of a request."""

    authorization: str | None = None
    """The `Authorization` header."""
    user: str | None = None
    """The user that the request claims to act for."""
    session: str | None = None
    """Cookie of the page session, if the request also carried the session's secret."""
    loopback: bool = False
    """Whether the request came from this machine."""


def permits(held: Iterable[str], wanted: str) -> bool:
    """Whether `held` grants `wanted`: by name, `resource:*` or `*`; `crib:admin` grants all of `crib:`."""
    resource, colon, _ = wanted.partition(":")
    # `*` has no colon: otherwise `*:*`, which must grant nothing, would grant everything.
    granting = ("*", wanted, f"{resource}{colon}*", "crib:admin" if resource == "crib" else wanted)
    return any(each in granting for each in held)
