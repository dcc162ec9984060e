"""What the numbers must come to: ratios of two cases of the same run, and limits on what a server weighs."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from statistics import median

from bench.rounds import CaseResult, LoadPoint, Round
from bench.running_servers import CaseId
from bench.server_process import ServerProcess


class Metric(Enum):
    """What is compared; the value is what people call it."""

    THROUGHPUT = "throughput"
    TIME = "time"
    CPU = "CPU"

    def of(self, our_value: Round) -> float:
        """Return this figure of a round; it is nothing where nothing was answered or known."""
        if self is Metric.CPU:
            return our_value.cpu or 0.0
        return our_value.rate if self is Metric.THROUGHPUT or not our_value.rate else 1 / our_value.rate


@dataclass(frozen=True, kw_only=True)
class Bound:
    """From where to where a value may lie; one without an end is told and not judged."""

    at_least: float | None = None
    at_most: float | None = None

    @property
    def description(self) -> str:
        if self.at_least is not None:
            return f"at least {self.at_least:g}"
        return "no goal" if self.at_most is None else f"at most {self.at_most:g}"

    def reached(self, value: float) -> bool | None:
        if self.at_least is not None:
            return value >= self.at_least
        return None if self.at_most is None else value <= self.at_most


@dataclass(frozen=True, kw_only=True)
class Goal:
    """A figure of ours divided by the same figure of another."""

    subject: str
    baseline: str
    """Follows the number, as in "0.3 × a bare ASGI echo"."""
    ours: CaseId
    other: CaseId
    metric: Metric = Metric.THROUGHPUT
    bound: Bound = Bound()
    only_under_load: bool = False
    """Held under load alone: with one connection a call mostly waits, and no core is full."""

    @property
    def name(self) -> str:
        return f"{self.subject} / {self.baseline}"


@dataclass(frozen=True, kw_only=True)
class MemoryLimit:
    """What a server may weigh while it waits, in megabytes."""

    subject: str
    server: str
    bound: Bound


@dataclass(frozen=True, kw_only=True)
class GoalResult:
    """What was measured, and what it was to be."""

    name: str
    metric: str
    unit: str = "×"
    connections: int | None
    value: float
    bound: Bound
    goal: Goal | None = None

    @property
    def reached(self) -> bool | None:
        return self.bound.reached(self.value)


_TOOLCRIB_PIPE, _TOOLCRIB_WEB = ("pipe", "toolcrib-pipe"), ("web", "toolcrib-web")
_DIRECT = ("web", "direct")
_SIX_TIMES = Bound(at_most=6)
_NINETY = Bound(at_most=90)

GOALS = (
    Goal(
        subject="REST execute",
        baseline="a bare ASGI echo",
        ours=("rest", "toolcrib"),
        other=("rest", "echo"),
        bound=Bound(at_least=0.25),
    ),
    Goal(
        subject="REST execute among 10,000 tools",
        baseline="that among four",
        ours=("rest", "toolcrib-10000"),
        other=("rest", "toolcrib"),
        bound=Bound(at_least=0.9),
    ),
    Goal(
        subject="REST execute, hints in the answer",
        baseline="a call without the tool contract",
        ours=("rest", "toolcrib"),
        other=("rest", "toolcrib-bare"),
        metric=Metric.CPU,
        bound=Bound(at_most=1.3),
    ),
    Goal(
        subject="REST execute of a tool with hints of its own",
        baseline="that without the tool contract",
        ours=("hinted", "toolcrib"),
        other=("hinted", "toolcrib-bare"),
        metric=Metric.CPU,
    ),
    Goal(
        subject="MCP tools/call",
        baseline="a bare ASGI echo",
        ours=("mcp", "toolcrib"),
        other=("mcp", "echo-mcp"),
        bound=Bound(at_least=0.4),
    ),
    Goal(
        subject="MCP tools/call",
        baseline="the bare mcp SDK",
        ours=("mcp", "toolcrib"),
        other=("mcp", "sdk"),
        bound=Bound(at_least=0.7),
    ),
    Goal(
        subject="MCP tools/call",
        baseline="FastMCP's server",
        ours=("mcp", "toolcrib"),
        other=("mcp", "fastmcp"),
    ),
    Goal(
        subject="list of half of 10,000 tools",
        baseline="the cost of sending its bytes",
        ours=("list", "toolcrib-10000"),
        other=("list", "echo-list"),
        metric=Metric.TIME,
        bound=Bound(at_most=2),
    ),
    Goal(
        subject="a user's list among 100,000 users and 1,000 apps",
        baseline="that of the user alone",
        ours=("users", "toolcrib-crowd"),
        other=("users", "toolcrib-alone"),
        metric=Metric.TIME,
        bound=Bound(at_most=1.5),
    ),
    Goal(
        subject="a user's first list among 100,000 users and 1,000 apps",
        baseline="that of the user alone",
        ours=("users-cold", "toolcrib-crowd-cold"),
        other=("users-cold", "toolcrib-alone-cold"),
        metric=Metric.TIME,
        bound=Bound(at_most=1.5),
    ),
    Goal(
        subject="before a stdio server",
        baseline="mcp-proxy of Node",
        ours=_TOOLCRIB_PIPE,
        other=("pipe", "node-proxy"),
        bound=Bound(at_least=5),
        only_under_load=True,
    ),
    Goal(
        subject="before a stdio server",
        baseline="mcp-proxy of Python",
        ours=_TOOLCRIB_PIPE,
        other=("pipe", "python-proxy"),
    ),
    Goal(
        subject="before an HTTP server",
        baseline="mcp-hub",
        ours=_TOOLCRIB_WEB,
        other=("web", "hub"),
        bound=Bound(at_least=10),
        only_under_load=True,
    ),
    Goal(
        subject="before an HTTP server",
        baseline="FastMCP's proxy, tuned",
        ours=_TOOLCRIB_WEB,
        other=("web", "fastmcp-tuned"),
        bound=Bound(at_least=20),
        only_under_load=True,
    ),
    Goal(
        subject="before an HTTP server",
        baseline="FastMCP's proxy",
        ours=_TOOLCRIB_WEB,
        other=("web", "fastmcp-proxy"),
    ),
    Goal(
        subject="before an HTTP server",
        baseline="the server itself",
        ours=_TOOLCRIB_WEB,
        other=_DIRECT,
        metric=Metric.CPU,
        bound=_SIX_TIMES,
    ),
    Goal(
        subject="before a stdio server",
        baseline="the HTTP server itself",
        ours=_TOOLCRIB_PIPE,
        other=_DIRECT,
        metric=Metric.CPU,
        bound=_SIX_TIMES,
    ),
    Goal(
        subject="tools/list of 1,000 tools",
        baseline="the server itself",
        ours=("tools", "toolcrib-web-1000"),
        other=("tools", "direct-1000"),
        metric=Metric.TIME,
        bound=Bound(at_most=2),
    ),
)
LIMITS = (
    MemoryLimit(subject="Toolcrib with a function", server="toolcrib", bound=_NINETY),
    MemoryLimit(subject="Toolcrib before a stdio server", server="toolcrib-pipe", bound=_NINETY),
    MemoryLimit(subject="Toolcrib before an HTTP server", server="toolcrib-web", bound=_NINETY),
)


def goal_results(
    measured: Mapping[LoadPoint, CaseResult], processes: Mapping[str, ServerProcess]
) -> Iterator[GoalResult]:
    """Compare what was measured with every goal, at every number of connections, and with the limits."""
    for goal in GOALS:
        for key, connections in measured:
            if key == goal.ours and (goal.other, connections) in measured:
                yield _ratio_result(goal, connections, measured)
    for limit in LIMITS:
        megabytes = processes[limit.server].idle_megabytes if limit.server in processes else None
        if megabytes is not None:
            yield _memory_result(limit, megabytes)


def _memory_result(limit: MemoryLimit, megabytes: float) -> GoalResult:
    return GoalResult(
        name=limit.subject,
        metric="idle memory",
        unit="MB",
        connections=None,
        value=megabytes,
        bound=limit.bound,
    )


def _ratio_result(goal: Goal, connections: int, measured: Mapping[LoadPoint, CaseResult]) -> GoalResult:
    ours, other = measured[goal.ours, connections], measured[goal.other, connections]
    # Round by round, since the two of a round had the same machine.
    pairs = ((goal.metric.of(a), goal.metric.of(b)) for a, b in zip(ours.rounds, other.rounds, strict=True))
    return GoalResult(
        name=goal.name,
        metric=goal.metric.value,
        connections=connections,
        value=median([our_value / other_value for our_value, other_value in pairs if other_value] or [0.0]),
        bound=Bound() if goal.only_under_load and connections == 1 else goal.bound,
        goal=goal,
    )
