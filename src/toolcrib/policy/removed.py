"""A deprecated tool answers until its removal date; from then on it says what replaces it."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from datetime import UTC, datetime

from toolcrib.interfaces import Reason
from toolcrib.model import Caller, Tool


def _today() -> str:
    return datetime.now(UTC).date().isoformat()


@dataclass(frozen=True)
class RemovedRule:
    """The rule: past its date a tool is off every list, and its call answers that it is gone."""

    today: Callable[[], str] = _today
    name = "removed"

    def why_not(self, tool: Tool, caller: Caller) -> Reason | None:
        """Deny what is past its date."""
        del caller
        gone = tool.deprecated
        if gone is None or gone.removal_date is None or self.today() < gone.removal_date:
            return None
        instead = f"; use {gone.replacement} instead" if gone.replacement else ""
        return Reason(self.name, f"was removed on {gone.removal_date}{instead}", "deny", "TOOL_REMOVED")

    def audience(self, caller: Caller) -> Hashable:
        """The day decides, for all callers alike."""
        del caller
        return self.today()
