"""Memory and connection limits: load shedding from the config, and the gauges and counters it exports."""

import sys
from typing import TYPE_CHECKING

from toolcrib.config.sections import LimitsSection
from toolcrib.http import ClientAddresses
from toolcrib.http.connection_limits import ConnectionLimits, bounded_by_descriptors
from toolcrib.http.memory import BLOCK_BYTES, MAX_SHARE_OF_LIMIT, LargeResults, MemoryWatch, memory_limit
from toolcrib.observe import CallRecorder
from toolcrib.store.shared.memory import MemoryShared

if TYPE_CHECKING:
    from toolcrib.runtime.runtime import Runtime

MAX_BODIES_SHARE = 0.125
"""Fraction of the memory limit that unfinished request bodies may take."""


def memory_watch(house: "Runtime") -> MemoryWatch:
    """Build the load shedder for high memory; the result cache is dropped before work is refused."""
    shared = house.console.shared
    relieve = shared.drop_results if isinstance(shared, MemoryShared) else None
    return MemoryWatch(memory_limit(house.document.limits.memory_mb), relieve=relieve)


def make_intake(
    limits: LimitsSection, clients: ClientAddresses, memory: MemoryWatch, large_results: LargeResults
) -> ConnectionLimits:
    """Build the limits that share connections and unfinished bodies among principals.

    Buffers for clients never exceed a fixed fraction of the memory limit, whatever the config allows.
    """
    most = sys.maxsize if memory.limit is None else memory.limit
    intake = ConnectionLimits(
        clients,
        connections=bounded_by_descriptors(limits.connections),
        bodies=limits.unfinished_bodies,
        body_bytes=min(limits.unfinished_bytes, int(most * MAX_BODIES_SHARE)),
        unread_bytes=min(limits.unread_bytes, int(most * MAX_SHARE_OF_LIMIT)),
        share=limits.share,
        memory=memory,
    )
    large_results.attach(memory, intake.unread_blocks)
    return intake


def watch_intake(journal: CallRecorder, intake: ConnectionLimits) -> None:
    """Export the gauges and counters of the HTTP server."""
    watch, memory = journal.watch, intake.memory
    what = "Trailer fields of requests, which are ignored."
    watch("http_trailer_fields_dropped_total", "counter", what, lambda: intake.trailers_dropped)
    what = "What was sent and is no HTTP request."
    watch("http_malformed_requests_total", "counter", what, lambda: intake.malformed)
    watch("http_connections", "gauge", "Open connections.", lambda: intake.connections.used)
    what = "Requests whose body is still arriving."
    watch("http_unfinished_bodies", "gauge", what, lambda: intake.bodies.used)
    what = "Bytes of requests that have come and wait to be whole."
    watch(
        "http_unfinished_bytes",
        "gauge",
        what,
        lambda: (intake.blocks.used + intake.waiting_blocks.used) * BLOCK_BYTES,
    )
    what = "Bytes of answers that clients have not read yet."
    watch("http_unread_bytes", "gauge", what, lambda: intake.unread_blocks.used * BLOCK_BYTES)
    what = "Connections that were closed because too much on them was not read."
    watch("http_unread_dropped_total", "counter", what, lambda: intake.unread_dropped)
    what = "Whether new work is refused because memory is short."
    watch("memory_short", "gauge", what, lambda: int(memory.is_high))
    watch("memory_short_total", "counter", "How often memory has become short.", lambda: memory.begun)
