"""The outcome as two pictures: beside the bare thing, with the goals marked, and beside other gateways."""

from collections.abc import Iterator, Mapping, Sequence

from bench.bars import Bar, Group, drawn
from bench.goals import Figure, Verdict
from bench.outcome import Outcome
from bench.report import TITLES, WHAT, figures

_BARE = {
    "rest": ("echo", "toolcrib", "toolcrib-10000"),
    "mcp": ("echo-mcp", "toolcrib", "sdk", "fastmcp"),
    "list": ("echo-list", "toolcrib-10000"),
}
_GATEWAYS = {
    "pipe": ("toolcrib-pipe", "node-proxy", "python-proxy"),
    "web": ("toolcrib-web", "hub", "fastmcp-tuned", "fastmcp-proxy"),
}


def picture(outcome: Outcome) -> str:
    """Draw what we reach of what there is to reach."""
    return drawn(
        list(_groups(outcome, _BARE)),
        name="Toolcrib compared with an echo server",
        heading="Calls per second, compared with an echo server and other servers",
        facts=_facts(outcome),
    )


def contest(outcome: Outcome) -> str:
    """Draw us beside other gateways, before the same server."""
    return drawn(
        list(_groups(outcome, _GATEWAYS)),
        name="Toolcrib compared with other gateways",
        heading="Calls per second through a gateway, in front of the same server",
        facts=_facts(outcome),
    )


def _groups(outcome: Outcome, order: Mapping[str, Sequence[str]]) -> Iterator[Group]:
    for part, servers in order.items():
        judged = [verdict for verdict in outcome.verdicts if _is_of(part, verdict, outcome.plan.usual)]
        bars = [bar for name in servers for bar in _bars(outcome, part, name, judged)]
        if bars:
            yield Group(title=WHAT[part], note=", ".join(map(_said, judged)), bars=bars)


def _is_of(part: str, verdict: Verdict, connections: int) -> bool:
    """Say whether it tells what one of ours comes to beside somebody else's bar in this part."""
    goal = verdict.goal
    if goal is None or verdict.reached is None or verdict.connections != connections:
        return False
    same = goal.ours[0] == goal.other[0] == part
    return same and goal.figure is not Figure.CPU and not _is_ours(goal.other[1])


def _is_ours(server: str) -> bool:
    return server.startswith("toolcrib")


def _said(verdict: Verdict) -> str:
    against = verdict.goal.against if verdict.goal else ""
    return f"{figures(verdict.value)} × {against} (goal {verdict.bound.wanted})"


def _bars(outcome: Outcome, part: str, name: str, judged: Sequence[Verdict]) -> Iterator[Bar]:
    found = outcome.measured.get(((part, name), outcome.plan.usual))
    if found is None:
        return
    marks = [_mark(outcome, verdict) for verdict in judged if verdict.goal and verdict.goal.ours[1] == name]
    yield Bar(
        title=TITLES[name],
        rate=found.rate,
        cpu=found.cpu,
        own=_is_ours(name),
        goal=max(marks, default=None),
    )


def _mark(outcome: Outcome, verdict: Verdict) -> float:
    """Return the rate at which a goal begins."""
    assert verdict.goal is not None
    bound = verdict.bound
    share = bound.at_least if bound.at_least is not None else 1 / (bound.at_most or 1)
    return outcome.measured[verdict.goal.other, outcome.plan.usual].rate * share


def _facts(outcome: Outcome) -> str:
    plan = outcome.plan
    where = "one process on one core" if outcome.pinned else "one process, not pinned to a core"
    return (
        f"{plan.usual} connections, {where}; medians of {plan.rounds} rounds of "
        f"{plan.seconds:g} s; load by {outcome.load}. The dashed mark is the goal."
    )
