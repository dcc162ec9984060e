"""Composition root: builds a running gateway from a config document, and defines the step order."""

from toolcrib.runtime.runtime import Runtime, build
from toolcrib.runtime.step_order import order

__all__ = ["Runtime", "build", "order"]
