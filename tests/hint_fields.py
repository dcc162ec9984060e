"""The hint fields every result carries, as agents read them: written down once, apart from the code."""

HINT_FIELDS = (
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
"""In the order of the documentation."""
HINT_FIELD_SET = frozenset(HINT_FIELDS)
