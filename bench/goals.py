"""Performance goals: ratios of two cases of the same run, and limits of idle memory."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from statistics import median

from bench.rounds import CaseResult, LoadPoint, Round
from bench.running_servers import CaseId
from bench.server_process import ServerProcess


class Metric(Enum):
    """A measured quantity; the value is its printed name."""

    THROUGHPUT = "throughput"
    TIME = "time"
    CPU = "CPU"

    def of(self, our_value: Round) -> float:
        """Return the value in a round; 0 if nothing was answered or measured."""
        if self is Metric.CPU:
            return our_value.cpu or 0.0
        return our_value.rate if self is Metric.THROUGHPUT or not our_value.rate else 1 / our_value.rate


@dataclass(frozen=True, kw_only=True)
class Bound:
    """Lower or upper bound of a value; without either, the value is reported but not judged."""

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
    """Goal for the ratio of a metric: a case of Toolcrib divided by another case."""

    subject: str
    baseline: str
    """Follows the number, as in "0.3 × a bare ASGI echo"."""
    ours: CaseId
    other: CaseId
    metric: Metric = Metric.THROUGHPUT
    bound: Bound = Bound()
    only_under_load: bool = False
    """Not judged with one connection: most of the time is spent waiting, and no core is saturated."""

    @property
    def name(self) -> str:
        return f"{self.subject} / {self.baseline}"


@dataclass(frozen=True, kw_only=True)
class MemoryLimit:
    """Limit of a server's idle memory, in megabytes."""

    subject: str
    server: str
    bound: Bound


@dataclass(frozen=True, kw_only=True)
class GoalResult:
    """A measured value and its bound."""

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
        subject="REST execute with 10,000 tools",
        baseline="the same with four tools",
        ours=("rest", "toolcrib-10000"),
        other=("rest", "toolcrib"),
        bound=Bound(at_least=0.9),
    ),
    Goal(
        subject="REST execute, hints in the result",
        baseline="a call without the tool contract",
        ours=("rest", "toolcrib"),
        other=("rest", "toolcrib-bare"),
        metric=Metric.CPU,
        bound=Bound(at_most=1.3),
    ),
    Goal(
        subject="REST execute of a tool with its own hints",
        baseline="the same without the tool contract",
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
        subject="filtered list of 10,000 tools",
        baseline="sending the same bytes",
        ours=("list", "toolcrib-10000"),
        other=("list", "echo-list"),
        metric=Metric.TIME,
        bound=Bound(at_most=2),
    ),
    Goal(
        subject="a user's tool list, 100,000 users and 1,000 apps",
        baseline="the same for the user alone",
        ours=("users", "toolcrib-crowd"),
        other=("users", "toolcrib-alone"),
        metric=Metric.TIME,
        bound=Bound(at_most=1.5),
    ),
    Goal(
        subject="a user's uncached tool list, 100,000 users and 1,000 apps",
        baseline="the same for the user alone",
        ours=("users-cold", "toolcrib-crowd-cold"),
        other=("users-cold", "toolcrib-alone-cold"),
        metric=Metric.TIME,
        bound=Bound(at_most=1.5),
    ),
    Goal(
        subject="call to a stdio server",
        baseline="mcp-proxy of Node",
        ours=_TOOLCRIB_PIPE,
        other=("pipe", "node-proxy"),
        bound=Bound(at_least=5),
        only_under_load=True,
    ),
    Goal(
        subject="call to a stdio server",
        baseline="mcp-proxy of Python",
        ours=_TOOLCRIB_PIPE,
        other=("pipe", "python-proxy"),
    ),
    Goal(
        subject="call to an HTTP server",
        baseline="mcp-hub",
        ours=_TOOLCRIB_WEB,
        other=("web", "hub"),
        bound=Bound(at_least=10),
        only_under_load=True,
    ),
    Goal(
        subject="call to an HTTP server",
        baseline="FastMCP's proxy, tuned",
        ours=_TOOLCRIB_WEB,
        other=("web", "fastmcp-tuned"),
        bound=Bound(at_least=20),
        only_under_load=True,
    ),
    Goal(
        subject="call to an HTTP server",
        baseline="FastMCP's proxy",
        ours=_TOOLCRIB_WEB,
        other=("web", "fastmcp-proxy"),
    ),
    Goal(
        subject="call to an HTTP server",
        baseline="the server itself",
        ours=_TOOLCRIB_WEB,
        other=_DIRECT,
        metric=Metric.CPU,
        bound=_SIX_TIMES,
    ),
    Goal(
        subject="call to a stdio server",
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
    MemoryLimit(subject="Toolcrib in front of a stdio server", server="toolcrib-pipe", bound=_NINETY),
    MemoryLimit(subject="Toolcrib in front of an HTTP server", server="toolcrib-web", bound=_NINETY),
)


def goal_results(
    measured: Mapping[LoadPoint, CaseResult], processes: Mapping[str, ServerProcess]
) -> Iterator[GoalResult]:
    """Evaluate every goal at every number of connections, and the memory limits."""
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
    # Round by round, since both values of a round were measured under the same conditions.
    pairs = ((goal.metric.of(a), goal.metric.of(b)) for a, b in zip(ours.rounds, other.rounds, strict=True))
    return GoalResult(
        name=goal.name,
        metric=goal.metric.value,
        connections=connections,
        value=median([our_value / other_value for our_value, other_value in pairs if other_value] or [0.0]),
        bound=Bound() if goal.only_under_load and connections == 1 else goal.bound,
        goal=goal,
    )
