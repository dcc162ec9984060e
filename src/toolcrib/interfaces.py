"""The seams: a new kind of source, step, rule, format, recorder or store satisfies one of these."""

from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from toolcrib.model import Call, Caller, JsonObject, Result, Tool

Handler = Callable[[Call], Awaitable[Result]]
"""What a composed chain is, and what its end is."""


class Stage(Protocol):
    """A step fitted to one tool: act, `await proceed(call)` or not, act on what comes back."""

    def __call__(self, call: Call, proceed: Handler) -> Coroutine[Any, Any, Result]: ...


class Step(Protocol):
    """What happens to a call between the door and its source."""

    def fit(self, tool: Tool) -> Stage | None:
        """Prepare for one tool, once per catalog version; None where there is nothing to do for it."""
        ...


class Link(Protocol):
    """What a running source holds on to: its way to tell the gateway how it is."""

    def up(self, tools: Sequence[Tool]) -> None:
        """I am live, and this is everything I offer. Again whenever that changes."""
        ...

    def down(self, reason: str) -> None:
        """I have just lost my server; clearing up may take a moment."""
        ...


class Source(Protocol):
    """Where tools come from."""

    @property
    def id(self) -> str:
        """The first half of its tools' names."""
        ...

    @property
    def timeout(self) -> float | None:
        """How long one attempt may take by default, in seconds; None leaves it to the response time."""
        ...

    @property
    def mortal(self) -> bool:
        """Whether it can die under a running call. What runs in this process cannot."""
        ...

    async def run(self, link: Link) -> None:
        """Live until cancelled. Returning or raising is death; the supervisor runs it again."""
        ...

    async def call(self, call: Call) -> Result:
        """Carry out one call. Only called while `run` is live."""
        ...


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a caller may not use a tool. `hide`: as if it were not there; `deny`: says what is missing."""

    rule: str
    message: str
    effect: Literal["hide", "deny"] = "hide"
    code: str = "PERMISSION_DENIED"
    """What a call that is denied answers."""


class Rule(Protocol):
    """Who may see and use what. Pure: no I/O."""

    @property
    def name(self) -> str:
        """What `explain` calls it."""
        ...

    def why_not(self, tool: Tool, caller: Caller) -> Reason | None:
        """Return the reason against this tool for this caller, or None."""
        ...

    def audience(self, caller: Caller) -> object:
        """Return all this rule looks at in a caller, hashable: equal audiences see equal lists."""
        ...


class Format(Protocol):
    """How one LLM provider or face spells tools. Pure: no I/O."""

    @property
    def name(self) -> str:
        """What `?format=` calls it."""
        ...

    def tool(self, tool: Tool, name: str) -> JsonObject:
        """Declare one tool under the name the caller's style gives it."""
        ...


class Recorder(Protocol):
    """Hears of every call exactly once. Must not wait for anything."""

    def record(self, call: Call, result: Result, seconds: float) -> None:
        """Take note and return at once."""
        ...

    def refused(self, code: str) -> None:
        """Take note of a request that was refused before it had a tool."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRecord:
    """An API key as it is stored: never the key, only its hash."""

    name: str
    digest: str
    """sha256 of the key, in hex."""
    permissions: frozenset[str] = frozenset()
    contexts: frozenset[str] | None = None
    """The contexts it may ask for; None means any."""
    home: str = "default"
    """The context it is in where it asks for none."""
    act_as: bool = False
    created: float = 0.0
    rotated: float | None = None
    revoked: float | None = None


class Keys(Protocol):
    """API keys that last."""

    async def add(self, key: KeyRecord) -> bool:
        """Store a new key; False where a key of that name exists, revoked ones included."""
        ...

    async def all(self) -> Sequence[KeyRecord]:
        """Every key, revoked ones included, by name."""
        ...

    async def rotate(self, name: str, digest: str, at: float) -> bool:
        """Put another hash in place; False where there is no live key of that name."""
        ...

    async def revoke(self, name: str, at: float) -> bool:
        """End a key; False where there is no live key of that name."""
        ...


class Overlay(Protocol):
    """What was changed at run time: a document of the config file's own shape."""

    async def load(self) -> tuple[int, JsonObject]:
        """The version (0 if never saved) and the document."""
        ...

    async def save(self, document: JsonObject, *, expected: int) -> int | None:
        """Replace it if its version is still `expected`; the new version, or None where someone was first."""
        ...


class Claims(Protocol):
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


class Calls(Protocol):
    """The last calls."""

    async def add(self, rows: Sequence[CallRow]) -> None:
        """Store a batch."""
        ...

    async def recent(
        self, *, limit: int, tool: str | None = None, caller: str | None = None, before: float | None = None
    ) -> Sequence[CallRow]:
        """The newest first."""
        ...

    async def prune(self, keep: int) -> int:
        """Forget all but the newest `keep`; how many went."""
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


class Usage(Protocol):
    """Counts that add up."""

    async def add(self, rows: Sequence[UsageRow]) -> None:
        """Add a batch to what is there."""
        ...

    async def totals(
        self, *, since: str | None = None, tool: str | None = None, caller: str | None = None
    ) -> Sequence[UsageRow]:
        """The rows from day `since` on, by day, tool and caller."""
        ...


class Store(Protocol):
    """What lasts, one part per aggregate."""

    @property
    def keys(self) -> Keys: ...
    @property
    def overlay(self) -> Overlay: ...
    @property
    def claims(self) -> Claims: ...
    @property
    def calls(self) -> Calls: ...
    @property
    def usage(self) -> Usage: ...

    async def check(self) -> None:
        """Answer if the database does; raise what is wrong otherwise."""
        ...

    async def close(self) -> None:
        """Let go of the database."""
        ...


@dataclass(frozen=True, slots=True)
class Demand:
    """A claim on a rate: so many calls at once under a key, refilled evenly over the window (seconds)."""

    key: str
    calls: int
    window: float


@dataclass(frozen=True, slots=True)
class Change:
    """Something others should look at again: a topic such as `keys`, and what it is about."""

    topic: str
    about: str = ""


class Shared(Protocol):
    """State that replicas share: limits, cached results, running flights, change signals, presence."""

    async def take(self, demands: Sequence[Demand]) -> float:
        """Check all, then take all: 0 where it may go on, else the seconds to wait (and nothing is taken)."""
        ...

    async def recall(self, key: str) -> Result | None:
        """A kept result that is still fresh."""
        ...

    async def keep(self, key: str, result: Result, ttl: float) -> None:
        """Keep a result for `ttl` seconds."""
        ...

    async def once(self, key: str, make: Callable[[], Awaitable[Result]]) -> tuple[Result, bool]:
        """Run `make` unless it is already running under this key; its result, and whether another made it.

        A waiter that goes away disturbs nobody; a leader that is cancelled hands over to a waiter.
        """
        ...

    def publish(self, change: Change) -> None:
        """Tell every listener, here and on other replicas. Does not wait."""
        ...

    def listen(self, topic: str, hear: Callable[[Change], None]) -> Callable[[], None]:
        """Hear of changes of a topic, also one's own; call the answer to stop."""
        ...

    async def appear(self, key: str, value: str, ttl: float) -> None:
        """Be present under a key for `ttl` seconds; again to stay."""
        ...

    async def vanish(self, key: str) -> None:
        """Be present no longer."""
        ...

    async def present(self, prefix: str) -> Mapping[str, str]:
        """Who is present under a prefix: key to value."""
        ...

    async def close(self) -> None:
        """Let go of connections."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceState:
    """How a source is doing, as operators see it."""

    id: str
    state: Literal["starting", "up", "down", "crash_loop", "stopped"]
    tools: int = 0
    restarts: int = 0
    last_error: str | None = None
    since: float = 0.0
    details: Mapping[str, Any] = field(default_factory=dict[str, Any])
