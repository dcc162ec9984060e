"""Prometheus metrics: plain counters per tool, rendered as text only when scraped."""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from toolcrib.errors import CODES
from toolcrib.interfaces import SourceState
from toolcrib.model import Tool
from toolcrib.observe.call_entry import BLAMELESS, CallEntry
from toolcrib.observe.call_warnings import SOON, is_deprecated, is_late
from toolcrib.observe.tool_metrics import BOUNDS, PER_TOOL, ToolMetrics, counts, family, number
from toolcrib.version import VERSION

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

MOST_TOOLS = 20_000
OTHER = "other"
"""Label of all tools past `MOST_TOOLS`: a catalog that changes constantly must not exhaust memory."""


class Metrics:
    """The metrics registry. Label values come from the catalog and the error codes, never from a request."""

    def __init__(
        self,
        prefix: str = "toolcrib",
        *,
        sources: Callable[[], Iterable[SourceState]] | None = None,
        parked: Callable[[], int] = int,
        limit: int = MOST_TOOLS,
    ) -> None:
        if not re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_]*", prefix):
            raise ValueError(
                f"metrics.prefix: {prefix!r} must start with a letter and hold letters, digits and _ only"
            )
        self._prefix = prefix
        self._sources, self._parked = sources, parked
        self._limit = limit
        self._tools: dict[str, ToolMetrics] = {}
        self._refused: Counter[str] = Counter()
        self._watched: list[tuple[str, str, str, Callable[[], float]]] = []

    def watch(self, suffix: str, kind: str, what: str, read: Callable[[], float]) -> None:
        """Register a metric with a callback that reads its value on each scrape."""
        self._watched.append((suffix, kind, what, read))

    def take(self, batch: Sequence[CallEntry]) -> None:
        """Count a batch without blocking."""
        for _, tool, _, _, problem, cached, seconds, _, _, _, _ in batch:
            series = self._tools.get(tool.name) or self._begin(tool)
            series.spelled = ()
            series.ends[tool.category, problem.code if problem else ""] += 1
            series.seconds += seconds
            series.buckets[bisect_left(BOUNDS, seconds)] += 1
            if tool.deprecated is not None:
                series.deprecated += is_deprecated(tool, problem)
            if seconds > SOON and is_late(tool, problem, cached, seconds):
                series.late += 1
            if cached:
                series.hits += 1
            elif tool.cache_ttl is not None and (problem is None or problem.kind not in BLAMELESS):
                series.misses += tool.category != "mutation"

    def refused(self, code: str) -> None:
        """Count a request that resolved to no tool, such as one for an unknown name."""
        self._refused[code if code in CODES else "EXECUTION_ERROR"] += 1

    def render(self, dropped: Mapping[str, int]) -> bytes:
        """Return all metrics, and the number of entries each sink dropped, in Prometheus' text format."""
        self._drop_removed()
        name = self._prefix
        parts = [counts(f"{name}_info", "gauge", "Which Toolcrib this is.", "version", {VERSION: 1})]
        tools = [series.spell(name) for series in self._tools.values()]
        for place, (suffix, kind, what) in enumerate(PER_TOOL):
            parts.append(family(f"{name}_{suffix}", kind, what, [spelled[place] for spelled in tools]))
        parts += (
            counts(
                f"{name}_refused_total", "counter", "Requests that never had a tool.", "code", self._refused
            ),
            counts(f"{name}_dropped_total", "counter", "What a sink could not keep.", "sink", dropped),
            number(f"{name}_parked_calls", "gauge", "Calls that wait for an answer.", self._parked()),
            *(number(f"{name}_{suffix}", kind, what, read()) for suffix, kind, what, read in self._watched),
            *self._source_states(list(self._sources() if self._sources else ())),
        )
        from toolcrib.observe.process_metrics import process_metrics

        return "".join(parts).encode() + process_metrics()

    def _source_states(self, states: Sequence[SourceState]) -> Iterator[str]:
        name = self._prefix
        tools = {state.id: state.tools for state in states}
        up = {state.id: int(state.state == "up") for state in states}
        restarts = {state.id: state.restarts for state in states}
        servers = {state.id for state in states if state.family == "mcp"}
        yield counts(f"{name}_tools", "gauge", "Tools a source offers.", "source", tools)
        yield counts(f"{name}_source_up", "gauge", "Whether a source is live.", "source", up)
        yield counts(
            f"{name}_source_restarts_total",
            "counter",
            "How often a source was run again.",
            "source",
            restarts,
        )
        yield counts(
            f"{name}_mcp_server_up",
            "gauge",
            "Whether an MCP server is live.",
            "server",
            {server: value for server, value in up.items() if server in servers},
        )
        yield counts(
            f"{name}_mcp_server_restarts_total",
            "counter",
            "How often an MCP server was started again.",
            "server",
            {server: value for server, value in restarts.items() if server in servers},
        )

        yield counts(
            f"{name}_mcp_server_dropped_messages_total",
            "counter",
            "Messages of an MCP server that were dropped, as it sent too many.",
            "server",
            {state.id: state.details.get("dropped_messages", 0) for state in states if state.id in servers},
        )

    def _drop_removed(self) -> None:
        """Drop the tools of removed servers, as server names may never recur."""
        if self._sources is None:
            return
        known = {state.id for state in self._sources()}
        for name in [each.name for each in self._tools.values() if each.mcp and each.source not in known]:
            del self._tools[name]

    def _begin(self, tool: Tool) -> ToolMetrics:
        self._drop_removed()
        if len(self._tools) < self._limit:
            series = ToolMetrics(tool.name, tool.source, tool.local, mcp=tool.family == "mcp")
            return self._tools.setdefault(tool.name, series)
        return self._tools.setdefault(OTHER, ToolMetrics(OTHER, OTHER, OTHER, mcp=False))
