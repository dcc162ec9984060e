"""The hint fields every result carries, as agents read them: written down once, apart from the code."""

ELEVEN = frozenset(
    {
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
    }
)
