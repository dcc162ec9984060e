"""Rule: denies deprecated tools from their removal date on; the error names the replacement."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from datetime import UTC, datetime

from toolcrib.interfaces import Reason
from toolcrib.model import Caller, Tool


def _today() -> str:
    return datetime.now(UTC).date().isoformat()


@dataclass(frozen=True)
class RemovedRule:
    """Rule: past its removal date a tool is in no list, and a call to it is TOOL_REMOVED."""

    today: Callable[[], str] = _today
    name = "removed"

    def concerns(self, tool: Tool) -> bool:
        """Return whether the tool has a removal date."""
        return tool.deprecated is not None and tool.deprecated.removal_date is not None

    def why_not(self, tool: Tool, caller: Caller) -> Reason | None:
        """Deny tools past their removal date."""
        del caller
        deprecation = tool.deprecated
        if deprecation is None or deprecation.removal_date is None or self.today() < deprecation.removal_date:
            return None
        replacement = f"; use {deprecation.replacement} instead" if deprecation.replacement else ""
        return Reason(
            self.name, f"was removed on {deprecation.removal_date}{replacement}", "deny", "TOOL_REMOVED"
        )

    def audience(self, caller: Caller) -> Hashable:
        """Return the current day: the rule depends on it, not on the caller."""
        del caller
        return self.today()
