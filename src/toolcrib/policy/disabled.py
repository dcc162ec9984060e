"""Rule: hides tools that the operator hid or the caller disabled."""

from collections.abc import Callable, Hashable
from operator import attrgetter

from toolcrib.interfaces import Reason
from toolcrib.model import Caller, Tool


class DisabledRule:
    """Rule: hides tools with a hiding override, and tools or whole sources the caller disabled."""

    name = "disabled"

    def concerns(self, tool: Tool) -> bool:
        """Return True: a caller may disable every tool."""
        del tool
        return True

    def why_not(self, tool: Tool, caller: Caller) -> Reason | None:
        """Hide tools that are hidden or disabled."""
        if tool.hidden:
            return Reason(self.name, "was hidden by the operator")
        if caller.disabled and (tool.name in caller.disabled or tool.source in caller.disabled):
            return Reason(self.name, "was disabled by the user")
        return None

    @property
    def audience(self) -> Callable[[Caller], Hashable]:
        """Gets the caller's disabled tools and sources, on which alone the rule depends."""
        return attrgetter("disabled")
