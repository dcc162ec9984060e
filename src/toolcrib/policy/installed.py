"""A tool of an app that the user has not installed is not there."""

from collections.abc import Hashable

from toolcrib.interfaces import Reason
from toolcrib.model import Caller, Tool


class InstalledRule:
    """The rule: an app's tools are for those who have installed it, as long as they have a session."""

    name = "installed"

    def why_not(self, tool: Tool, caller: Caller) -> Reason | None:
        """Hide what belongs to an app the user does not have."""
        if tool.family != "app" or tool.source in caller.apps:
            return None
        if caller.user is None:
            return Reason(self.name, "is a tool of an app, and this caller acts for no user")
        if not caller.session:
            return Reason(self.name, "is a tool of an app, and the user has no active session")
        return Reason(self.name, f"is a tool of {tool.source}, which the user has not installed")

    def audience(self, caller: Caller) -> Hashable:
        """All that matters is what is installed."""
        return caller.apps
