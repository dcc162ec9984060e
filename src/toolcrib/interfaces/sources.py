"""The seam to where tools come from: a source, what it offers, how it is kept alive."""

from asyncio import CancelledError
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

from toolcrib.errors import ToolcribError
from toolcrib.interfaces.calls import Outcome
from toolcrib.model import Call, Family, JsonObject, Tool


@dataclass(frozen=True, slots=True)
class Withheld:
    """A tool that is not offered, and why: a name another one owns, a definition that cannot be used."""

    name: str
    source: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceResources:
    """What a source has besides tools: resources and prompts, as its server spelled them, and found fit."""

    resources: Sequence[JsonObject] = ()
    templates: Sequence[JsonObject] = ()
    prompts: Sequence[JsonObject] = ()
    has_resources: bool = False
    """Whether something can be read at all, listed or not."""
    has_prompts: bool = False
    tells: bool = False
    """Whether it can tell when a resource has changed."""
    completes: bool = False
    """Whether it can say how an argument that was begun may go on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """Everything a source offers at one moment, and what became of the rest."""

    tools: Sequence[Tool]
    withheld: Sequence[Withheld] = ()
    repaired: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """By canonical name: what had to be changed for a tool to be usable."""
    definitions: Mapping[str, JsonObject] = field(default_factory=dict[str, JsonObject])
    """By canonical name: each tool as its server spelled it, to be hashed whole and remembered."""
    examined: Mapping[str, object] = field(default_factory=dict[str, object], repr=False)
    """By canonical name: what the catalog found a tool to be, where a source had it look ahead of time."""
    materials: SourceResources | None = None
    """None where there are none, or nobody has asked yet."""


class SourceLink(Protocol):
    """What a running source holds on to: its way to tell the gateway how it is."""

    def up(self, offer: Offer) -> None:
        """I am live, and this is everything I offer. Again whenever that changes."""
        ...

    def down(self, reason: str) -> None:
        """I have just lost my server; clearing up may take a moment."""
        ...

    def updated(self, uri: str) -> None:
        """A resource that is followed has changed."""
        ...


class Source(Protocol):
    """Where tools come from."""

    @property
    def id(self) -> str:
        """The first half of its tools' names."""
        ...

    @property
    def family(self) -> Family:
        """What kind of source it is."""
        ...

    @property
    def timeout(self) -> float | None:
        """How long one attempt may take by default, in seconds; None leaves it to the response time."""
        ...

    @property
    def mortal(self) -> bool:
        """Whether it can die under a running call. What runs in this process cannot."""
        ...

    async def run(self, link: SourceLink) -> None:
        """Live until cancelled. Returning or raising is death; the supervisor runs it again."""
        ...

    def call(self, call: Call) -> Outcome:
        """Carry out one call. Only called while `run` is live."""
        ...

    async def check(self) -> None:
        """Ask it for something real; raise what is wrong. Only called while `run` is live."""
        ...

    def details(self) -> Mapping[str, Any]:
        """Say what operators should know of it besides its state. Never holds a secret."""
        ...


_NOT_BEGUN = "toolcrib: the call was cancelled before it had begun"


def note_not_begun(error: CancelledError) -> None:
    """Note that a call was cancelled while it still waited: nothing was done, so it may be repeated.

    A note, not another class: `asyncio.timeout` takes no other than CancelledError for its own.
    """
    error.add_note(_NOT_BEGUN)


def is_not_begun(error: BaseException) -> bool:
    """Whether a call was cancelled before it had begun."""
    return _NOT_BEGUN in getattr(error, "__notes__", ())


class ServerUnreachable(ConnectionError):
    """The server of a source cannot be reached: it accepts no connection, or a proxy answers for it."""


class ServerMisbehaved(ConnectionError):
    """The connection of a source was closed because of what its server sent, however long it was up."""


@runtime_checkable
class ReachableSource(Protocol):
    """A source whose server is no process of ours: it is reconnected to, not restarted."""

    async def reach(self, within: float) -> None:
        """Raise ServerUnreachable unless the server accepts a connection in so many seconds; send nothing."""
        ...


@runtime_checkable
class KeepsConnections(Protocol):
    """A source that keeps connections for single owners: sessions of clients that can be asked."""

    def release(self, owner: str) -> None:
        """Close the connections of an owner that is gone."""
        ...


@runtime_checkable
class SubscribableSource(Protocol):
    """A source that can tell when one of its resources has changed."""

    async def follow(self, uris: frozenset[str]) -> Mapping[str, ToolcribError]:
        """Tell of these and no others, from now on; return what cannot be told, and why.

        Only called while `run` is live, and again by whoever runs it after every start.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Upkeep:
    """How a source is kept alive. Times are seconds."""

    restart: bool = True
    most_restarts: int = 5
    """Restarts in a row, none of which lived long enough to count as stable, before it is a crash loop."""
    backoff: float = 1.0
    """The pause before the first restart; it doubles, with jitter."""
    lazy: bool = False
    """Start on the first call rather than with the gateway."""
    idle: float | None = None
    """Stop after so long without a call, until the next one; None for never."""
    grace: float = 600.0
    """How long the tools of a source that is down stay listed."""


State = Literal["starting", "up", "down", "crash_loop", "asleep", "stopped"]
"""`asleep`: not running, and a call starts it. `stopped`: not running, and nothing but an operator does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceState:
    """How a source is doing, as operators see it."""

    id: str
    state: State
    family: Family = "function"
    tools: int = 0
    restarts: int = 0
    last_error: str | None = None
    since: float = 0.0
    details: Mapping[str, Any] = field(default_factory=dict[str, Any])
