"""Document in, running gateway out: the step order, and the one place that knows all the others."""

from toolcrib.runtime.runtime import Runtime, build
from toolcrib.runtime.step_order import order

__all__ = ["Runtime", "build", "order"]
