"""What one instance of a source has around it, and what each of its runs is linked to it by."""

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
    """What a life has around it: where its tools are shown, who hears of its changes, how patient all are."""

    shelf: ToolSink
    later: Later
    hear: "Callable[[SourceRunner], None]"
    """Told when it has settled, and whenever it goes down."""
    patience: float
    """The pause between two tries of a source in a crash loop."""
    news: ResourceUpdates
    """What of its resources others follow, and who hears of these."""
    away: set[Reconnect] = field(default_factory=set[Reconnect])
    """The servers that are reconnected to now."""
    reconnected: Callable[[str], None] = lambda _: None
    """Called with the id of a source whose server was away and is back."""


class RunLink:
    """What one run of a source holds on to; it means nothing any more once that run is given up."""

    def __init__(self, life: "SourceRunner") -> None:
        self._life, self.held = life, True

    def up(self, offer: Offer) -> None:
        """Pass on what the source offers."""
        if self.held:
            self._life.came_up(offer)

    def down(self, reason: str) -> None:
        """Pass on that the source has lost its server."""
        if self.held:
            self._life.was_lost(one_line(reason))

    def updated(self, uri: str) -> None:
        """Pass on that a resource has changed."""
        if self.held:
            self._life.was_updated(uri)
