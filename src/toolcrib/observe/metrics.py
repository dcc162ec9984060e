"""Prometheus metrics of calls, tools, servers and the process."""

import logging
import re
from bisect import bisect_left
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, cast

from toolcrib.errors import CODES
from toolcrib.interfaces import LATENCY_BOUNDS, SourceState
from toolcrib.model import PROMISES, Deprecation, Problem, Tool
from toolcrib.observe.call_entry import NOT_TOOL_FAULTS, CallEntry, error_class, outcome_of_code
from toolcrib.version import VERSION

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

# --- Log warnings about tools in use: deprecated ones, and ones slower than their declared response time ---

WARNING_PAUSE_SECONDS = 60.0
"""Minimum seconds between two warnings about the same tool and reason, against log spam."""
MAX_WARNED_TOOLS = 2_000

SHORTEST_PROMISE_SECONDS = min(PROMISES.values())
"""Shortest promised time of all, in seconds: a call that took no longer is never late."""

_logger = logging.getLogger(__name__)


def is_late(tool: Tool, problem: Problem | None, cached: bool, seconds: float) -> bool:  # noqa: FBT001 - of an entry
    """Whether the tool was called and took longer than its declared response time."""
    promised = tool.promised
    if promised is None or seconds <= promised or cached:
        return False
    return problem is None or problem.kind not in NOT_TOOL_FAULTS


def is_deprecated(tool: Tool, problem: Problem | None) -> bool:
    """Whether a deprecated tool was used; a call to an already removed tool does not count."""
    return tool.deprecated is not None and (problem is None or problem.code != "TOOL_REMOVED")


class CallWarnings:
    """Checks finished calls, off the call path, and logs warnings for the operator."""

    def __init__(self, limit: int = MAX_WARNED_TOOLS) -> None:
        self._limit = limit
        self._warned: OrderedDict[tuple[str, str], tuple[float, int]] = OrderedDict()
        """Per tool and reason: time of the last warning, and number of suppressed ones since."""

    def take(self, batch: Sequence[CallEntry]) -> None:
        """Log a warning for each deprecated or late call, debounced per tool."""
        for entry in batch:
            _, tool, _, _, problem, cached, seconds, _, _, _, _ = entry
            if seconds <= SHORTEST_PROMISE_SECONDS and tool.deprecated is None:
                continue
            if is_deprecated(tool, problem):
                self._warn(entry, "deprecated", _deprecation_text(tool))
            if is_late(tool, problem, cached, seconds):
                self._warn(entry, "late", _lateness_text(tool, seconds))

    def _warn(self, entry: CallEntry, reason: str, text: str) -> None:
        key = (entry.tool.name, reason)
        last, suppressed = self._warned.get(key, (float("-inf"), 0))
        if entry.at - last < WARNING_PAUSE_SECONDS:
            self._warned[key] = (last, suppressed + 1)
            return
        self._warned[key] = (entry.at, 0)
        self._warned.move_to_end(key)
        if len(self._warned) > self._limit:
            self._warned.popitem(last=False)
        more = f" {suppressed} more such calls since the last warning." if suppressed else ""
        _logger.warning("%s%s", text, more, extra=_log_fields(entry))


def _deprecation_text(tool: Tool) -> str:
    deprecation = cast("Deprecation", tool.deprecated)
    until = f" and will be removed on {deprecation.removal_date}" if deprecation.removal_date else ""
    instead = f"; call {deprecation.replacement} instead" if deprecation.replacement else ""
    return f"A call used {tool.name}, which is deprecated since {deprecation.since}{until}{instead}."


def _lateness_text(tool: Tool, seconds: float) -> str:
    promised = PROMISES[tool.response_time] * 1000
    took = f"A call to {tool.name} took {seconds * 1000:.0f} ms"
    return f"{took}; its response time is {tool.response_time!r}, which promises {promised:.0f} ms at most."


def _log_fields(entry: CallEntry) -> dict[str, str | None]:
    return {
        "call_id": entry.id,
        "tool": entry.tool.name,
        "caller": entry.caller.id,
        "user_id": entry.caller.user,
        "trace_id": entry.origin.trace_id,
        "correlation_id": entry.origin.correlation_id,
    }


# --- Counters of one tool, and their rendering in Prometheus' text format ---
#
# Rendered by hand: the library takes 6 µs per line; a thousand used tools would block the event loop 120 ms.

BUCKET_BOUNDS_SECONDS = tuple(bound / 1000.0 for bound in LATENCY_BOUNDS)
_BUCKET_LABELS = (*map(str, BUCKET_BOUNDS_SECONDS), "+Inf")

PER_TOOL = (
    ("tool_calls_total", "counter", "Calls by outcome."),
    ("tool_errors_total", "counter", "Failed calls by error class."),
    ("tool_seconds", "histogram", "Duration of calls."),
    ("cache_total", "counter", "Cache hits and misses of cacheable tools."),
    ("tool_late_total", "counter", "Calls that exceeded the declared response time."),
    ("tool_deprecated_total", "counter", "Calls to deprecated tools."),
    ("mcp_tool_calls_total", "counter", "Calls to tools of MCP servers."),
    ("mcp_tool_latency_seconds", "histogram", "Duration of calls to tools of MCP servers."),
)
"""Families with series per tool: name without prefix, type, help; in the order of `ToolMetrics.render`."""

Labels = Mapping[str, str]


class ToolMetrics:
    """Counters of one tool."""

    __slots__ = (
        "buckets",
        "deprecated",
        "ends",
        "hits",
        "late",
        "local",
        "mcp",
        "misses",
        "name",
        "rendered",
        "seconds",
        "source",
    )

    def __init__(self, name: str, source: str, local: str, *, mcp: bool) -> None:
        self.name = name
        self.source = source
        self.local = local
        self.mcp = mcp
        self.ends: Counter[tuple[str, str]] = Counter()
        """Calls by category, which an operator may change, and error code; the code of success is empty."""
        self.buckets = [0] * len(_BUCKET_LABELS)
        self.seconds = 0.0
        self.hits = 0
        self.misses = 0
        self.late = 0
        self.deprecated = 0
        self.rendered: tuple[str, ...] = ()
        """Cached result of `render`, cleared on every count: most tools are unused between two scrapes."""

    def render(self, prefix: str) -> tuple[str, ...]:
        """Return the tool's lines in each family, in the order of `PER_TOOL`."""
        if not self.rendered:
            self.rendered = (
                _lines(f"{prefix}_tool_calls_total", self._calls()),
                _lines(f"{prefix}_tool_errors_total", self._errors()),
                self._histogram(f"{prefix}_tool_seconds", {"tool": self.name}),
                _lines(f"{prefix}_cache_total", self._cache()),
                self._count(f"{prefix}_tool_late_total", self.late),
                self._count(f"{prefix}_tool_deprecated_total", self.deprecated),
                _lines(f"{prefix}_mcp_tool_calls_total", self._mcp_calls()),
                self._mcp_histogram(f"{prefix}_mcp_tool_latency_seconds"),
            )
        return self.rendered

    def _calls(self) -> Iterator[tuple[Labels, int]]:
        counts: Counter[tuple[str, str, str]] = Counter()
        for (category, code), count in self.ends.items():
            counts[category, outcome_of_code(code), error_class(code) if code else "none"] += count
        for (category, status, kind), count in counts.items():
            yield {"tool": self.name, "category": category, "status": status, "class": kind}, count

    def _errors(self) -> Iterator[tuple[Labels, int]]:
        counts: Counter[str] = Counter()
        for (_, code), count in self.ends.items():
            if code:
                counts[error_class(code)] += count
        for kind, count in counts.items():
            yield {"tool": self.name, "class": kind}, count

    def _cache(self) -> Iterator[tuple[Labels, int]]:
        if self.hits or self.misses:
            yield {"tool": self.name, "outcome": "hit"}, self.hits
            yield {"tool": self.name, "outcome": "miss"}, self.misses

    def _count(self, name: str, count: int) -> str:
        return _lines(name, (({"tool": self.name}, count),)) if count else ""

    def _mcp_calls(self) -> Iterator[tuple[Labels, int]]:
        counts: Counter[str] = Counter()
        for (_, code), count in self.ends.items():
            counts[outcome_of_code(code)] += count * self.mcp
        for status, count in counts.items():
            if count:
                yield {"server": self.source, "tool": self.local, "status": status}, count

    def _mcp_histogram(self, name: str) -> str:
        return self._histogram(name, {"server": self.source, "tool": self.local}) if self.mcp else ""

    def _histogram(self, name: str, labels: Labels) -> str:
        inner = _label_pairs(labels)
        below = list(accumulate(self.buckets))
        lines = [
            f'{name}_bucket{{{inner},le="{edge}"}} {count}\n'
            for edge, count in zip(_BUCKET_LABELS, below, strict=True)
        ]
        lines.append(f"{name}_sum{{{inner}}} {self.seconds!r}\n{name}_count{{{inner}}} {below[-1]}\n")
        return "".join(lines)


def family(name: str, kind: str, description: str, lines: Iterable[str]) -> str:
    """Return a metric family: HELP, TYPE, then its lines."""
    return f"# HELP {name} {description}\n# TYPE {name} {kind}\n{''.join(lines)}"


def labelled_family(name: str, kind: str, description: str, label: str, numbers: Mapping[str, float]) -> str:
    """Return a metric family with one label."""
    return family(
        name,
        kind,
        description,
        (_lines(name, (({label: value}, number) for value, number in numbers.items())),),
    )


def plain_family(name: str, kind: str, description: str, value: float) -> str:
    """Return a metric family without labels."""
    return family(name, kind, description, (f"{name} {value}\n",))


def _lines(name: str, numbers: Iterable[tuple[Labels, float]]) -> str:
    return "".join(f"{name}{{{_label_pairs(labels)}}} {number}\n" for labels, number in numbers)


def _label_pairs(labels: Labels) -> str:
    return ",".join(f'{name}="{_escape(value)}"' for name, value in labels.items())


def _escape(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


# --- Prometheus metrics of this process: memory, file descriptors, garbage collection, Python version ---
#
# Lazy imports: many gateways are never scraped, and the library imports a web server.


def process_metrics() -> bytes:
    """Return the process metrics in Prometheus' text format."""
    from prometheus_client import generate_latest

    return generate_latest(_process_registry())


@lru_cache(maxsize=1)
def _process_registry() -> "CollectorRegistry":
    from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector

    registry = CollectorRegistry()
    for collector in (ProcessCollector, PlatformCollector, GCCollector):
        collector(registry=registry)
    return registry


# --- Prometheus metrics: plain counters per tool, rendered as text only when scraped ---

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

MAX_LABELLED_TOOLS = 20_000
OVERFLOW_LABEL = "other"
"""Label of all tools past `MAX_LABELLED_TOOLS`: a catalog that changes constantly must not exhaust memory."""


class Metrics:
    """The metrics registry. Label values come from the catalog and the error codes, never from a request."""

    def __init__(
        self,
        prefix: str = "toolcrib",
        *,
        sources: Callable[[], Iterable[SourceState]] | None = None,
        parked: Callable[[], int] = int,
        limit: int = MAX_LABELLED_TOOLS,
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

    def watch(self, suffix: str, kind: str, description: str, read: Callable[[], float]) -> None:
        """Register a metric with a callback that reads its value on each scrape."""
        self._watched.append((suffix, kind, description, read))

    def take(self, batch: Sequence[CallEntry]) -> None:
        """Count a batch without blocking."""
        for _, tool, _, _, problem, cached, seconds, _, _, _, _ in batch:
            series = self._tools.get(tool.name) or self._begin(tool)
            series.rendered = ()
            series.ends[tool.category, problem.code if problem else ""] += 1
            series.seconds += seconds
            series.buckets[bisect_left(BUCKET_BOUNDS_SECONDS, seconds)] += 1
            if tool.deprecated is not None:
                series.deprecated += is_deprecated(tool, problem)
            if seconds > SHORTEST_PROMISE_SECONDS and is_late(tool, problem, cached, seconds):
                series.late += 1
            if cached:
                series.hits += 1
            elif tool.cache_ttl is not None and (problem is None or problem.kind not in NOT_TOOL_FAULTS):
                series.misses += tool.category != "mutation"

    def refused(self, code: str) -> None:
        """Count a request that resolved to no tool, such as one for an unknown name."""
        self._refused[code if code in CODES else "EXECUTION_ERROR"] += 1

    def render(self, dropped: Mapping[str, int]) -> bytes:
        """Return all metrics, and the number of entries each sink dropped, in Prometheus' text format."""
        self._drop_removed()
        name = self._prefix
        parts = [labelled_family(f"{name}_info", "gauge", "Version of Toolcrib.", "version", {VERSION: 1})]
        tools = [series.render(name) for series in self._tools.values()]
        for index, (suffix, kind, description) in enumerate(PER_TOOL):
            parts.append(
                family(f"{name}_{suffix}", kind, description, [rendered[index] for rendered in tools])
            )
        parts += (
            labelled_family(
                f"{name}_refused_total",
                "counter",
                "Requests that resolved to no tool.",
                "code",
                self._refused,
            ),
            labelled_family(
                f"{name}_dropped_total", "counter", "Entries that a sink dropped.", "sink", dropped
            ),
            plain_family(
                f"{name}_parked_calls", "gauge", "Calls suspended until the caller answers.", self._parked()
            ),
            *(
                plain_family(f"{name}_{suffix}", kind, description, read())
                for suffix, kind, description, read in self._watched
            ),
            *self._source_states(list(self._sources() if self._sources else ())),
        )

        return "".join(parts).encode() + process_metrics()

    def _source_states(self, states: Sequence[SourceState]) -> Iterator[str]:
        name = self._prefix
        tools = {state.id: state.tools for state in states}
        up = {state.id: int(state.state == "up") for state in states}
        restarts = {state.id: state.restarts for state in states}
        servers = {state.id for state in states if state.family == "mcp"}
        yield labelled_family(f"{name}_tools", "gauge", "Tools of a source.", "source", tools)
        yield labelled_family(f"{name}_source_up", "gauge", "Whether a source is up.", "source", up)
        yield labelled_family(
            f"{name}_source_restarts_total", "counter", "Restarts of a source.", "source", restarts
        )
        yield labelled_family(
            f"{name}_mcp_server_up",
            "gauge",
            "Whether an MCP server is up.",
            "server",
            {server: value for server, value in up.items() if server in servers},
        )
        yield labelled_family(
            f"{name}_mcp_server_restarts_total",
            "counter",
            "Restarts of an MCP server.",
            "server",
            {server: value for server, value in restarts.items() if server in servers},
        )

        yield labelled_family(
            f"{name}_mcp_server_dropped_messages_total",
            "counter",
            "Messages of an MCP server that were dropped because it sent too many.",
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
        return self._tools.setdefault(
            OVERFLOW_LABEL, ToolMetrics(OVERFLOW_LABEL, OVERFLOW_LABEL, OVERFLOW_LABEL, mcp=False)
        )
