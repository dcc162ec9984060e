"""A caller needs every permission a tool asks for."""

from collections.abc import Hashable

from toolcrib.interfaces import Reason
from toolcrib.model import Caller, Tool


class Permissions:
    """The rule: what is missing keeps a tool off the list, and its call says which permission that is."""

    name = "permissions"

    def why_not(self, tool: Tool, caller: Caller) -> Reason | None:
        """Deny where a permission is missing, and name it."""
        if tool.permissions <= caller.permissions:
            return None
        missing = sorted(each for each in tool.permissions if not caller.may(each))
        if not missing:
            return None
        return Reason(self.name, f"needs the permission {', '.join(missing)}", "deny")

    def audience(self, caller: Caller) -> Hashable:
        """All that matters is what the caller holds."""
        return caller.permissions
