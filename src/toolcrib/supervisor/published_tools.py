"""What of a source's tools is on the shelf: as it offers them, marked while it is down, then gone."""

import logging
from collections.abc import Callable

import anyio

from toolcrib.interfaces import Offer
from toolcrib.supervisor.tool_sink import ToolSink

log = logging.getLogger(__name__)

Later = Callable[[float, Callable[[], None]], anyio.CancelScope]
"""Does something after so many seconds, unless it is cancelled."""


class PublishedTools:
    """What one instance has to show. It is on the shelf only while that instance holds its id's place."""

    def __init__(
        self, id: str, shelf: ToolSink, later: Later, *, grace: float, remembered: Offer | None
    ) -> None:
        self.id, self.offer = id, remembered
        self.placed = self.faded = False
        self._shelf, self._later, self._grace = shelf, later, grace
        self._fading: anyio.CancelScope | None = None

    @property
    def tools(self) -> int:
        """How many tools can be listed."""
        return 0 if self.offer is None or self.faded else len(self.offer.tools)

    def place(self, before: "PublishedTools | None", *, sound: bool) -> None:
        """Go on the shelf; what an older instance offered stays there until there is something newer."""
        self.placed = True
        if before is not None and self.offer is None:
            self.offer, self.faded = before.offer, before.faded
        if self.offer is not None and not self.faded:
            self._shelf.replace(self.id, self.offer, degraded=not sound)

    def show(self, offer: Offer) -> None:
        """Show what is offered now."""
        self.offer, self.faded = offer, False
        self._stop_fading()
        if self.placed:
            self._shelf.replace(self.id, offer)

    def dim(self) -> None:
        """Mark the tools as those of a source that is down; after the time of grace they go."""
        if not self.placed:
            return
        self._shelf.degrade(self.id, True)
        if self._fading is None and not self.faded:
            self._fading = self._later(self._grace, self._fade)

    def leave(self) -> None:
        """Give up the place; what is shown is another's business now."""
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
