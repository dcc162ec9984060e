"""Rule: a caller needs every permission that a tool requires."""

from collections.abc import Callable, Hashable
from operator import attrgetter

from toolcrib.interfaces import Reason
from toolcrib.model import Caller, Tool

TOOLS_PERMISSION = "tools"
"""With `auth.default: deny`, `tools:SOURCE` and `tools:*` grant the tools that require no permission."""


class PermissionsRule:
    """Rule: denies tools with a missing permission; the error of a call names it."""

    name = "permissions"

    def __init__(self, *, deny: bool = False) -> None:
        self._deny = deny
        """Whether a tool that requires no permission needs `tools:SOURCE` (`auth.default: deny`)."""

    def concerns(self, tool: Tool) -> bool:
        """Return whether calling the tool may need a permission."""
        return self._deny or bool(tool.permissions)

    def why_not(self, tool: Tool, caller: Caller) -> Reason | None:
        """Deny a tool with missing permissions, and name them."""
        needed = tool.permissions
        if self._deny and not needed:
            needed = frozenset({f"{TOOLS_PERMISSION}:{tool.source}"})
        if needed <= caller.permissions:
            return None
        missing = sorted(each for each in needed if not caller.may(each))
        if not missing:
            return None
        return Reason(self.name, f"needs the permission {', '.join(missing)}", "deny")

    @property
    def audience(self) -> Callable[[Caller], Hashable]:
        """Gets the caller's permissions, on which alone the rule depends."""
        return attrgetter("permissions")
