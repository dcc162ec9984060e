"""How far to trust a result: one formula over five things, each from 0 (bad) to 1 (good)."""

from toolcrib.model import Evidence
from toolcrib.model.hints import Freshness, Quality

QUALITY: dict[Quality, float] = {"high": 0.98, "medium": 0.85, "unknown": 0.75, "low": 0.55}
"""What the words for a source's quality count for."""
FRESHNESS: dict[Freshness, float] = {
    "current": 1.0,
    "fresh": 0.95,
    "recent": 0.8,
    "unknown": 0.6,
    "stale": 0.4,
    "outdated": 0.1,
}
"""What the words for freshness count for."""
FLOOR = {"freshness": 0.6, "completeness": 0.5, "validation": 0.3, "success": 0.4}
"""What remains of the trust where one of these is as bad as can be."""

SURE, UNSURE = 0.8, 0.3
"""How well a failure explains itself: by a rule that is known, or by something that broke."""

_PRIOR, _WORTH = 0.9, 4.0
"""A tool nobody has called yet is taken to succeed nine times in ten; that guess weighs as four calls do."""


def confidence(evidence: Evidence) -> float:
    """Quality, times what each of the other four leaves of it; it never falls when one of the five rises."""
    trust = evidence.quality
    for name, floor in FLOOR.items():
        trust *= floor + (1.0 - floor) * getattr(evidence, name)
    return round(min(1.0, max(0.0, trust)), 3)


def success(rate: float, calls: int) -> float:
    """A rate of success with the doubt that few calls leave: the more there were, the more it counts."""
    return (rate * calls + _PRIOR * _WORTH) / (calls + _WORTH)
