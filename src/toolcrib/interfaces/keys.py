"""Store protocol for API keys, including a change feed for replicas."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRecord:
    """A stored API key: never the secret, only its hash."""

    name: str
    digest: str
    """SHA-256 of the key, in hex."""
    permissions: frozenset[str] = frozenset()
    contexts: frozenset[str] | None = None
    """Contexts it may select; `*` means any, None means any too unless `auth.default` is deny."""
    home: str = "default"
    """Default context of its requests."""
    act_as: bool = False
    user: str | None = None
    """The user it belongs to and acts for; None for a plain key."""
    created: float = 0.0
    created_by: str | None = None
    """The actor that created it, as named in the audit; None for keys older than the audit."""
    rotated: float | None = None
    revoked: float | None = None
    last_used: float | None = None
    """Last successful authentication, to the minute; None if there was none."""
    expires: float | None = None
    """Expiry time; None for a key that does not expire."""
    previous_digest: str | None = None
    """Hash of the secret before the last rotation, if that had an overlap."""
    previous_until: float | None = None
    """Expiry time of the previous secret."""

    def is_live(self, at: float) -> bool:
        """Whether it is neither revoked nor expired."""
        return self.revoked is None and (self.expires is None or at < self.expires)


@dataclass(frozen=True, slots=True)
class KeyPosition:
    """Cursor in the change feed: the number of the last change read, and the name of its key."""

    change: int = -1
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyChanges:
    """The next changes after a position, the oldest first."""

    records: Sequence[KeyRecord]
    purged: Sequence[str]
    """Names of purged keys, of which only the name remains."""
    position: KeyPosition
    """Cursor for the next read."""
    newest: int
    """Number of the newest change; if it is below the cursor's, the store was replaced."""


class StoredKeys(Protocol):
    """Stored API keys."""

    async def add(self, key: KeyRecord) -> bool:
        """Store a new key; False if the name is or was in use."""
        ...

    async def find(self, name: str) -> KeyRecord | None:
        """Return a key, also a revoked one; None if there is none of that name."""
        ...

    async def all(self) -> Sequence[KeyRecord]:
        """Return every key, including revoked ones, ordered by name."""
        ...

    async def page(self, *, after: str, limit: int) -> Sequence[KeyRecord]:
        """Return at most `limit` keys, including revoked ones, ordered by name, after this name."""
        ...

    async def changes(self, after: KeyPosition, limit: int) -> KeyChanges:
        """Return at most `limit` keys added, changed or purged after a cursor; from the start, all keys."""
        ...

    async def rotate(self, name: str, digest: str, at: float, previous_until: float | None = None) -> bool:
        """Replace the hash of a key; False if there is no live key of that name.

        The previous secret stays valid until `previous_until`, or not at all with None; older ones end.
        """
        ...

    async def revoke(self, name: str, at: float) -> bool:
        """Revoke a key; False if there is none of that name, or it is revoked already."""
        ...

    async def used(self, times: Mapping[str, float]) -> None:
        """Store the last use of keys, by name; an earlier time than the stored one is ignored."""
        ...

    async def purge(self, before: float, limit: int) -> int:
        """Purge at most `limit` keys that ended earlier, except their names; return the number."""
        ...
