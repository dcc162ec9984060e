"""Protocols of tool sources: their offer, lifecycle and supervision, and the hot reload of their config."""

from asyncio import CancelledError
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

from toolcrib.errors import ToolcribError
from toolcrib.interfaces.calls import Outcome
from toolcrib.model import Call, Family, JsonObject, Tool


@dataclass(frozen=True, slots=True)
class Withheld:
    """A tool that is not offered, and the reason: a name conflict or an unusable definition."""

    name: str
    source: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceResources:
    """Resources and prompts of a source: as its server sent them, and validated."""

    resources: Sequence[JsonObject] = ()
    templates: Sequence[JsonObject] = ()
    prompts: Sequence[JsonObject] = ()
    has_resources: bool = False
    """Whether resources can be read at all, listed or not."""
    has_prompts: bool = False
    tells: bool = False
    """Whether it supports subscriptions to resource changes."""
    completes: bool = False
    """Whether it supports completion of arguments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """Snapshot of everything a source offers, and of the tools that were withheld or repaired."""

    tools: Sequence[Tool]
    withheld: Sequence[Withheld] = ()
    repaired: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """By canonical name: the repairs that made a tool usable."""
    definitions: Mapping[str, JsonObject] = field(default_factory=dict[str, JsonObject])
    """By canonical name: each tool as its server sent it, for hashing and storing."""
    examined: Mapping[str, object] = field(default_factory=dict[str, object], repr=False)
    """By canonical name: the catalog's analysis of a tool, if the source requested it ahead of time."""
    materials: SourceResources | None = None
    """None if there are none, or if they have not been listed yet."""


class SourceLink(Protocol):
    """Callbacks by which a running source reports its state to the gateway."""

    def up(self, offer: Offer) -> None:
        """Report that the source is up, with its complete offer; call again on every change."""
        ...

    def down(self, reason: str) -> None:
        """Report that the server was lost, before the cleanup, which may take a moment."""
        ...

    def updated(self, uri: str) -> None:
        """Report a change of a subscribed resource."""
        ...


class Source(Protocol):
    """A source of tools."""

    @property
    def id(self) -> str:
        """The first part of its tools' canonical names."""
        ...

    @property
    def family(self) -> Family:
        """The kind of source."""
        ...

    @property
    def timeout(self) -> float | None:
        """Default timeout of one attempt, in seconds; None derives it from the response time."""
        ...

    @property
    def mortal(self) -> bool:
        """Whether it can crash during a call; sources in this process cannot."""
        ...

    async def run(self, link: SourceLink) -> None:
        """Run until cancelled. Returning or raising counts as a crash, and the supervisor restarts it."""
        ...

    def call(self, call: Call) -> Outcome:
        """Execute one call. Called only while `run` is running."""
        ...

    async def check(self) -> None:
        """Health check with a real request; raises the fault. Called only while `run` is running."""
        ...

    def details(self) -> Mapping[str, Any]:
        """Return details for operators besides the state. Never contains a secret."""
        ...


_NOT_BEGUN = "toolcrib: the call was cancelled before it had begun"


def note_not_begun(error: CancelledError) -> None:
    """Mark a call as cancelled while it still waited: nothing was done, so a retry is safe.

    A note, not a subclass: `asyncio.timeout` recognizes only CancelledError as its own.
    """
    error.add_note(_NOT_BEGUN)


def is_not_begun(error: BaseException) -> bool:
    """Whether a call was cancelled before it began."""
    return _NOT_BEGUN in getattr(error, "__notes__", ())


class ServerUnreachable(ConnectionError):
    """The server of a source is unreachable: it accepts no connection, or a proxy responds in its place."""


class ServerMisbehaved(ConnectionError):
    """The connection was closed because of invalid data from the server, however long it was up."""


@runtime_checkable
class ReachableSource(Protocol):
    """A source with a remote server: it is reconnected, not restarted."""

    async def reach(self, within: float) -> None:
        """Raise ServerUnreachable unless the server accepts a connection in `within` s; send nothing."""
        ...


@runtime_checkable
class KeepsConnections(Protocol):
    """A source with dedicated connections per owner: client sessions that support elicitation."""

    def release(self, owner: str) -> None:
        """Close the connections of an owner that has ended."""
        ...


@runtime_checkable
class SubscribableSource(Protocol):
    """A source that supports subscriptions to resource changes."""

    async def follow(self, uris: frozenset[str]) -> Mapping[str, ToolcribError]:
        """Subscribe to exactly these resources; return the ones that failed, with their errors.

        Called only while `run` is running, and again by the supervisor after every start.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Upkeep:
    """Supervision settings of a source. Times are seconds."""

    restart: bool = True
    most_restarts: int = 5
    """Consecutive restarts without a stable run before the state is `crash_loop`."""
    backoff: float = 1.0
    """Delay before the first restart; exponential backoff with jitter."""
    lazy: bool = False
    """Start on the first call rather than with the gateway."""
    idle: float | None = None
    """Idle timeout: stop after this time without a call, until the next one; None for never."""
    grace: float = 600.0
    """How long the tools of a source that is down remain listed."""


State = Literal["starting", "up", "down", "crash_loop", "asleep", "stopped"]
"""`asleep`: not running, started by a call. `stopped`: not running, started only by an operator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceState:
    """Status of a source for operators."""

    id: str
    state: State
    family: Family = "function"
    tools: int = 0
    restarts: int = 0
    last_error: str | None = None
    since: float = 0.0
    details: Mapping[str, Any] = field(default_factory=dict[str, Any])


# --- Protocol between the admin API and the config: configured servers, and hot reload ---


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerEntry:
    """An MCP server in the config, running or not."""

    id: str
    transport: str
    enabled: bool = True
    added: bool = False
    """Whether it was added at run time and is stored in the overlay."""
    barred: str = ""
    """Reason why it is not started although it is enabled."""
    pin: Literal["strict", "notify", "off"] = "notify"
    """Effective pin mode: the reaction to a changed tool definition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReloadPlan:
    """The changes of a reload: ids of servers, then names of the other config sections."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    untouched: tuple[str, ...] = ()
    deferred: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """Servers that stop only after running calls have ended, with the ids of those calls."""
    applied: tuple[str, ...] = ()
    restart: tuple[str, ...] = ()
    """Changed sections that take effect only after a restart of the gateway."""
    warnings: tuple[str, ...] = ()


class ConfigReload(Protocol):
    """Applies config changes to the running gateway (hot reload)."""

    @property
    def enabled(self) -> bool:
        """Whether MCP servers are enabled at all."""
        ...

    @property
    def pins(self) -> Mapping[str, str]:
        """Approved definition hashes by tool, from config and overlay."""
        ...

    def servers(self) -> Mapping[str, ServerEntry]:
        """Return every server of the active config, by id."""
        ...

    def warnings(self) -> tuple[str, ...]:
        """Return warnings for the operator about the active config."""
        ...

    async def reload(
        self, *, dry_run: bool = False, applied: Callable[[ReloadPlan], None] = ...
    ) -> ReloadPlan:
        """Reload file and overlay and apply the difference; an invalid config is refused as a whole."""
        ...

    async def amend(
        self, change: Callable[[JsonObject], JsonObject], applied: Callable[[ReloadPlan], None] = ...
    ) -> ReloadPlan:
        """Change and apply the overlay; nothing is stored if the resulting config would be refused."""
        ...
