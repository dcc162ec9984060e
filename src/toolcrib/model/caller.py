"""Who calls: caller, device and acting administrator."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from toolcrib.model.value import JsonObject

# --- Devices and their capabilities, and the hardware requirements of apps ---

HARDWARE = ("CAMERA", "DISPLAY", "MICROPHONE", "SPEAKER", "IMU", "BUTTON", "LIGHT", "WIFI")
"""All known kinds of hardware; no device has any other kind."""

Level = Literal["REQUIRED", "OPTIONAL"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """One kind of hardware that an app requires or can use."""

    type: str
    level: Level = "REQUIRED"
    description: str = ""

    def as_json(self) -> dict[str, Any]:
        """Serialize in the format of apps."""
        payload: dict[str, Any] = {"type": self.type, "level": self.level}
        return {**payload, "description": self.description} if self.description else payload


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A user's device: its kinds of hardware, and its full capabilities."""

    model: str = ""
    has: frozenset[str] = frozenset()
    """Kinds of `HARDWARE`."""
    capabilities: JsonObject = field(default_factory=dict[str, Any], hash=False, repr=False)
    """All capabilities, as sent to apps: `hasCamera`, `camera`, and so on."""


# --- The authenticated caller of a request: identity, context, permissions ---

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


# --- The actor of an administrative action, and where it comes from, as in an audit record ---

ActorKind = Literal[
    "admin",
    "key",
    "user",
    "anonymous",
    "unknown",
    "command_line",
    "library",
    "signal",
    "file_watch",
    "system",
]
"""`user` is a user named by a trusted header (mode `trust_header`), `key` any API key, also a user's."""

_KINDS: dict[str, ActorKind] = {
    "admin": "admin",
    "anonymous": "anonymous",
    "trust_header": "user",
    "local": "library",
}
"""Kinds of callers without an API key, by the name of their credential."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """A caller as an audit record names it."""

    kind: ActorKind
    name: str
    """Name of the key, or the operating system's user on the command line; empty if there is none."""
    caller: Caller
    """The caller that provides the permissions and ownership for authorizing the action."""
    frontend: str
    """`rest`, `page`, `mcp`, `apps`, `cli`, `library` or `gateway`."""
    address: str = ""
    """The client's network address; empty for an action from this machine."""

    @classmethod
    def of(cls, caller: Caller, frontend: str, address: str = "") -> "Actor":
        """Return the actor for an authenticated caller."""
        kind = _KINDS.get(caller.key, "key")
        name = caller.user or "" if kind == "user" else caller.key
        return cls(kind=kind, name=name, caller=caller, frontend=frontend, address=address)

    @classmethod
    def unknown(cls, frontend: str, address: str, name: str = "") -> "Actor":
        """Return the actor for a failed authentication; `name` is the key's, if known."""
        caller = Caller(id="unknown", contexts=frozenset())
        return cls(kind="unknown", name=name, caller=caller, frontend=frontend, address=address)

    @property
    def user(self) -> str | None:
        """The user that the actor acts for."""
        return self.caller.user

    @property
    def label(self) -> str:
        """Kind and name in one word, such as `key:ci`; only the kind if the name adds nothing."""
        return self.kind if self.name in ("", self.kind) else f"{self.kind}:{self.name}"


def _program(kind: ActorKind, frontend: str) -> Actor:
    everything = Caller(id="local", key="local", permissions=frozenset({"*"}), operator=True)
    return Actor(kind=kind, name="", caller=everything, frontend=frontend)


LIBRARY = _program("library", "library")
"""The program that embeds the gateway and calls its admin API directly."""
SIGNAL = _program("signal", "gateway")
"""The sender of a SIGHUP to this process."""
FILE_WATCH = _program("file_watch", "gateway")
"""A changed config file."""
SYSTEM = _program("system", "gateway")
"""The gateway itself."""
