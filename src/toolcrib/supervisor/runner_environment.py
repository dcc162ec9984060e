"""Dependencies of a source runner, and the link from one run of a source back to its runner."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from toolcrib.interfaces import Offer
from toolcrib.supervisor.failure_reasons import one_line
from toolcrib.supervisor.published_tools import Later
from toolcrib.supervisor.reconnect import Reconnect
from toolcrib.supervisor.resource_updates import ResourceUpdates
from toolcrib.supervisor.tool_sink import ToolSink

if TYPE_CHECKING:
    from toolcrib.supervisor.source_runner import SourceRunner


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
