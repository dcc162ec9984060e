"""Protocol through which the supervisor publishes tools; the catalog implements it."""

from typing import Protocol

from toolcrib.interfaces import Offer


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
