"""What Prometheus is told of this process: memory, descriptors, garbage, the Python it runs on.

Loaded when somebody asks for metrics: many never do, and the library brings a web server along.
"""

from functools import lru_cache

from prometheus_client import (
    CollectorRegistry,
    GCCollector,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)


def process_metrics() -> bytes:
    """Spell them in Prometheus' text format."""
    return generate_latest(_registry())


@lru_cache(maxsize=1)
def _registry() -> CollectorRegistry:
    registry = CollectorRegistry()
    for collector in (ProcessCollector, PlatformCollector, GCCollector):
        collector(registry=registry)
    return registry
