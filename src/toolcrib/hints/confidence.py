"""Confidence in a result: one formula over five factors, each from 0 (bad) to 1 (good)."""

from toolcrib.model import Evidence
from toolcrib.model.hints import Freshness, Quality

QUALITY: dict[Quality, float] = {"high": 0.98, "medium": 0.85, "unknown": 0.75, "low": 0.55}
"""Numeric value of each quality word."""
FRESHNESS: dict[Freshness, float] = {
    "current": 1.0,
    "fresh": 0.95,
    "recent": 0.8,
    "unknown": 0.6,
    "stale": 0.4,
    "outdated": 0.1,
}
"""Numeric value of each freshness word."""
FLOOR = {"freshness": 0.6, "completeness": 0.5, "validation": 0.3, "success": 0.4}
"""Factor that remains if a component is 0."""

SURE, UNSURE = 0.8, 0.3
"""Validation of a failure: explained by a known rule, or by an unexpected fault."""

_PRIOR, _WORTH = 0.9, 4.0
"""Prior for success: a rate of 0.9, weighted as four calls."""


def confidence(evidence: Evidence) -> float:
    """Return quality times a factor for each other component; it is monotonic in all five."""
    trust = evidence.quality
    for name, floor in FLOOR.items():
        trust *= floor + (1.0 - floor) * getattr(evidence, name)
    return round(min(1.0, max(0.0, trust)), 3)


def success(rate: float, calls: int) -> float:
    """Return the Bayesian average of a success rate: the prior dominates while there are few calls."""
    return (rate * calls + _PRIOR * _WORTH) / (calls + _WORTH)
