"""Document in, running gateway out: the step order, and the one place that knows all the others."""

from toolcrib.runtime.order import order
from toolcrib.runtime.runtime import House, build

__all__ = ["House", "build", "order"]
