"""Where the tools of sources are shown; the catalog is one."""

from typing import Protocol

from toolcrib.interfaces import Offer


class ToolSink(Protocol):
    """Holds what each source offers. A source it does not know has nothing to mark or take away."""

    def replace(self, source: str, offer: Offer, *, degraded: bool = False) -> None:
        """Show all that a source offers, in place of what it offered before."""
        ...

    def degrade(self, source: str, degraded: bool) -> None:  # noqa: FBT001 - it says the name of the method
        """Mark the tools of a source as those of one that is down, or as sound again."""
        ...

    def remove(self, source: str) -> None:
        """Show nothing of a source any more."""
        ...
