"""Energy budgets: builds the meter, the policy rule and the step that charges calls, from the config."""

from dataclasses import dataclass
from typing import Self

from toolcrib.config import Document
from toolcrib.formats import PROVIDERS
from toolcrib.gateway.energy import EnergyMeter
from toolcrib.interfaces import EnergyAllowance, Shared
from toolcrib.model import Call
from toolcrib.policy import Contexts, EnergyRule
from toolcrib.steps.spend import Spend


@dataclass(frozen=True)
class EnergyBudget:
    """The energy meter, the policy rule that reads it, and the contexts that bound it."""

    contexts: Contexts
    meter: EnergyMeter
    rule: EnergyRule

    @classmethod
    def of(cls, document: Document, contexts: Contexts, shared: Shared) -> Self:
        """Build it from the `energy` section of the config."""
        said = document.energy
        meter = EnergyMeter(shared, EnergyAllowance(start=said.start, recover=said.recover_per_s))
        return cls(contexts, meter, EnergyRule(contexts, meter.level, said.default_cost))

    def spend(self) -> Spend:
        """Return the step that charges the cost of a call."""
        return Spend(self.rule.counts, self.rule.cost, self.meter.take)

    def silent(self, call: Call) -> bool:
        """Whether slow-response messages are off: by the context, else if the provider owns the audio."""
        context = self.contexts.contexts.get(call.caller.context)
        if context is not None and context.slow_response is not None:
            return not context.slow_response
        named = call.origin.provider or (None if context is None else context.provider)
        provider = None if named is None else PROVIDERS.get(named)
        return provider is not None and provider.bounds.owns_audio
