"""Counters of one tool, and their rendering in Prometheus' text format.

Rendered by hand: the library takes 6 µs per line, so a thousand used tools would block the event loop 120 ms.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate

from toolcrib.interfaces import LATENCY_BOUNDS
from toolcrib.observe.call_entry import error_class, outcome_of_code

BOUNDS = tuple(bound / 1000.0 for bound in LATENCY_BOUNDS)
_EDGES = (*map(str, BOUNDS), "+Inf")

PER_TOOL = (
    ("tool_calls_total", "counter", "Calls by how they ended."),
    ("tool_errors_total", "counter", "Calls that failed, by the class of the error."),
    ("tool_seconds", "histogram", "How long calls took."),
    ("cache_total", "counter", "Whether cacheable tools were answered from the cache."),
    ("tool_late_total", "counter", "Calls that took longer than the tool promises."),
    ("tool_deprecated_total", "counter", "Calls to tools that are on their way out."),
    ("mcp_tool_calls_total", "counter", "Calls to tools of MCP servers."),
    ("mcp_tool_latency_seconds", "histogram", "How long calls to tools of MCP servers took."),
)
"""Metric families with series per tool: name without prefix, type, help; the order of `ToolMetrics.spell`."""

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
        "seconds",
        "source",
        "spelled",
    )

    def __init__(self, name: str, source: str, local: str, *, mcp: bool) -> None:
        self.name = name
        self.source = source
        self.local = local
        self.mcp = mcp
        self.ends: Counter[tuple[str, str]] = Counter()
        """Calls by category, which an operator may change, and error code; the code of success is empty."""
        self.buckets = [0] * len(_EDGES)
        self.seconds = 0.0
        self.hits = 0
        self.misses = 0
        self.late = 0
        self.deprecated = 0
        self.spelled: tuple[str, ...] = ()
        """Cached result of `spell`, cleared on every count: most tools are unused between two scrapes."""

    def spell(self, prefix: str) -> tuple[str, ...]:
        """Return the tool's lines in each family, in the order of `PER_TOOL`."""
        if not self.spelled:
            self.spelled = (
                _lines(f"{prefix}_tool_calls_total", self._calls()),
                _lines(f"{prefix}_tool_errors_total", self._errors()),
                self._histogram(f"{prefix}_tool_seconds", {"tool": self.name}),
                _lines(f"{prefix}_cache_total", self._cache()),
                self._count(f"{prefix}_tool_late_total", self.late),
                self._count(f"{prefix}_tool_deprecated_total", self.deprecated),
                _lines(f"{prefix}_mcp_tool_calls_total", self._mcp_calls()),
                self._mcp_histogram(f"{prefix}_mcp_tool_latency_seconds"),
            )
        return self.spelled

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
        inner = _inner(labels)
        below = list(accumulate(self.buckets))
        lines = [
            f'{name}_bucket{{{inner},le="{edge}"}} {count}\n'
            for edge, count in zip(_EDGES, below, strict=True)
        ]
        lines.append(f"{name}_sum{{{inner}}} {self.seconds!r}\n{name}_count{{{inner}}} {below[-1]}\n")
        return "".join(lines)


def family(name: str, kind: str, what: str, lines: Iterable[str]) -> str:
    """Return a metric family: HELP, TYPE, then its lines."""
    return f"# HELP {name} {what}\n# TYPE {name} {kind}\n{''.join(lines)}"


def counts(name: str, kind: str, what: str, label: str, numbers: Mapping[str, float]) -> str:
    """Return a metric family with one label."""
    return family(
        name, kind, what, (_lines(name, (({label: value}, number) for value, number in numbers.items())),)
    )


def number(name: str, kind: str, what: str, value: float) -> str:
    """Return a metric family without labels."""
    return family(name, kind, what, (f"{name} {value}\n",))


def _lines(name: str, numbers: Iterable[tuple[Labels, float]]) -> str:
    return "".join(f"{name}{{{_inner(labels)}}} {number}\n" for labels, number in numbers)


def _inner(labels: Labels) -> str:
    return ",".join(f'{name}="{_escape(value)}"' for name, value in labels.items())


def _escape(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
