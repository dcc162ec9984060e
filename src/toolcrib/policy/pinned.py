"""A tool that is no longer what was trusted is not there, where its source is pinned strictly."""

from collections.abc import Hashable

from toolcrib.interfaces import Reason
from toolcrib.model import Caller, Tool


class PinnedRule:
    """The rule: a changed tool of a source with `pin: strict` is hidden until an operator approves it."""

    name = "pinned"

    def why_not(self, tool: Tool, caller: Caller) -> Reason | None:
        """Hide what has changed, from everyone."""
        del caller
        if tool.changed != "strict":
            return None
        return Reason(
            self.name,
            "has changed since it was approved; an operator approves it with `toolcrib pins approve`",
        )

    def audience(self, caller: Caller) -> Hashable:
        """The definition decides, for all callers alike."""
        del caller
        return None
