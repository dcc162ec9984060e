"""Store protocol for MCP sessions: last use, and ended sessions."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

FORGOTTEN = "forgotten"
"""Id of the row with the time up to which ended sessions were pruned; a principal's row appends its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class McpSessionRow:
    """The stored state of an MCP session; the rest is in its token."""

    id: str
    """Hash of the token's random part."""
    principal: str
    """Principal that owns the session."""
    used: float
    """Time of its last use or its end, by the store's clock."""
    ended: bool = False


class StoredMcpSessions(Protocol):
    """Stored MCP sessions: those older than an hour, and ended ones; for all others the token suffices."""

    async def get(self, id: str) -> McpSessionRow | None:
        """Return the stored state of a session, if any."""
        ...

    async def end(self, row: McpSessionRow) -> None:
        """Store the end of a session, which is final."""
        ...

    async def renew(self, rows: Sequence[McpSessionRow]) -> None:
        """Store the last use of sessions; ended ones, and those with a later use, are unchanged."""
        ...

    async def ended_since(self, moment: float) -> Sequence[str]:
        """Return the ids of sessions that ended at this moment or later."""
        ...

    async def prune(self, before: float, *, most: int, per_principal: int) -> int:
        """Delete rows unused since a time, and the least recently used past the limits; return a count."""
        ...
