"""Document in, running gateway out: the step order, and the one place that knows all the others."""

from toolcrib.build.house import House, build
from toolcrib.build.order import order

__all__ = ["House", "build", "order"]
