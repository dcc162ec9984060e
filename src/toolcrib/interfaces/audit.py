"""Protocol of the audit trail: an append-only hash chain of administrative actions."""

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
    """One administrative action, redacted, before it is appended to the chain."""

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
    """`success`, or the error code."""

    def content(self, number: int, previous: str) -> JsonObject:
        """Return the hashed content of the record with this number: everything but the hash."""
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
    """A record of the chain: the entry, its number, the previous record's hash, and its own hash."""

    number: int
    previous: str
    hash: str

    def as_json(self) -> JsonObject:
        """Return the record as every frontend shows it."""
        return {**self.content(self.number, self.previous), "hash": self.hash}


def digest_of(content: JsonObject) -> str:
    """Return the hash of a record's content: SHA-256 of JSON with sorted keys, no spaces, in ASCII."""
    canonical = dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return sha256(canonical.encode()).hexdigest()


class AuditTrail(Protocol):
    """Stored audit records. Append-only: the database refuses updates and deletions."""

    async def add(self, entry: AuditEntry) -> AuditRecord:
        """Append a record to the chain and return it; shielded from cancellation until it is written."""
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
        """Return records, the newest first, with numbers below `before`.

        `action` is a full name, or the part before the dot for all actions of that group.
        """
        ...
