"""Who performs an administrative action, and from where: the first columns of an audit record."""

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
"""`user` is a user believed by header (mode `trust_header`), `key` any API key, a user's own included."""

_KINDS: dict[str, ActorKind] = {
    "admin": "admin",
    "anonymous": "anonymous",
    "trust_header": "user",
    "local": "library",
}
"""Callers that hold no API key, by the name their credential has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """A caller as the audit records it."""

    kind: ActorKind
    name: str
    """The name of the key, or the operating system's user on the command line; empty where there is none."""
    caller: Caller
    """Whose permissions and ownership the action is checked against."""
    frontend: str
    """`rest`, `page`, `mcp`, `apps`, `cli`, `library` or `gateway`."""
    address: str = ""
    """The client's network address; empty where the action comes from this machine itself."""

    @classmethod
    def of(cls, caller: Caller, frontend: str, address: str = "") -> "Actor":
        """Return the actor a credential stands for."""
        kind = _KINDS.get(caller.key, "key")
        name = caller.user or "" if kind == "user" else caller.key
        return cls(kind=kind, name=name, caller=caller, frontend=frontend, address=address)

    @classmethod
    def unknown(cls, frontend: str, address: str, name: str = "") -> "Actor":
        """Return whoever failed to authenticate; `name` is the key's where it is known."""
        nobody = Caller(id="unknown", contexts=frozenset())
        return cls(kind="unknown", name=name, caller=nobody, frontend=frontend, address=address)

    @property
    def user(self) -> str | None:
        """The user it acts for."""
        return self.caller.user

    @property
    def label(self) -> str:
        """Kind and name in one word, such as `key:ci`; the kind alone where the name says no more."""
        return self.kind if self.name in ("", self.kind) else f"{self.kind}:{self.name}"


def _program(kind: ActorKind, frontend: str) -> Actor:
    everything = Caller(id="local", key="local", permissions=frozenset({"*"}), operator=True)
    return Actor(kind=kind, name="", caller=everything, frontend=frontend)


LIBRARY = _program("library", "library")
"""The program that embeds the gateway and uses its console directly."""
SIGNAL = _program("signal", "gateway")
"""Whoever sent this process a SIGHUP."""
FILE_WATCH = _program("file_watch", "gateway")
"""A changed config file."""
SYSTEM = _program("system", "gateway")
"""The gateway itself."""
