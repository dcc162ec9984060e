"""What callers may spend and what is said to them meanwhile: put together from the contexts."""

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
    """Energy as it is counted, asked about and taken."""

    contexts: Contexts
    meter: EnergyMeter
    rule: EnergyRule

    @classmethod
    def of(cls, document: Document, contexts: Contexts, shared: Shared) -> Self:
        """Make it as the config says."""
        said = document.energy
        meter = EnergyMeter(shared, EnergyAllowance(start=said.start, recover=said.recover_per_s))
        return cls(contexts, meter, EnergyRule(contexts, meter.level, said.default_cost))

    def spend(self) -> Spend:
        """Return the step that takes what a call costs."""
        return Spend(self.rule.counts, self.rule.cost, self.meter.take)

    def silent(self, call: Call) -> bool:
        """Whether nobody says that a call takes a while: by the context, else by who does the talking."""
        context = self.contexts.contexts.get(call.caller.context)
        if context is not None and context.slow_response is not None:
            return not context.slow_response
        named = call.origin.provider or (None if context is None else context.provider)
        provider = None if named is None else PROVIDERS.get(named)
        return provider is not None and provider.bounds.owns_audio
