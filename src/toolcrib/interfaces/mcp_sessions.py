"""The seam to what lasts of MCP sessions: when one was last used, and which have ended."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

FORGOTTEN = "forgotten"
"""Id of the row that says up to which time ends were dropped; that of one principal goes on with its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class McpSessionRow:
    """What is stored of an MCP session beside its token."""

    id: str
    """Hash of the token's random part."""
    principal: str
    """Whom it belongs to."""
    used: float
    """When it was last used, or ended; by the store's clock."""
    ended: bool = False


class StoredMcpSessions(Protocol):
    """MCP sessions that are older than an hour or have ended; of all others the token says everything."""

    async def get(self, id: str) -> McpSessionRow | None:
        """What is stored of a session."""
        ...

    async def end(self, row: McpSessionRow) -> None:
        """Store that a session has ended, for good."""
        ...

    async def renew(self, rows: Sequence[McpSessionRow]) -> None:
        """Store when sessions were last used; one that has ended, or was used later, stays as it is."""
        ...

    async def ended_since(self, moment: float) -> Sequence[str]:
        """The ids of sessions that ended at a moment or later."""
        ...

    async def prune(self, before: float, *, most: int, per_principal: int) -> int:
        """Forget what was last used earlier, and the longest unused beyond a number; how many went."""
        ...
