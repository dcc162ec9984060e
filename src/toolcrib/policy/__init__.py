"""Who may see and use what: one question, asked by every face for every list and every call."""

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


class Policy:
    """The rules, combined. What hides a tool is asked first, so that a denial never betrays a hidden one."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self.rules = tuple(rules)
        self._scope = tuple(rule for rule in self.rules if isinstance(rule, Contexts | InstalledRule))

    def why_not(self, tool: Tool, caller: Caller) -> Reason | None:
        """Return the reason against this tool for this caller; one that hides goes before one that denies."""
        denial: Reason | None = None
        for rule in self.rules:
            reason = rule.why_not(tool, caller)
            if reason is not None:
                if reason.effect == "hide":
                    return reason
                denial = denial or reason
        return denial

    def visible(self, tool: Tool, caller: Caller) -> bool:
        """Whether this tool is on this caller's list."""
        return self.why_not(tool, caller) is None

    def in_scope(self, tool: Tool, caller: Caller) -> bool:
        """Whether a tool is among those that a caller's context and apps select, usable or not."""
        return all(rule.why_not(tool, caller) is None for rule in self._scope)

    def owner(self, claimants: Sequence[Tool], caller: Caller) -> Tool | None:
        """Return whom a name belongs to for this caller: the first claimant in its scope.

        That it cannot be used now, being hidden, denied or away, does not pass the name on to another.
        """
        return next((tool for tool in claimants if self.in_scope(tool, caller)), None)

    def audience(self, caller: Caller) -> Hashable:
        """Return what of a caller decides its list: callers of one audience share prepared bytes."""
        return tuple([rule.audience(caller) for rule in self.rules])
