"""What the numbers must come to: every goal is a ratio of two cases of the same run."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import median

from bench.rounds import Measured, Place
from bench.stage import Key


@dataclass(frozen=True, kw_only=True)
class Goal:
    """`over` divided by `under`, in calls a second."""

    what: str
    against: str
    """Follows the number, as in "0.3 × a bare ASGI echo"."""
    over: Key
    under: Key
    at_least: float | None = None
    below: float | None = None

    @property
    def name(self) -> str:
        return f"{self.what} / {self.against}"

    @property
    def wanted(self) -> str:
        if self.at_least is not None:
            return f"at least {self.at_least:g}"
        return f"below {self.below:g}" if self.below is not None else "no goal"

    def reached(self, value: float) -> bool | None:
        if self.at_least is not None:
            return value >= self.at_least
        return value < self.below if self.below is not None else None


@dataclass(frozen=True, kw_only=True)
class Ratio:
    """A goal with what was measured."""

    goal: Goal
    connections: int
    value: float
    cpu: float | None
    """The same in processor time: what one call costs, as a multiple of the other's."""

    @property
    def reached(self) -> bool | None:
        return self.goal.reached(self.value)


GOALS = (
    Goal(
        what="REST execute",
        against="a bare ASGI echo",
        over=("rest", "toolcrib"),
        under=("rest", "echo"),
        at_least=0.25,
    ),
    Goal(
        what="MCP tools/call",
        against="the bare mcp SDK",
        over=("mcp", "toolcrib"),
        under=("mcp", "sdk"),
        at_least=0.7,
    ),
    Goal(
        what="MCP tools/call",
        against="FastMCP's server",
        over=("mcp", "toolcrib"),
        under=("mcp", "fastmcp"),
    ),
    Goal(
        what="list of half of 10,000 tools",
        against="the cost of sending its bytes",
        over=("list", "echo-list"),
        under=("list", "toolcrib-10000"),
        below=2,
    ),
    Goal(
        what="REST execute over a server's pipe",
        against="that of a function",
        over=("pipe", "toolcrib-servers"),
        under=("function", "toolcrib-servers"),
    ),
    Goal(
        what="REST execute over a server's HTTP",
        against="that of a function",
        over=("web", "toolcrib-servers"),
        under=("function", "toolcrib-servers"),
    ),
    Goal(
        what="REST execute among 10,000 tools",
        against="that among four",
        over=("rest", "toolcrib-10000"),
        under=("rest", "toolcrib"),
        at_least=0.9,
    ),
)


def ratios(measured: Mapping[Place, Measured]) -> Iterator[Ratio]:
    """Compare what was measured, at every number of connections."""
    for goal in GOALS:
        for key, connections in measured:
            if key == goal.over and (goal.under, connections) in measured:
                yield _ratio(goal, connections, measured)


def _ratio(goal: Goal, connections: int, measured: Mapping[Place, Measured]) -> Ratio:
    over, under = measured[goal.over, connections], measured[goal.under, connections]
    # Round by round, since the two of a round had the same machine.
    pairs = zip(over.rounds, under.rounds, strict=True)
    ours, theirs = (under, over) if goal.below is not None else (over, under)
    cpu = None if not ours.cpu or not theirs.cpu else ours.cpu / theirs.cpu
    value = median(one.rate / other.rate for one, other in pairs)
    return Ratio(goal=goal, connections=connections, value=value, cpu=cpu)
