"""Prometheus metrics of this process: memory, file descriptors, garbage collection, Python version.

Imported on the first scrape: many gateways are never scraped, and the library imports a web server.
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
    """Return the process metrics in Prometheus' text format."""
    return generate_latest(_registry())


@lru_cache(maxsize=1)
def _registry() -> CollectorRegistry:
    registry = CollectorRegistry()
    for collector in (ProcessCollector, PlatformCollector, GCCollector):
        collector(registry=registry)
    return registry
