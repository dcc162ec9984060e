"""Interface of the store, and the records it keeps."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from json import dumps
from typing import Literal, Protocol

from toolcrib.clock import Clock
from toolcrib.interfaces.apps import AppData, StoredApps, StoredUsers
from toolcrib.interfaces.keys import StoredKeys
from toolcrib.model import Json, JsonObject

# --- Protocol of the audit trail: an append-only hash chain of administrative actions ---

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


# --- Store protocol for MCP sessions: last use, and ended sessions ---

FORGOTTEN = "forgotten"
"""Id of the row with the time up to which ended sessions were pruned; a principal's row appends its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class McpSessionRow:
    """The stored state of an MCP session; the rest is in its token."""

    id: str
    """Hash of the token's random part."""
    principal: str
    """Principal that owns the session."""
    used: float
    """Time of its last use or its end, by the store's clock."""
    ended: bool = False


class StoredMcpSessions(Protocol):
    """Stored MCP sessions: those older than an hour, and ended ones; for all others the token suffices."""

    async def get(self, id: str) -> McpSessionRow | None:
        """Return the stored state of a session, if any."""
        ...

    async def end(self, row: McpSessionRow) -> None:
        """Store the end of a session, which is final."""
        ...

    async def renew(self, rows: Sequence[McpSessionRow]) -> None:
        """Store the last use of sessions; ended ones, and those with a later use, are unchanged."""
        ...

    async def ended_since(self, moment: float) -> Sequence[str]:
        """Return the ids of sessions that ended at this moment or later."""
        ...

    async def prune(self, before: float, *, most: int, per_principal: int) -> int:
        """Delete rows unused since a time, and the least recently used past the limits; return a count."""
        ...


# --- Protocol of the persistent store: one repository per aggregate ---

GIVERS = "url_givers"
"""Entry of a stored overlay with the kind of caller that added each server; no setting, never exported."""


class StoredOverlay(Protocol):
    """Config changes made at run time: a document with the structure of the config file."""

    async def load(self) -> tuple[int, JsonObject]:
        """Return the version (0 if never saved) and the document."""
        ...

    async def save(self, document: JsonObject, *, expected: int) -> int | None:
        """Compare-and-swap: replace it if its version is `expected`; return the new version, or None."""
        ...


class StoredClaims(Protocol):
    """Registry of exposed names and their owners."""

    async def all(self) -> Mapping[str, str]:
        """Return folded names with the canonical name of their owner."""
        ...

    async def put(self, claims: Mapping[str, str]) -> None:
        """Insert or update claims."""
        ...

    async def drop(self, names: Iterable[str]) -> None:
        """Delete claims."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRow:
    """One finished call, for operators. Contains no arguments and no results."""

    id: str
    at: float
    tool: str
    caller: str
    user: str | None
    context: str
    face: str
    outcome: Literal["success", "error", "timeout"]
    code: str | None
    milliseconds: float
    cached: bool
    trace: str
    mutation: bool = False
    """Whether its tool is a declared mutation; rows of those are never sampled."""


class StoredCalls(Protocol):
    """Recent calls."""

    async def add(self, rows: Sequence[CallRow]) -> None:
        """Insert a batch."""
        ...

    async def recent(
        self, *, limit: int, tool: str | None = None, caller: str | None = None, before: float | None = None
    ) -> Sequence[CallRow]:
        """Return calls, the newest first."""
        ...

    async def prune(self, keep: int, mutations: int) -> int:
        """Delete all but the newest `keep` calls and `mutations` declared mutations; return the number."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageRow:
    """Usage of one tool by one caller on one day (UTC)."""

    day: str
    tool: str
    caller: str
    calls: int = 0
    errors: int = 0
    cached: int = 0
    milliseconds: float = 0.0
    last_used: float = 0.0
    latencies: tuple[int, ...] = ()
    """Histogram counts per bucket of `LATENCY_BOUNDS`, for estimating quantiles."""


LATENCY_BOUNDS = (1.0, 2.5, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1e3, 2.5e3, 5e3, 1e4, 3e4)
"""Upper bounds of the latency buckets in milliseconds; one more bucket counts values above the last."""


class StoredUsage(Protocol):
    """Cumulative usage counts."""

    async def add(self, rows: Sequence[UsageRow]) -> None:
        """Add a batch to the stored counts."""
        ...

    async def totals(
        self,
        *,
        since: str | None = None,
        tool: str | None = None,
        app: str | None = None,
        caller: str | None = None,
    ) -> Sequence[UsageRow]:
        """Return rows from day `since` on, by day, tool and caller; `app` is a package, for all its tools."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredDefinition:
    """A tool definition as last seen from its source, and the hash of the trusted one."""

    name: str
    """Canonical name."""
    definition: JsonObject
    seal: str
    """Hash of the definition as last seen."""
    trusted: str
    """Hash of the trusted definition: the first one seen (trust on first use)."""
    seen: float


class StoredDefinitions(Protocol):
    """Tool definitions of sources, so that tools are listed before their source has started."""

    async def all(self) -> Sequence[StoredDefinition]:
        """Return every definition, ordered by name."""
        ...

    async def put(self, definitions: Sequence[StoredDefinition]) -> None:
        """Insert or replace definitions, by name."""
        ...

    async def drop(self, names: Iterable[str]) -> None:
        """Delete definitions."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayRow:
    """The claim of an idempotency key: who executes the request, or its result."""

    key: str
    """Hash of the idempotency key and its owner."""
    call: str
    """Id of the call that claimed it."""
    body: str
    """Hash of the request."""
    holder: str
    """Mark of the process that executes it."""
    at: float
    """When it was claimed, by the store's clock."""
    until: float
    """Expiry of the claim: when the call must have ended."""
    answer: str | None = None
    """The result as JSON; None until it is known."""
    owner: str = ""
    """Principal charged for the stored bytes."""
    bytes: int = 0
    """Size of the result charged to that quota."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayTotals:
    """Stored totals of one principal's idempotency keys."""

    keys: int = 0
    bytes: int = 0
    oldest: float = 0.0
    """When the oldest of them was claimed."""


class StoredReplays(Protocol):
    """Idempotency keys and their stored results."""

    async def claim(self, row: ReplayRow, *, since: float) -> ReplayRow | None:
        """Insert a claim and return None, or return the row its key has had since `since`."""
        ...

    async def find(self, key: str, *, since: float) -> ReplayRow | None:
        """Return the row that a key has had since `since`, or None."""
        ...

    async def finish(self, key: str, call: str, answer: str, size: int = 0) -> bool:
        """Store the result of the call that claimed a key; False if it does not have the claim."""
        ...

    async def shorten(self, owner: str, size: int, answer: str) -> int:
        """Replace a principal's oldest results until `size` bytes are free; return the freed bytes."""
        ...

    async def totals(self) -> Mapping[str, ReplayTotals]:
        """Return the stored totals by principal. Reads every row."""
        ...

    async def release(self, key: str, call: str) -> bool:
        """Release a claimed key under which nothing was done; False if the call does not have the claim."""
        ...

    async def prune(self, before: float) -> int:
        """Delete rows claimed earlier; return the number."""
        ...


class Store(Protocol):
    """The persistent store, one repository per aggregate."""

    @property
    def keys(self) -> StoredKeys: ...
    @property
    def overlay(self) -> StoredOverlay: ...
    @property
    def claims(self) -> StoredClaims: ...
    @property
    def calls(self) -> StoredCalls: ...
    @property
    def usage(self) -> StoredUsage: ...
    @property
    def definitions(self) -> StoredDefinitions: ...
    @property
    def replays(self) -> StoredReplays: ...
    @property
    def apps(self) -> StoredApps: ...
    @property
    def users(self) -> StoredUsers: ...
    @property
    def app_data(self) -> AppData: ...
    @property
    def audit(self) -> AuditTrail: ...
    @property
    def mcp_sessions(self) -> StoredMcpSessions: ...

    @property
    def clock(self) -> Clock:
        """Clock for retention periods and expiry."""
        ...

    @property
    def refused(self) -> str:
        """Last known reason why the store fails or refuses writes; empty while it works. Costs nothing."""
        ...

    async def gateway_id(self) -> str:
        """Return the id of the gateway that owns this data, 16 hex digits, generated on first use."""
        ...

    async def check(self) -> None:
        """Raise the fault if the database does not respond."""
        ...

    async def check_writes(self) -> None:
        """Raise the fault if writes are refused; tests that with at most one write per second."""
        ...

    async def watch(self) -> None:
        """Update `refused` until cancelled."""
        ...

    async def close(self) -> None:
        """Close the database."""
        ...
