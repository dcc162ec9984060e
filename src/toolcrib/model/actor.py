"""The actor of an administrative action, and where it comes from, as in an audit record."""

from dataclasses import dataclass
from typing import Literal

from toolcrib.model.caller import Caller

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
        nobody = Caller(id="unknown", contexts=frozenset())
        return cls(kind="unknown", name=name, caller=nobody, frontend=frontend, address=address)

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
