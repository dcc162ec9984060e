"""Rule: hides tools of apps that the user has not installed."""

from collections.abc import Callable, Hashable
from operator import attrgetter

from toolcrib.interfaces import Reason
from toolcrib.model import Caller, Tool


class InstalledRule:
    """Rule: an app's tools are visible to users who installed it, while they have an active session."""

    name = "installed"

    def concerns(self, tool: Tool) -> bool:
        """Return whether the tool is one of an app."""
        return tool.family == "app"

    def why_not(self, tool: Tool, caller: Caller) -> Reason | None:
        """Hide tools of apps that are not installed."""
        if tool.family != "app" or tool.source in caller.apps:
            return None
        if caller.user is None:
            return Reason(self.name, "is a tool of an app, and this caller acts for no user")
        if not caller.session:
            return Reason(self.name, "is a tool of an app, and the user has no active session")
        return Reason(self.name, f"is a tool of {tool.source}, which the user has not installed")

    @property
    def audience(self) -> Callable[[Caller], Hashable]:
        """Gets the caller's installed apps, on which alone the rule depends."""
        return attrgetter("apps")
