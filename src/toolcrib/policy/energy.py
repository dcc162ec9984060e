"""Rule: hides tools that cost more energy than the caller has left, in contexts that count energy."""

from collections.abc import Callable, Hashable
from math import inf
from typing import Literal

from toolcrib.interfaces import Reason
from toolcrib.model import Caller, Tool
from toolcrib.policy.contexts import Context, Contexts

Band = Literal["high", "medium", "low", "urgent"]

BANDS: tuple[tuple[Band, float], ...] = (("high", 50.0), ("medium", 20.0), ("low", 0.0))
"""Each band and its lower bound; below the last bound the band is urgent."""
MAX_COST_BY_BAND: dict[Band, float] = {"high": inf, "medium": 50.0, "low": 20.0, "urgent": 0.0}
"""Maximum cost of a tool that a caller in each band may use."""
AWAIT_ENERGY_TOOL = "crib:await_energy"
"""The tool that waits for energy: visible exactly in contexts that count energy."""


def band_of(level: float) -> Band:
    """Return the band of a level."""
    for band, lower_bound in BANDS:
        if level > lower_bound:
            return band
    return "urgent"


class EnergyRule:
    """The energy rule. `level` returns what a caller has left, by its id."""

    name = "energy"

    def __init__(self, contexts: Contexts, level: Callable[[str], float], default_cost: float) -> None:
        self._contexts, self._level, self._default = contexts, level, default_cost

    def cost(self, tool: Tool) -> float:
        """Return the energy cost of a call to a tool."""
        if tool.name == AWAIT_ENERGY_TOOL:
            return 0.0
        return self._default if tool.energy_cost is None else tool.energy_cost

    def counts(self, caller: Caller) -> bool:
        """Whether this caller's context counts energy."""
        context = self._contexts.contexts.get(caller.context)
        return context is not None and context.counts_energy

    def concerns(self, tool: Tool) -> bool:
        """Return True: a reload may make any context count energy."""
        del tool
        return True

    def why_not(self, tool: Tool, caller: Caller) -> Reason | None:
        """Hide tools that cost more than the context allows, or than the caller has left."""
        context = self._contexts.contexts.get(caller.context)
        if context is None or not context.counts_energy:
            return (
                None
                if tool.name != AWAIT_ENERGY_TOOL
                else Reason(self.name, "is only for contexts that count energy")
            )
        if context.urgent or tool.name == AWAIT_ENERGY_TOOL:
            return None
        return self._too_expensive(tool, caller, context)

    def _too_expensive(self, tool: Tool, caller: Caller, context: Context) -> Reason | None:
        cost, max_cost, min_level = self.cost(tool), context.max_energy_cost, context.min_energy
        if max_cost is not None and cost > max_cost:
            return Reason(self.name, f"costs {cost:g} energy; {caller.context} allows at most {max_cost:g}")
        level = self._level(caller.id)
        if min_level is not None and level < min_level:
            return Reason(
                self.name, f"requires {min_level:g} energy in this context; wait until it has recovered"
            )
        if cost > MAX_COST_BY_BAND[band_of(level)]:
            return Reason(self.name, f"costs {cost:g} energy, more than is left; wait until it has recovered")
        return None

    def audience(self, caller: Caller) -> Hashable:
        """Return the band, and whether the level is below the context's minimum; None without energy."""
        context = self._contexts.contexts.get(caller.context)
        if context is None or not context.counts_energy or context.urgent:
            return None
        level = self._level(caller.id)
        return band_of(level), context.min_energy is not None and level < context.min_energy
