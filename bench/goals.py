"""What the numbers must come to: ratios of two cases of the same run, and limits on what a server weighs."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from statistics import median

from bench.process import Peer
from bench.rounds import Measured, Place, Round
from bench.stage import Key


class Figure(Enum):
    """What is compared; the value is what people call it."""

    THROUGHPUT = "throughput"
    TIME = "time"
    CPU = "CPU"

    def of(self, one: Round) -> float:
        """Return this figure of a round; it is nothing where nothing was answered or known."""
        if self is Figure.CPU:
            return one.cpu or 0.0
        return one.rate if self is Figure.THROUGHPUT or not one.rate else 1 / one.rate


@dataclass(frozen=True, kw_only=True)
class Bound:
    """From where to where a value may lie; one without an end is told and not judged."""

    at_least: float | None = None
    at_most: float | None = None

    @property
    def wanted(self) -> str:
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

    what: str
    against: str
    """Follows the number, as in "0.3 × a bare ASGI echo"."""
    ours: Key
    other: Key
    figure: Figure = Figure.THROUGHPUT
    bound: Bound = Bound()
    loaded: bool = False
    """Held under load alone: with one connection a call mostly waits, and no core is full."""

    @property
    def name(self) -> str:
        return f"{self.what} / {self.against}"


@dataclass(frozen=True, kw_only=True)
class Limit:
    """What a server may weigh while it waits, in megabytes."""

    what: str
    server: str
    bound: Bound


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What was measured, and what it was to be."""

    name: str
    figure: str
    unit: str = "×"
    connections: int | None
    value: float
    bound: Bound
    goal: Goal | None = None

    @property
    def reached(self) -> bool | None:
        return self.bound.reached(self.value)


_OURS_PIPE, _OURS_WEB = ("pipe", "toolcrib-pipe"), ("web", "toolcrib-web")
_DIRECT = ("web", "direct")
_SIX_TIMES = Bound(at_most=6)
_NINETY = Bound(at_most=90)

GOALS = (
    Goal(
        what="REST execute",
        against="a bare ASGI echo",
        ours=("rest", "toolcrib"),
        other=("rest", "echo"),
        bound=Bound(at_least=0.25),
    ),
    Goal(
        what="REST execute among 10,000 tools",
        against="that among four",
        ours=("rest", "toolcrib-10000"),
        other=("rest", "toolcrib"),
        bound=Bound(at_least=0.9),
    ),
    Goal(
        what="REST execute, hints in the answer",
        against="a call without the tool contract",
        ours=("rest", "toolcrib"),
        other=("rest", "toolcrib-bare"),
        figure=Figure.CPU,
        bound=Bound(at_most=1.3),
    ),
    Goal(
        what="REST execute of a tool with hints of its own",
        against="that without the tool contract",
        ours=("hinted", "toolcrib"),
        other=("hinted", "toolcrib-bare"),
        figure=Figure.CPU,
    ),
    Goal(
        what="MCP tools/call",
        against="a bare ASGI echo",
        ours=("mcp", "toolcrib"),
        other=("mcp", "echo-mcp"),
        bound=Bound(at_least=0.4),
    ),
    Goal(
        what="MCP tools/call",
        against="the bare mcp SDK",
        ours=("mcp", "toolcrib"),
        other=("mcp", "sdk"),
        bound=Bound(at_least=0.7),
    ),
    Goal(
        what="MCP tools/call",
        against="FastMCP's server",
        ours=("mcp", "toolcrib"),
        other=("mcp", "fastmcp"),
    ),
    Goal(
        what="list of half of 10,000 tools",
        against="the cost of sending its bytes",
        ours=("list", "toolcrib-10000"),
        other=("list", "echo-list"),
        figure=Figure.TIME,
        bound=Bound(at_most=2),
    ),
    Goal(
        what="a user's list among 100,000 users and 1,000 apps",
        against="that of the user alone",
        ours=("users", "toolcrib-crowd"),
        other=("users", "toolcrib-alone"),
        figure=Figure.TIME,
        bound=Bound(at_most=1.5),
    ),
    Goal(
        what="a user's first list among 100,000 users and 1,000 apps",
        against="that of the user alone",
        ours=("users-cold", "toolcrib-crowd-cold"),
        other=("users-cold", "toolcrib-alone-cold"),
        figure=Figure.TIME,
        bound=Bound(at_most=1.5),
    ),
    Goal(
        what="before a stdio server",
        against="mcp-proxy of Node",
        ours=_OURS_PIPE,
        other=("pipe", "node-proxy"),
        bound=Bound(at_least=5),
        loaded=True,
    ),
    Goal(
        what="before a stdio server",
        against="mcp-proxy of Python",
        ours=_OURS_PIPE,
        other=("pipe", "python-proxy"),
    ),
    Goal(
        what="before an HTTP server",
        against="mcp-hub",
        ours=_OURS_WEB,
        other=("web", "hub"),
        bound=Bound(at_least=10),
        loaded=True,
    ),
    Goal(
        what="before an HTTP server",
        against="FastMCP's proxy, tuned",
        ours=_OURS_WEB,
        other=("web", "fastmcp-tuned"),
        bound=Bound(at_least=20),
        loaded=True,
    ),
    Goal(
        what="before an HTTP server",
        against="FastMCP's proxy",
        ours=_OURS_WEB,
        other=("web", "fastmcp-proxy"),
    ),
    Goal(
        what="before an HTTP server",
        against="the server itself",
        ours=_OURS_WEB,
        other=_DIRECT,
        figure=Figure.CPU,
        bound=_SIX_TIMES,
    ),
    Goal(
        what="before a stdio server",
        against="the HTTP server itself",
        ours=_OURS_PIPE,
        other=_DIRECT,
        figure=Figure.CPU,
        bound=_SIX_TIMES,
    ),
    Goal(
        what="tools/list of 1,000 tools",
        against="the server itself",
        ours=("tools", "toolcrib-web-1000"),
        other=("tools", "direct-1000"),
        figure=Figure.TIME,
        bound=Bound(at_most=2),
    ),
)
LIMITS = (
    Limit(what="Toolcrib with a function", server="toolcrib", bound=_NINETY),
    Limit(what="Toolcrib before a stdio server", server="toolcrib-pipe", bound=_NINETY),
    Limit(what="Toolcrib before an HTTP server", server="toolcrib-web", bound=_NINETY),
)


def verdicts(measured: Mapping[Place, Measured], peers: Mapping[str, Peer]) -> Iterator[Verdict]:
    """Compare what was measured with every goal, at every number of connections, and with the limits."""
    for goal in GOALS:
        for key, connections in measured:
            if key == goal.ours and (goal.other, connections) in measured:
                yield _compared(goal, connections, measured)
    for limit in LIMITS:
        weight = peers[limit.server].idle_megabytes if limit.server in peers else None
        if weight is not None:
            yield _weighed(limit, weight)


def _weighed(limit: Limit, weight: float) -> Verdict:
    return Verdict(
        name=limit.what, figure="idle memory", unit="MB", connections=None, value=weight, bound=limit.bound
    )


def _compared(goal: Goal, connections: int, measured: Mapping[Place, Measured]) -> Verdict:
    ours, other = measured[goal.ours, connections], measured[goal.other, connections]
    # Round by round, since the two of a round had the same machine.
    pairs = ((goal.figure.of(a), goal.figure.of(b)) for a, b in zip(ours.rounds, other.rounds, strict=True))
    return Verdict(
        name=goal.name,
        figure=goal.figure.value,
        connections=connections,
        value=median([one / two for one, two in pairs if two] or [0.0]),
        bound=Bound() if goal.loaded and connections == 1 else goal.bound,
        goal=goal,
    )
