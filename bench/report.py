"""Tables of the results, for the terminal and as Markdown for the documentation."""

import re
from collections.abc import Iterator, Sequence

from bench.goals import GoalResult
from bench.hints.findings import FaultCount, StepCount
from bench.rounds import CaseResult, LoadPoint
from bench.run_results import RunResults
from bench.running_servers import CaseId
from bench.server_process import ServerProcess

SERVER_TITLES = {
    "echo": "bare ASGI echo",
    "echo-mcp": "bare ASGI echo",
    "echo-list": "bare ASGI echo, same bytes",
    "toolcrib": "Toolcrib",
    "toolcrib-10000": "Toolcrib, 10,000 tools",
    "toolcrib-bare": "Toolcrib without the contract",
    "toolcrib-crowd": "Toolcrib, 100,000 users",
    "toolcrib-alone": "Toolcrib, one user",
    "toolcrib-crowd-cold": "Toolcrib, 100,000 users",
    "toolcrib-alone-cold": "Toolcrib, one user",
    "toolcrib-pipe": "Toolcrib",
    "toolcrib-web": "Toolcrib",
    "sdk": "mcp SDK, low level",
    "fastmcp": "FastMCP",
    "upstream": "MCP server behind the gateways",
    "direct": "no gateway",
    "node-proxy": "mcp-proxy of Node",
    "python-proxy": "mcp-proxy of Python",
    "hub": "mcp-hub, over REST",
    "fastmcp-tuned": "FastMCP proxy, tuned",
    "fastmcp-proxy": "FastMCP proxy",
}
CASE_TITLES = {
    "rest": "REST execute",
    "hinted": "REST, own hints",
    "mcp": "MCP tools/call",
    "list": "list 5,000 of 10,000",
    "search": "search 10,000",
    "users": "list of a user",
    "users-cold": "uncached list of a user",
    "web": "call, HTTP server",
    "pipe": "call, stdio server",
    "session": "call, stdio, session",
    "tools": "tools/list of 1,000",
}
_THOUSAND_TOOLS = "-1000"
_GATEWAYS = ("web", "pipe")

_CASE_HEADER = ("", "server", "connections", "calls/s", "CPU µs/call", "p50 ms", "p99 ms", "failed")
_GOAL_HEADER = ("comparison", "connections", "metric", "measured", "goal", "")
_SERVER_HEADER = ("server", "start s", "idle MB")
_FAULT_HEADER = ("fault", "faults", "determined", "repaired", "harmful")
_STEP_HEADER = ("step of a task", "steps", "next call suggested", "no tool suggested")
_TEXT_COLUMNS = {
    "",
    "server",
    "comparison",
    "metric",
    "goal",
    "gateway",
    "in front of",
    "fault",
    "step of a task",
}
_STEP_TITLES = {
    "flow": "its result has the next call's arguments",
    "text": "its result has them within a text",
    "none": "no call follows from its result",
    "end": "not judged",
}
_COUNTED_UNITS = {"", "tokens"}
"""Units of numbers that are counted, and not measured."""
_NUMBER = re.compile(r"[0-9.,]+( ×| MB| %| tokens)?|–")

Row = tuple[str, ...]
Table = tuple[Row, list[Row]]


def server_title(name: str) -> str:
    """Return the printed name of a server."""
    if name in SERVER_TITLES:
        return SERVER_TITLES[name]
    return f"{SERVER_TITLES[name.removesuffix(_THOUSAND_TOOLS)]}, 1,000 tools"


def terminal_report(results: RunResults) -> str:
    """Return the results as aligned text tables."""
    paragraphs = [f"note: {note}" for note in results.notes]
    for header, rows in _tables(results):
        paragraphs += ["", *_align_columns([header, *rows])]
    return "\n".join(paragraphs)


def markdown_report(results: RunResults) -> str:
    """Return the results as Markdown tables."""
    plan = results.plan
    pinning = "one core for the server, another for the load" if results.pinned else "no CPU pinning"
    paragraphs = [
        f"{plan.rounds} rounds of {plan.seconds:g} s each, medians; load by {results.load}; {pinning}."
    ]
    if results.versions:
        versions = ", ".join(f"{name} {version}" for name, version in results.versions.items())
        paragraphs.append(f"Compared with {versions}.")
    paragraphs += results.notes
    for header, rows in _tables(results):
        lines = [header, tuple("---" if word in _TEXT_COLUMNS else "--:" for word in header), *rows]
        paragraphs.append("\n".join(f"| {' | '.join(line)} |" for line in lines))
    return "\n\n".join(paragraphs)


def _tables(results: RunResults) -> Iterator[Table]:
    yield _GOAL_HEADER, [_goal_row(each) for each in results.goal_results]
    if gateways := list(_gateway_rows(results)):
        rates = tuple(f"calls/s, {count}" for count in results.plan.connections)
        other_columns = (
            f"CPU µs/call, {results.plan.charted_connections}",
            "p50 ms, alone",
            "list ms",
            "idle MB",
            "start s",
        )
        yield ("gateway", "in front of", *rates, *other_columns), gateways
    if cases := [_case_row(point, case) for point, case in results.measured.items()]:
        yield _CASE_HEADER, cases
    in_gateway_table = {name for _, name in _gateway_keys(results)}
    others = [server for name, server in results.processes.items() if name not in in_gateway_table]
    if others:
        yield _SERVER_HEADER, [_server_row(server) for server in others]
    if results.findings is not None:
        yield _FAULT_HEADER, [_fault_row(each) for each in results.findings.faults]
        yield _STEP_HEADER, [_step_row(each) for each in results.findings.steps]


def _goal_row(result: GoalResult) -> Row:
    return (
        result.name,
        _format_number(result.connections, 0),
        result.metric,
        _format_measured(result),
        result.bound.description,
        {True: "reached", False: "missed", None: ""}[result.reached],
    )


def _format_measured(result: GoalResult) -> str:
    is_counted = result.unit in _COUNTED_UNITS
    return f"{f'{result.value:g}' if is_counted else format_value(result.value)} {result.unit}".rstrip()


def _gateway_rows(results: RunResults) -> Iterator[Row]:
    """Yield one row per gateway that combines its calls, list, memory and start."""
    plan, measured = results.plan, results.measured
    for kind, name in _gateway_keys(results):
        cases = {count: measured.get(((kind, name), count)) for count in plan.connections}
        charted, unloaded = cases[plan.charted_connections], cases.get(1)
        listed = measured.get((("tools", f"{name}{_THOUSAND_TOOLS}"), min(plan.connections)))
        server = results.processes[name]
        yield (
            SERVER_TITLES[name],
            "HTTP" if kind == "web" else "stdio",
            *(_format_number(each and each.rate, 0) for each in cases.values()),
            _format_cpu(charted),
            _format_number(unloaded and unloaded.p50, 2),
            _format_number(listed and listed.p50, 2),
            _format_number(server.idle_megabytes, 0),
            f"{server.start_seconds:.2f}",
        )


def _gateway_keys(results: RunResults) -> list[CaseId]:
    return list(dict.fromkeys(key for key, _ in results.measured if key[0] in _GATEWAYS))


def _case_row(point: LoadPoint, case: CaseResult) -> Row:
    (kind, server), connections = point
    return (
        CASE_TITLES[kind],
        server_title(server),
        str(connections),
        f"{case.rate:,.0f}",
        _format_cpu(case),
        f"{case.p50:.2f}",
        f"{case.p99:.2f}",
        str(case.failures),
    )


def _server_row(server: ServerProcess) -> Row:
    return server_title(server.name), f"{server.start_seconds:.2f}", _format_number(server.idle_megabytes, 0)


def _fault_row(count: FaultCount) -> Row:
    return (
        count.kind,
        str(count.faults),
        str(count.determined),
        str(count.repaired) if count.determined else _format_number(None, 0),
        str(count.harmful),
    )


def _step_row(count: StepCount) -> Row:
    return _STEP_TITLES[count.then], str(count.steps), str(count.hits), str(count.silent)


def _format_cpu(case: CaseResult | None) -> str:
    cpu = case and case.cpu
    return _format_number(cpu, 1 if cpu and cpu < 100 else 0)


def format_value(value: float) -> str:
    """Return a number with about three significant digits."""
    return f"{value:.2f}" if value < 10 else f"{value:.0f}"


def _format_number(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:,.{digits}f}"


def _is_number(text: str) -> bool:
    return _NUMBER.fullmatch(text) is not None


def _align_columns(rows: Sequence[Row]) -> list[str]:
    """Return the rows as text, columns of numbers aligned to the right and others to the left."""
    columns = list(zip(*rows, strict=True))
    widths = [max(map(len, column)) for column in columns]
    right = [all(map(_is_number, column[1:])) for column in columns]
    return [
        "  ".join(
            cell.rjust(width) if number else cell.ljust(width)
            for cell, width, number in zip(row, widths, right, strict=True)
        ).rstrip()
        for row in rows
    ]
