"""What an agent is told beside a result, so that it knows its next step."""

from dataclasses import dataclass, field
from typing import Any, Literal

from toolcrib.model.json import JsonObject

Quality = Literal["high", "medium", "low", "unknown"]
Validity = Literal["immediate", "short", "medium", "long", "indefinite"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hints:
    """The eleven fields every result carries, then the ones that may be there."""

    suggested_next_actions: tuple[JsonObject, ...] = ()
    related_resources: tuple[JsonObject, ...] = ()
    confidence: float
    source_quality: Quality = "unknown"
    validity_period: Validity = "immediate"
    context_needed: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    risk_factors: tuple[JsonObject, ...] = ()
    dependencies: tuple[JsonObject, ...] = ()
    estimated_impact: JsonObject = field(default_factory=lambda: {"benefit": 0.0, "effort": 0.0, "roi": 0.0})
    preference_alignment: tuple[JsonObject, ...] = ()
    reasoning: str | None = None
    warnings: tuple[JsonObject, ...] = ()
    encoded: bytes = field(default=b"", compare=False, repr=False)
    """The same as JSON bytes, where they were prepared ahead of the call."""

    def as_json(self) -> dict[str, Any]:
        """Spell the fields as agents read them."""
        spelled: dict[str, Any] = {
            "suggestedNextActions": self.suggested_next_actions,
            "relatedResources": self.related_resources,
            "confidence": self.confidence,
            "sourceQuality": self.source_quality,
            "validityPeriod": self.validity_period,
            "contextNeeded": self.context_needed,
            "assumptions": self.assumptions,
            "riskFactors": self.risk_factors,
            "dependencies": self.dependencies,
            "estimatedImpact": self.estimated_impact,
            "preferenceAlignment": self.preference_alignment,
        }
        if self.reasoning is not None:
            spelled["reasoning"] = self.reasoning
        if self.warnings:
            spelled["warnings"] = self.warnings
        return spelled
