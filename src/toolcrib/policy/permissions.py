"""A caller needs every permission a tool asks for."""

from collections.abc import Hashable

from toolcrib.interfaces import Reason
from toolcrib.model import Caller, Tool

TOOLS = "tools"
"""With `auth.default: deny`, `tools:SOURCE` and `tools:*` open the tools that ask for no permission."""


class PermissionsRule:
    """The rule: what is missing keeps a tool off the list, and its call says which permission that is."""

    name = "permissions"

    def __init__(self, *, deny: bool = False) -> None:
        self._deny = deny
        """Whether a tool that asks for no permission needs `tools:SOURCE`, as `auth.default: deny` says."""

    def why_not(self, tool: Tool, caller: Caller) -> Reason | None:
        """Deny where a permission is missing, and name it."""
        needed = tool.permissions
        if self._deny and not needed:
            needed = frozenset({f"{TOOLS}:{tool.source}"})
        if needed <= caller.permissions:
            return None
        missing = sorted(each for each in needed if not caller.may(each))
        if not missing:
            return None
        return Reason(self.name, f"needs the permission {', '.join(missing)}", "deny")

    def audience(self, caller: Caller) -> Hashable:
        """All that matters is what the caller holds."""
        return caller.permissions
