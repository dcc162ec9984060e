"""A tool the operator hid, or the caller switched off, is not there."""

from collections.abc import Hashable

from toolcrib.interfaces import Reason
from toolcrib.model import Caller, Tool


class DisabledRule:
    """The rule: hidden by an override, or switched off by the caller, alone or with its whole source."""

    name = "disabled"

    def why_not(self, tool: Tool, caller: Caller) -> Reason | None:
        """Hide what is hidden or switched off."""
        if tool.hidden:
            return Reason(self.name, "was hidden by the operator")
        if caller.disabled and (tool.name in caller.disabled or tool.source in caller.disabled):
            return Reason(self.name, "was switched off by the user")
        return None

    def audience(self, caller: Caller) -> Hashable:
        """All that matters is what the caller switched off."""
        return caller.disabled
