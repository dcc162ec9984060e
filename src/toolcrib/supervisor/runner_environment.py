"""What a source runner works with: published tools, calls in flight and resource updates."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import anyio

from toolcrib.errors import Lost
from toolcrib.interfaces import Offer, Source, SubscribableSource
from toolcrib.model import Call, Tool
from toolcrib.supervisor.backoff import Reconnect, one_line, reason

if TYPE_CHECKING:
    from toolcrib.supervisor.source_runner import SourceRunner

# --- Protocol through which the supervisor publishes tools; the catalog implements it ---


class ToolSink(Protocol):
    """Stores what each source offers. `degrade` and `remove` of an unknown source do nothing."""

    def replace(self, source: str, offer: Offer, *, degraded: bool = False) -> None:
        """Publish the full offer of a source, replacing the previous one."""
        ...

    def degrade(self, source: str, degraded: bool) -> None:  # noqa: FBT001 - same name as the method
        """Mark the tools of a source as degraded, or as healthy again."""
        ...

    def remove(self, source: str) -> None:
        """Remove all tools of a source."""
        ...


# --- Calls in flight on one source: all of them are cancelled when the source dies ---

_AGAIN = 0.05
"""Seconds until a task that swallowed its cancellation is cancelled again."""


class InFlightCall:
    """One call in flight, its task, and how many cancellations of that task we have requested.

    The task is cancelled directly: a cancel scope per call would cost four times as much.
    """

    __slots__ = ("call", "lost", "task", "told")

    def __init__(self, call: Call, task: "asyncio.Task[object]") -> None:
        self.call, self.task, self.told, self.lost = call, task, 0, False

    def is_cancelled(self) -> bool:
        """Whether someone other than us has requested cancellation of the task."""
        return self.task.cancelling() > self.told

    def take_back(self) -> None:
        """Withdraw our own cancellation requests with `uncancel`."""
        while self.told:
            self.told -= 1
            self.task.uncancel()


class InFlightCalls(set[InFlightCall]):
    """The calls in flight of one source. A set: the hot path pays only for `add` and `discard`."""

    def ids(self) -> tuple[str, ...]:
        """Return the sorted ids of the calls."""
        return tuple(sorted(flight.call.id for flight in self))

    def end(self) -> None:
        """Cancel all current calls: their responses can no longer arrive."""
        for flight in self:
            flight.lost = True
        if self:
            self._tell(asyncio.get_running_loop())

    def _lost(self) -> Iterator[InFlightCall]:
        return (flight for flight in self if flight.lost)

    def _tell(self, loop: asyncio.AbstractEventLoop) -> None:
        """Cancel the tasks of lost calls, repeatedly until they end."""
        current = asyncio.current_task(loop)
        for flight in self._lost():
            # A running task is skipped: its cancellation would be delivered at its next await, anywhere.
            if flight.task is not current:
                flight.told += 1
                flight.task.cancel()
        if any(self._lost()):
            loop.call_later(_AGAIN, self._tell, loop)


def lost(tool: Tool) -> Lost:
    """Return the error of a call interrupted by its source's death: safe to retry, or outcome unknown."""
    if tool.read_only or tool.idempotent:
        return Lost("SOURCE_DOWN", f"{tool.source} stopped during the call; it is safe to try again")
    message = f"{tool.source} stopped during the call; it may have taken effect, so check before trying again"
    return Lost("OUTCOME_UNKNOWN", message)


# --- Catalog entries of one source: published, degraded while it is down, removed after the grace period ---

log = logging.getLogger(__name__)

Later = Callable[[float, Callable[[], None]], anyio.CancelScope]
"""Schedules a callback after a delay in seconds; returns the scope that cancels it."""


class PublishedTools:
    """The tools that one instance publishes. It writes to the catalog only while it is active."""

    def __init__(
        self, id: str, shelf: ToolSink, later: Later, *, grace: float, remembered: Offer | None
    ) -> None:
        self.id, self.offer = id, remembered
        self.placed = self.faded = False
        self._shelf, self._later, self._grace = shelf, later, grace
        self._fading: anyio.CancelScope | None = None

    @property
    def tools(self) -> int:
        """Return the number of listed tools."""
        return 0 if self.offer is None or self.faded else len(self.offer.tools)

    def place(self, before: "PublishedTools | None", *, sound: bool) -> None:
        """Become the active instance; the previous offer stays published until this instance has its own."""
        self.placed = True
        if before is not None and self.offer is None:
            self.offer, self.faded = before.offer, before.faded
        if self.offer is not None and not self.faded:
            self._shelf.replace(self.id, self.offer, degraded=not sound)

    def show(self, offer: Offer) -> None:
        """Publish a new offer."""
        self.offer, self.faded = offer, False
        self._stop_fading()
        if self.placed:
            self._shelf.replace(self.id, offer)

    def dim(self) -> None:
        """Mark the tools as degraded; after the grace period they are removed."""
        if not self.placed:
            return
        self._shelf.degrade(self.id, True)
        if self._fading is None and not self.faded:
            self._fading = self._later(self._grace, self._fade)

    def leave(self) -> None:
        """Stop being the active instance; the catalog entries belong to the next one from now on."""
        self.placed = False
        self._stop_fading()

    def _fade(self) -> None:
        log.warning("%s has been down for %g s; its tools are listed no more", self.id, self._grace)
        self._fading, self.faded = None, True
        self._shelf.remove(self.id)

    def _stop_fading(self) -> None:
        if self._fading is not None:
            self._fading.cancel()
            self._fading = None


# --- Resource subscriptions: reports the wanted resources to sources and delivers their update notifications
# ---

PATIENCE = 30.0
"""Seconds that a source has to accept a changed set of subscriptions."""

Wanted = Callable[[str], frozenset[str]]
"""Returns the resource URIs of a source that have subscribers now."""
Updated = Callable[[str, str], None]
"""Callback for an updated resource: source id and URI. Must not block."""


def _nothing(_source: str) -> frozenset[str]:
    """Return no subscriptions; the default until `attend` is called."""
    return frozenset()


def _unheard(_source: str, _uri: str) -> None:
    """Discard the notification; the default until `attend` is called."""


class ResourceUpdates:
    """Connects the subscribers of resources with the sources that publish updates."""

    def __init__(
        self, start: Callable[[Callable[[Source], Coroutine[Any, Any, None]], Source], None]
    ) -> None:
        self._start = start
        self.wanted: Wanted = _nothing
        self.updated: Updated = _unheard

    def attend(self, wanted: Wanted, updated: Updated) -> None:
        """Set the lookup of wanted subscriptions and the callback for updates."""
        self.wanted, self.updated = wanted, updated

    def agree(self, source: Source) -> None:
        """Start a task that sends the current subscriptions to a source that is up."""
        if isinstance(source, SubscribableSource):
            self._start(self._agree, source)

    async def _agree(self, source: Source) -> None:
        refused: Mapping[str, Exception] = {}
        try:
            with anyio.move_on_after(PATIENCE):
                if isinstance(source, SubscribableSource):
                    refused = await source.follow(self.wanted(source.id))
        except Exception as error:  # noqa: BLE001 - the boundary: what one source raises must not end the others
            log.warning("%s does not tell what has changed: %s", source.id, reason(error))
        for uri, error in refused.items():
            log.warning("%s does not tell of changes to %s: %s", source.id, uri[:200], reason(error))


# --- Dependencies of a source runner, and the link from one run of a source back to its runner ---


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerEnvironment:
    """Dependencies shared by all source runners: tool sink, timers, callbacks, crash-loop delay."""

    shelf: ToolSink
    later: Later
    hear: "Callable[[SourceRunner], None]"
    """Called when a runner has settled, and whenever its source goes down."""
    patience: float
    """Seconds between two starts of a source in a crash loop."""
    news: ResourceUpdates
    """The resource subscriptions and the callback for their updates."""
    away: set[Reconnect] = field(default_factory=set[Reconnect])
    """The unreachable servers that are being probed now."""
    reconnected: Callable[[str], None] = lambda _: None
    """Called with the id of a source that is reachable again after an outage."""


class RunLink:
    """The SourceLink of one run; once the run is abandoned, its events are ignored."""

    def __init__(self, life: "SourceRunner") -> None:
        self._life, self.held = life, True

    def up(self, offer: Offer) -> None:
        """Report that the source is up, or that its offer has changed."""
        if self.held:
            self._life.came_up(offer)

    def down(self, reason: str) -> None:
        """Report that the source has lost its server."""
        if self.held:
            self._life.was_lost(one_line(reason))

    def updated(self, uri: str) -> None:
        """Report that a resource was updated."""
        if self.held:
            self._life.was_updated(uri)
