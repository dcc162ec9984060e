"""Catalog entries of one source: published, degraded while it is down, removed after the grace period."""

import logging
from collections.abc import Callable

import anyio

from toolcrib.interfaces import Offer
from toolcrib.supervisor.tool_sink import ToolSink

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
