"""The hint fields every result carries, as agents read them: written down once, apart from the code."""

IN_ORDER = (
    "suggestedNextActions",
    "relatedResources",
    "confidence",
    "sourceQuality",
    "validityPeriod",
    "contextNeeded",
    "assumptions",
    "riskFactors",
    "dependencies",
    "estimatedImpact",
    "preferenceAlignment",
)
"""As they are spelled."""
ELEVEN = frozenset(IN_ORDER)
