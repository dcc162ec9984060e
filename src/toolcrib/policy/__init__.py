"""Access policy: one query that every frontend evaluates for each list of tools and each call."""

from collections.abc import Hashable, Sequence

from toolcrib.interfaces import Reason, Rule
from toolcrib.model import Caller, Tool
from toolcrib.policy.contexts import Context, Contexts
from toolcrib.policy.disabled import DisabledRule
from toolcrib.policy.energy import EnergyRule
from toolcrib.policy.hardware import HardwareRule
from toolcrib.policy.installed import InstalledRule
from toolcrib.policy.permissions import PermissionsRule
from toolcrib.policy.pinned import PinnedRule
from toolcrib.policy.removed import RemovedRule

__all__ = [
    "Context",
    "Contexts",
    "DisabledRule",
    "EnergyRule",
    "HardwareRule",
    "InstalledRule",
    "PermissionsRule",
    "PinnedRule",
    "Policy",
    "RemovedRule",
]


_MAX_CACHED_TOOLS = 20_000


class Policy:
    """Combines the rules. Hiding takes precedence, so that a denial never reveals a hidden tool."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self.rules = tuple(rules)
        self._audiences = tuple(rule.audience for rule in self.rules)
        self._concerning: dict[str, tuple[Tool, tuple[Rule, ...]]] = {}
        """The rules that concern each tool, with the definition they were chosen for."""
        self._scope = tuple(rule for rule in self.rules if isinstance(rule, Contexts | InstalledRule))

    def why_not(self, tool: Tool, caller: Caller) -> Reason | None:
        """Return why this caller may not use this tool, or None; a hiding reason precedes a denying one."""
        denial: Reason | None = None
        cached = self._concerning.get(tool.name)
        for rule in cached[1] if cached is not None and cached[0] is tool else self._choose_rules(tool):
            reason = rule.why_not(tool, caller)
            if reason is not None:
                if reason.effect == "hide":
                    return reason
                denial = denial or reason
        return denial

    def visible(self, tool: Tool, caller: Caller) -> bool:
        """Whether this tool is in this caller's list."""
        return self.why_not(tool, caller) is None

    def in_scope(self, tool: Tool, caller: Caller) -> bool:
        """Whether the caller's context and installed apps select this tool, usable or not."""
        return all(rule.why_not(tool, caller) is None for rule in self._scope)

    def owner(self, claimants: Sequence[Tool], caller: Caller) -> Tool | None:
        """Return the owner of a name for this caller: the first claimant in its scope.

        An owner that is hidden, denied or down does not pass the name on to another tool.
        """
        return next((tool for tool in claimants if self.in_scope(tool, caller)), None)

    def audience(self, caller: Caller) -> Hashable:
        """Return the cache key of a caller's list: callers with equal audiences share serialized bytes."""
        return tuple([audience(caller) for audience in self._audiences])

    def _choose_rules(self, tool: Tool) -> tuple[Rule, ...]:
        """Cache the rules that concern a tool, so that a call evaluates no others."""
        if len(self._concerning) >= _MAX_CACHED_TOOLS:
            self._concerning.clear()
        chosen = tuple(rule for rule in self.rules if rule.concerns(tool))
        self._concerning[tool.name] = (tool, chosen)
        return chosen
