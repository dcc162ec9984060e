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

_CANCEL_RETRY_SECONDS = 0.05
"""Seconds until a task that swallowed its cancellation is cancelled again."""


class InFlightCall:
    """One call in flight, its task, and how many cancellations of that task we have requested.

    The task is cancelled directly: a cancel scope per call would cost four times as much.
    """

    __slots__ = ("call", "cancellations", "lost", "task")

    def __init__(self, call: Call, task: "asyncio.Task[object]") -> None:
        self.call, self.task, self.cancellations, self.lost = call, task, 0, False

    def is_cancelled(self) -> bool:
        """Whether someone other than us has requested cancellation of the task."""
        return self.task.cancelling() > self.cancellations

    def uncancel(self) -> None:
        """Withdraw our own cancellation requests with `uncancel`."""
        while self.cancellations:
            self.cancellations -= 1
            self.task.uncancel()


class InFlightCalls(set[InFlightCall]):
    """The calls in flight of one source. A set: the hot path pays only for `add` and `discard`."""

    def ids(self) -> tuple[str, ...]:
        """Return the sorted ids of the calls."""
        return tuple(sorted(entry.call.id for entry in self))

    def cancel(self) -> None:
        """Cancel all current calls: their responses can no longer arrive."""
        for entry in self:
            entry.lost = True
        if self:
            self._cancel(asyncio.get_running_loop())

    def _lost_calls(self) -> Iterator[InFlightCall]:
        return (entry for entry in self if entry.lost)

    def _cancel(self, loop: asyncio.AbstractEventLoop) -> None:
        """Cancel the tasks of lost calls, repeatedly until they end."""
        current = asyncio.current_task(loop)
        for entry in self._lost_calls():
            # A running task is skipped: its cancellation would be delivered at its next await, anywhere.
            if entry.task is not current:
                entry.cancellations += 1
                entry.task.cancel()
        if any(self._lost_calls()):
            loop.call_later(_CANCEL_RETRY_SECONDS, self._cancel, loop)


def lost(tool: Tool) -> Lost:
    """Return the error of a call interrupted by its source's death: safe to retry, or outcome unknown."""
    if tool.read_only or tool.idempotent:
        return Lost("SOURCE_DOWN", f"{tool.source} stopped during the call; it is safe to try again")
    message = f"{tool.source} stopped during the call; it may have taken effect, so check before trying again"
    return Lost("OUTCOME_UNKNOWN", message)


# --- Catalog entries of one source: published, degraded while it is down, removed after the grace period ---

log = logging.getLogger(__name__)

CallLater = Callable[[float, Callable[[], None]], anyio.CancelScope]
"""Schedules a callback after a delay in seconds; returns the scope that cancels it."""


class PublishedTools:
    """The tools that one instance publishes. It writes to the catalog only while it is active."""

    def __init__(
        self, id: str, sink: ToolSink, call_later: CallLater, *, grace: float, remembered: Offer | None
    ) -> None:
        self.id, self.offer = id, remembered
        self.active = self.expired = False
        self._sink, self._call_later, self._grace = sink, call_later, grace
        self._expiry: anyio.CancelScope | None = None

    @property
    def tools(self) -> int:
        """Return the number of listed tools."""
        return 0 if self.offer is None or self.expired else len(self.offer.tools)

    def activate(self, previous: "PublishedTools | None", *, healthy: bool) -> None:
        """Become the active instance; the previous offer stays published until this instance has its own."""
        self.active = True
        if previous is not None and self.offer is None:
            self.offer, self.expired = previous.offer, previous.expired
        if self.offer is not None and not self.expired:
            self._sink.replace(self.id, self.offer, degraded=not healthy)

    def publish(self, offer: Offer) -> None:
        """Publish a new offer."""
        self.offer, self.expired = offer, False
        self._cancel_expiry()
        if self.active:
            self._sink.replace(self.id, offer)

    def degrade(self) -> None:
        """Mark the tools as degraded; after the grace period they are removed."""
        if not self.active:
            return
        self._sink.degrade(self.id, True)
        if self._expiry is None and not self.expired:
            self._expiry = self._call_later(self._grace, self._expire)

    def deactivate(self) -> None:
        """Stop being the active instance; the catalog entries belong to the next one from now on."""
        self.active = False
        self._cancel_expiry()

    def _expire(self) -> None:
        log.warning("%s has been down for %g s; its tools are listed no more", self.id, self._grace)
        self._expiry, self.expired = None, True
        self._sink.remove(self.id)

    def _cancel_expiry(self) -> None:
        if self._expiry is not None:
            self._expiry.cancel()
            self._expiry = None


# --- Resource subscriptions: reports the wanted resources to sources and delivers their update notifications

SUBSCRIBE_TIMEOUT_SECONDS = 30.0
"""For a source to accept a changed set of subscriptions."""

WantedUris = Callable[[str], frozenset[str]]
"""Returns the resource URIs of a source that have subscribers now."""
OnUpdate = Callable[[str, str], None]
"""Callback for an updated resource: source id and URI. Must not block."""


class ResourceUpdates:
    """Connects the subscribers of resources with the sources that publish updates."""

    def __init__(
        self, start: Callable[[Callable[[Source], Coroutine[Any, Any, None]], Source], None]
    ) -> None:
        self._start = start
        # Without subscribers, until `connect` is called.
        self.wanted: WantedUris = lambda _source: frozenset()
        self.updated: OnUpdate = lambda _source, _uri: None

    def connect(self, wanted: WantedUris, updated: OnUpdate) -> None:
        """Set the lookup of wanted subscriptions and the callback for updates."""
        self.wanted, self.updated = wanted, updated

    def subscribe(self, source: Source) -> None:
        """Start a task that sends the current subscriptions to a source that is up."""
        if isinstance(source, SubscribableSource):
            self._start(self._subscribe, source)

    async def _subscribe(self, source: Source) -> None:
        refused: Mapping[str, Exception] = {}
        try:
            with anyio.move_on_after(SUBSCRIBE_TIMEOUT_SECONDS):
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

    sink: ToolSink
    call_later: CallLater
    on_change: "Callable[[SourceRunner], None]"
    """Called when a runner has settled, and whenever its source goes down."""
    crash_loop_delay: float
    """Seconds between two starts of a source in a crash loop."""
    resource_updates: ResourceUpdates
    """The resource subscriptions and the callback for their updates."""
    unreachable: set[Reconnect] = field(default_factory=set[Reconnect])
    """The unreachable servers that are being probed now."""
    reconnected: Callable[[str], None] = lambda _: None
    """Called with the id of a source that is reachable again after an outage."""


class RunLink:
    """The SourceLink of one run; once the run is abandoned, its events are ignored."""

    def __init__(self, runner: "SourceRunner") -> None:
        self._runner, self.active = runner, True

    def up(self, offer: Offer) -> None:
        """Report that the source is up, or that its offer has changed."""
        if self.active:
            self._runner.came_up(offer)

    def down(self, reason: str) -> None:
        """Report that the source has lost its server."""
        if self.active:
            self._runner.connection_lost(one_line(reason))

    def updated(self, uri: str) -> None:
        """Report that a resource was updated."""
        if self.active:
            self._runner.resource_updated(uri)
