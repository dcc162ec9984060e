"""Rule: hides tools of strictly pinned sources that differ from their trusted definition."""

from collections.abc import Hashable

from toolcrib.interfaces import Reason
from toolcrib.model import Caller, Tool


class PinnedRule:
    """Rule: hides a changed tool of a source with `pin: strict` until an operator approves it."""

    name = "pinned"

    def concerns(self, tool: Tool) -> bool:
        """Return whether the tool has an unapproved change."""
        return tool.changed == "strict"

    def why_not(self, tool: Tool, caller: Caller) -> Reason | None:
        """Hide changed tools from every caller."""
        del caller
        if tool.changed != "strict":
            return None
        return Reason(
            self.name,
            "has changed since it was approved; an operator approves it with `toolcrib pins approve`",
        )

    def audience(self, caller: Caller) -> Hashable:
        """Return None: the rule does not depend on the caller."""
        del caller
        return None
