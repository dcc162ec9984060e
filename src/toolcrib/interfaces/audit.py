"""The seam to the audit record: an append-only, hash-chained list of administrative actions."""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from json import dumps
from typing import Protocol

from toolcrib.model import Json, JsonObject

FIRST_PREVIOUS = "0" * 64
"""The previous hash of the first record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """One administrative action, without secrets, before it has its place in the chain."""

    at: float
    """When it ended, in seconds since the epoch."""
    actor_kind: str
    actor: str
    user: str | None
    frontend: str
    address: str
    process: str
    action: str
    target: str
    before: Json
    after: Json
    outcome: str
    """`success`, or the code of the error."""

    def content(self, number: int, previous: str) -> JsonObject:
        """Return what is hashed in a place of the chain: everything but the hash."""
        return {
            "number": number,
            "at": self.at,
            "actor": {"kind": self.actor_kind, "name": self.actor, "user": self.user},
            "origin": {"frontend": self.frontend, "address": self.address, "process": self.process},
            "action": self.action,
            "target": self.target,
            "before": self.before,
            "after": self.after,
            "outcome": self.outcome,
            "previous": previous,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRecord(AuditEntry):
    """An action in its place: its number, the hash of the record before it, and its own."""

    number: int
    previous: str
    hash: str

    def as_json(self) -> JsonObject:
        """Return the record as every frontend shows it."""
        return {**self.content(self.number, self.previous), "hash": self.hash}


def digest_of(content: JsonObject) -> str:
    """Return the hash of a record's content: sha256 over JSON with sorted keys, without spaces, in ASCII."""
    canonical = dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return sha256(canonical.encode()).hexdigest()


class AuditTrail(Protocol):
    """Audit records that last. None is ever changed or deleted; the database refuses it."""

    async def add(self, entry: AuditEntry) -> AuditRecord:
        """Append a record to the chain and return it; cancellation waits until it is written."""
        ...

    async def recent(
        self,
        *,
        limit: int,
        before: int | None = None,
        actor: str | None = None,
        action: str | None = None,
        since: float | None = None,
    ) -> Sequence[AuditRecord]:
        """The newest first, from the one before number `before` on.

        `action` is a whole name or the part before the dot, for all actions of that group.
        """
        ...
