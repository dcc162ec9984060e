"""The seam to what lasts: a store, one part per aggregate."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from toolcrib.clock import Clock
from toolcrib.interfaces.apps import AppData, StoredApps, StoredUsers
from toolcrib.interfaces.audit import AuditTrail
from toolcrib.interfaces.keys import StoredKeys
from toolcrib.interfaces.mcp_sessions import StoredMcpSessions
from toolcrib.model import JsonObject

GIVERS = "url_givers"
"""Beside the settings of a stored overlay: whose key added each server. No setting, and never exported."""


class StoredOverlay(Protocol):
    """What was changed at run time: a document of the config file's own shape."""

    async def load(self) -> tuple[int, JsonObject]:
        """The version (0 if never saved) and the document."""
        ...

    async def save(self, document: JsonObject, *, expected: int) -> int | None:
        """Replace it if its version is still `expected`; the new version, or None where someone was first."""
        ...


class StoredClaims(Protocol):
    """Which tool owns which exposed name."""

    async def all(self) -> Mapping[str, str]:
        """Folded name to the canonical name of its owner."""
        ...

    async def put(self, claims: Mapping[str, str]) -> None:
        """Add or move claims."""
        ...

    async def drop(self, names: Iterable[str]) -> None:
        """Give names up."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRow:
    """One call that happened, as operators read it. Holds no arguments and no results."""

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
    """Whether its tool is a declared mutation, whose rows are never sampled."""


class StoredCalls(Protocol):
    """The last calls."""

    async def add(self, rows: Sequence[CallRow]) -> None:
        """Store a batch."""
        ...

    async def recent(
        self, *, limit: int, tool: str | None = None, caller: str | None = None, before: float | None = None
    ) -> Sequence[CallRow]:
        """The newest first."""
        ...

    async def prune(self, keep: int, mutations: int) -> int:
        """Forget all but the newest `keep`, and so many of declared mutations; how many went."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageRow:
    """How much one caller used one tool on one day (UTC)."""

    day: str
    tool: str
    caller: str
    calls: int = 0
    errors: int = 0
    cached: int = 0
    milliseconds: float = 0.0
    last_used: float = 0.0
    latencies: tuple[int, ...] = ()
    """Counts per bucket of `LATENCY_BOUNDS`, from which quantiles are read."""


LATENCY_BOUNDS = (
    1.0,
    2.5,
    5.0,
    10.0,
    25.0,
    50.0,
    100.0,
    250.0,
    500.0,
    1000.0,
    2500.0,
    5000.0,
    10000.0,
    30000.0,
)
"""Upper bounds of the latency buckets in milliseconds; one more bucket takes what is above the last."""


class StoredUsage(Protocol):
    """Counts that add up."""

    async def add(self, rows: Sequence[UsageRow]) -> None:
        """Add a batch to what is there."""
        ...

    async def totals(
        self,
        *,
        since: str | None = None,
        tool: str | None = None,
        app: str | None = None,
        caller: str | None = None,
    ) -> Sequence[UsageRow]:
        """The rows from day `since` on, by day, tool and caller; `app` is a package, for all its tools."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredDefinition:
    """A tool as its source spelled it when it was last seen, and as it was first trusted."""

    name: str
    """Canonical."""
    definition: JsonObject
    seal: str
    """Hash of the definition as last seen."""
    trusted: str
    """Hash of the definition that was seen first: trusted on first use."""
    seen: float


class StoredDefinitions(Protocol):
    """What sources offered, so that their tools are known before they have started."""

    async def all(self) -> Sequence[StoredDefinition]:
        """Every definition, by name."""
        ...

    async def put(self, definitions: Sequence[StoredDefinition]) -> None:
        """Add or replace, by name."""
        ...

    async def drop(self, names: Iterable[str]) -> None:
        """Forget tools."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayRow:
    """One request that is carried out once: who is at work on it, or what came of it."""

    key: str
    """Hash of the caller's key, and of whose it is."""
    call: str
    """The id of the call that claimed it."""
    body: str
    """Hash of what was asked for."""
    holder: str
    """The mark of the process that carries it out."""
    at: float
    """When it was claimed, by the store's clock."""
    until: float
    """When whoever carries it out must have ended."""
    answer: str | None = None
    """The answer as JSON; None as long as nobody knows it."""
    owner: str = ""
    """The principal whose quota it counts for."""
    bytes: int = 0
    """How much of that quota the answer takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayTotals:
    """What is stored of one principal's requests."""

    keys: int = 0
    bytes: int = 0
    oldest: float = 0.0
    """When the first of them was claimed."""


class StoredReplays(Protocol):
    """Requests that were made under a key, so that one made twice is carried out once."""

    async def claim(self, row: ReplayRow, *, since: float) -> ReplayRow | None:
        """Store a row and return None, or return the one that its key has since then."""
        ...

    async def find(self, key: str, *, since: float) -> ReplayRow | None:
        """The row that a key has since then."""
        ...

    async def finish(self, key: str, call: str, answer: str, size: int = 0) -> bool:
        """Keep the answer of the call that claimed a key; False where it has not, or no more."""
        ...

    async def shorten(self, owner: str, size: int, answer: str) -> int:
        """Replace a principal's oldest answers until so many bytes are free; how many are."""
        ...

    async def totals(self) -> Mapping[str, ReplayTotals]:
        """What is stored, by principal. Reads every row."""
        ...

    async def release(self, key: str, call: str) -> bool:
        """Free a key that a call claimed and did nothing under; False where it has not, or no more."""
        ...

    async def prune(self, before: float) -> int:
        """Forget what was claimed earlier; how many went."""
        ...


class Store(Protocol):
    """What lasts, one part per aggregate."""

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
        """The time for whatever is kept for so long, or ends after so long."""
        ...

    @property
    def refused(self) -> str:
        """Why the store does not take writes or answer, as last seen; empty while it does. Costs nothing."""
        ...

    async def gateway_id(self) -> str:
        """Return the id of the gateway whose data this is, 16 hex digits, drawn when first asked for."""
        ...

    async def check(self) -> None:
        """Answer if the database does; raise what is wrong otherwise."""
        ...

    async def check_writes(self) -> None:
        """Raise what is wrong where writes are refused; writes at most once a second to find out."""
        ...

    async def watch(self) -> None:
        """Keep `refused` true to the state of the store, until cancelled."""
        ...

    async def close(self) -> None:
        """Let go of the database."""
        ...
