"""Who is asking, in which context, and what they may do."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from toolcrib.model.device import Device

AddressGiver = Literal["operator", "other"]
"""Whose key gave the gateway an address to connect to."""
OPERATOR = "admin"
"""The name in place of a key's for the operator: the admin key, and the page signed in with it."""
EVERY_CONTEXT = "*"
"""Stands for all contexts where those of a key are listed."""
NO_CONTEXT = ""
"""Where a key is that was given no context, if `auth.default` is deny: no context has this name."""
TRUST_HEADER = "trust_header"
"""The name in place of a key's for callers that a trusted proxy names, each of them a user of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """A credential, understood. Loaded once and kept, so the call path does no I/O for it."""

    id: str
    """Whom limits, cache and usage count for."""
    context: str = "default"
    contexts: frozenset[str] | None = None
    """The contexts this caller may ask for besides its own; None means any."""
    permissions: frozenset[str] = frozenset()
    user: str | None = None
    """The user it acts for; None for a system caller."""
    key: str = ""
    """The name of the credential, for the record."""
    act_as: bool = False
    operator: bool = False
    """Whether the credential is the admin key, or the page signed in with it; permissions never make one."""
    language: str = "en"
    time_zone: str = "UTC"
    disabled: frozenset[str] = frozenset()
    """Canonical names of tools, or ids of whole sources, this caller has switched off."""
    session: str = ""
    """The id of its user's active session; empty where there is none."""
    apps: frozenset[str] = frozenset()
    """The apps its user has installed, by package; empty as long as there is no session."""
    device: Device | None = None
    """What its user wears; None where nothing is connected."""
    stale: bool = False
    """Whether it is a session of the web page whose sign-in is too old for what hands out power."""
    retiring: float | None = None
    """When the secret it showed ends, if its key has got another one since; None for the newest secret."""
    principal: str = field(init=False, repr=False, compare=False)
    """Whom shared limits are divided by: its credential, or itself where a trusted proxy names it."""

    def __post_init__(self) -> None:
        """Derive the principal once: every call asks for it several times."""
        key = self.key
        object.__setattr__(self, "principal", key if key and key != TRUST_HEADER else self.id)

    @property
    def giver(self) -> AddressGiver:
        """How the addresses that this caller gives are recorded."""
        return "operator" if self.operator else "other"

    @property
    def narrowed(self) -> bool:
        """Whether it is confined to some contexts, and so has no say about the gateway as a whole."""
        return self.contexts is not None

    def may(self, permission: str) -> bool:
        """Whether this caller holds a permission, directly or by a wildcard."""
        return permission in self.permissions or permits(self.permissions, permission)

    def may_enter(self, context: str) -> bool:
        """Whether this caller may ask for another context than its own."""
        return context == self.context or self.contexts is None or context in self.contexts


@dataclass(frozen=True, slots=True, kw_only=True)
class Credential:
    """What a request says of who it is from, before anyone has believed it."""

    authorization: str | None = None
    """The `Authorization` header."""
    user: str | None = None
    """The user it claims to act for."""
    session: str | None = None
    """The cookie of the web page's session, where the request also carried the session's secret."""
    loopback: bool = False
    """Whether it came from this machine."""


def permits(held: Iterable[str], wanted: str) -> bool:
    """Say whether `held` grants `wanted`: by name, `resource:*` or `*`, or by `crib:admin` what is ours."""
    resource, colon, _ = wanted.partition(":")
    # `*` has no colon: otherwise `*:*`, which opens nothing, would grant everything.
    granting = ("*", wanted, f"{resource}{colon}*", "crib:admin" if resource == "crib" else wanted)
    return any(each in granting for each in held)
