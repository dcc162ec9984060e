"""The seam to stored API keys: what is kept of a key, and how changes of keys are read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRecord:
    """An API key as it is stored: never the key, only its hash."""

    name: str
    digest: str
    """sha256 of the key, in hex."""
    permissions: frozenset[str] = frozenset()
    contexts: frozenset[str] | None = None
    """The contexts it may ask for; `*` means any, None any too unless `auth.default` is deny."""
    home: str = "default"
    """The context it is in where it asks for none."""
    act_as: bool = False
    user: str | None = None
    """The user it belongs to and acts for; None for a plain key."""
    created: float = 0.0
    created_by: str | None = None
    """Who made it, as the audit names an actor; None for keys older than the audit."""
    rotated: float | None = None
    revoked: float | None = None
    last_used: float | None = None
    """When it last authenticated somebody, to the minute; None where it never has."""
    expires: float | None = None
    """When it stops being valid; None where it never does."""
    previous_digest: str | None = None
    """Hash of the secret before the last rotation, where that had an overlap."""
    previous_until: float | None = None
    """When that secret stops being valid."""

    def is_live(self, at: float) -> bool:
        """Whether it is neither revoked nor expired."""
        return self.revoked is None and (self.expires is None or at < self.expires)


@dataclass(frozen=True, slots=True)
class KeyPosition:
    """How far changes have been read: the number of the last one, and the name of the key it was made to."""

    change: int = -1
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyChanges:
    """The next changes after a position, the oldest first."""

    records: Sequence[KeyRecord]
    purged: Sequence[str]
    """Names of keys of which nothing but the name is left."""
    position: KeyPosition
    """Where to read on."""
    newest: int
    """The number of the newest change of all; one before the position means that the store was replaced."""


class StoredKeys(Protocol):
    """API keys that last."""

    async def add(self, key: KeyRecord) -> bool:
        """Store a new key; False where a key of that name exists or existed."""
        ...

    async def find(self, name: str) -> KeyRecord | None:
        """One key, also a revoked one; None where there is none of that name."""
        ...

    async def all(self) -> Sequence[KeyRecord]:
        """Every key, revoked ones included, by name."""
        ...

    async def page(self, *, after: str, limit: int) -> Sequence[KeyRecord]:
        """So many keys, revoked ones included, by name, from the first after this name on."""
        ...

    async def changes(self, after: KeyPosition, limit: int) -> KeyChanges:
        """So many keys that were added, changed or purged after a position; from the first one on, all."""
        ...

    async def rotate(self, name: str, digest: str, at: float, previous_until: float | None = None) -> bool:
        """Put another hash in place; False where there is no live key of that name.

        The one before stays valid until `previous_until`, and with None not at all; the one before that goes.
        """
        ...

    async def revoke(self, name: str, at: float) -> bool:
        """End a key; False where there is none of that name, or it is revoked already."""
        ...

    async def used(self, times: Mapping[str, float]) -> None:
        """Store when keys were last used, by name; an earlier time than the stored one changes nothing."""
        ...

    async def purge(self, before: float, limit: int) -> int:
        """Forget all but the names of so many keys that ended earlier; how many these were."""
        ...
