"""Bar charts of the results: compared with an echo server, and compared with other gateways."""

from collections.abc import Iterator, Mapping, Sequence

from bench.bar_chart import Bar, Group, draw_chart
from bench.goals import GoalResult, Metric
from bench.report import CASE_TITLES, SERVER_TITLES, format_value
from bench.run_results import RunResults

_ECHO_CASES = {
    "rest": ("echo", "toolcrib", "toolcrib-10000"),
    "mcp": ("echo-mcp", "toolcrib", "sdk", "fastmcp"),
    "list": ("echo-list", "toolcrib-10000"),
}
_GATEWAY_CASES = {
    "pipe": ("toolcrib-pipe", "node-proxy", "python-proxy"),
    "web": ("toolcrib-web", "hub", "fastmcp-tuned", "fastmcp-proxy"),
}


def echo_chart(results: RunResults) -> str:
    """Draw Toolcrib and similar servers compared with an echo server as the upper bound."""
    return draw_chart(
        list(_groups(results, _ECHO_CASES)),
        name="Toolcrib compared with an echo server",
        heading="Calls per second, compared with an echo server and other servers",
        footer=_footer(results),
    )


def gateway_chart(results: RunResults) -> str:
    """Draw Toolcrib compared with other gateways in front of the same server."""
    return draw_chart(
        list(_groups(results, _GATEWAY_CASES)),
        name="Toolcrib compared with other gateways",
        heading="Calls per second through a gateway, in front of the same server",
        footer=_footer(results),
    )


def _groups(results: RunResults, order: Mapping[str, Sequence[str]]) -> Iterator[Group]:
    for kind, servers in order.items():
        goal_results = [
            result
            for result in results.goal_results
            if _is_shown_in(kind, result, results.plan.charted_connections)
        ]
        bars = [bar for name in servers for bar in _bars(results, kind, name, goal_results)]
        if bars:
            yield Group(title=CASE_TITLES[kind], note=", ".join(map(_goal_note, goal_results)), bars=bars)


def _is_shown_in(kind: str, result: GoalResult, connections: int) -> bool:
    """Return whether the goal compares Toolcrib with another server that this group shows."""
    goal = result.goal
    if goal is None or result.reached is None or result.connections != connections:
        return False
    same_case = goal.ours[0] == goal.other[0] == kind
    return same_case and goal.metric is not Metric.CPU and not _is_toolcrib(goal.other[1])


def _is_toolcrib(server: str) -> bool:
    return server.startswith("toolcrib")


def _goal_note(result: GoalResult) -> str:
    baseline = result.goal.baseline if result.goal else ""
    return f"{format_value(result.value)} × {baseline} (goal {result.bound.description})"


def _bars(results: RunResults, kind: str, name: str, goal_results: Sequence[GoalResult]) -> Iterator[Bar]:
    case = results.measured.get(((kind, name), results.plan.charted_connections))
    if case is None:
        return
    marks = [_mark(results, result) for result in goal_results if result.goal and result.goal.ours[1] == name]
    yield Bar(
        title=SERVER_TITLES[name],
        rate=case.rate,
        cpu=case.cpu,
        highlighted=_is_toolcrib(name),
        goal=max(marks, default=None),
    )


def _mark(results: RunResults, result: GoalResult) -> float:
    """Return the lowest rate that meets the goal."""
    assert result.goal is not None
    bound = result.bound
    share = bound.at_least if bound.at_least is not None else 1 / (bound.at_most or 1)
    return results.measured[result.goal.other, results.plan.charted_connections].rate * share


def _footer(results: RunResults) -> str:
    plan = results.plan
    pinning = "one process on one core" if results.pinned else "one process, not pinned to a core"
    return (
        f"{plan.charted_connections} connections, {pinning}; medians of {plan.rounds} rounds of "
        f"{plan.seconds:g} s; load by {results.load}. The dashed mark is the goal."
    )
