"""Programs from outside that tests run against: `python -m tests.parts` fetches them, fixtures use them."""

from tests.parts.registry import PARTS, Missing, may_skip, require, take

__all__ = ["PARTS", "Missing", "may_skip", "require", "take"]
