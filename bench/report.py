"""The outcome as tables: lines for a terminal, and Markdown for the documentation."""

import re
from collections.abc import Iterator, Sequence

from bench.goals import Verdict
from bench.hints.findings import FaultCount, StepCount
from bench.outcome import Outcome
from bench.process import Peer
from bench.rounds import Measured, Place
from bench.stage import Key

TITLES = {
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
    "upstream": "the server behind them",
    "direct": "no gateway",
    "node-proxy": "mcp-proxy of Node",
    "python-proxy": "mcp-proxy of Python",
    "hub": "mcp-hub, by REST",
    "fastmcp-tuned": "FastMCP proxy, tuned",
    "fastmcp-proxy": "FastMCP proxy",
}
WHAT = {
    "rest": "REST execute",
    "hinted": "REST, own hints",
    "mcp": "MCP tools/call",
    "list": "list half of 10,000",
    "search": "search 10,000",
    "users": "list of a user",
    "users-cold": "first list of a user",
    "web": "call, HTTP server",
    "pipe": "call, stdio server",
    "session": "call, stdio, session",
    "tools": "tools/list of 1,000",
}
_THOUSAND = "-1000"
_GATEWAYS = ("web", "pipe")

_CASES = ("", "server", "connections", "calls/s", "CPU µs/call", "p50 ms", "p99 ms", "failed")
_GOALS = ("goal", "connections", "figure", "measured", "wanted", "")
_SERVERS = ("server", "start s", "idle MB")
_FAULTS = ("fault", "faults", "determined", "repaired", "harmful")
_STEPS = ("step of a task", "steps", "next call suggested", "no tool suggested")
_WORDS = {"", "server", "goal", "figure", "wanted", "gateway", "before", "fault", "step of a task"}
_AFTER = {
    "flow": "its result has the next call's arguments",
    "text": "its result has them within a text",
    "none": "no call follows from its result",
    "end": "not judged",
}
_PLAIN_UNITS = {"", "tokens"}
"""Units of numbers that are counted, and not measured."""
_NUMBER = re.compile(r"[0-9.,]+( ×| MB| %| tokens)?|–")

Row = tuple[str, ...]
Table = tuple[Row, list[Row]]


def title(name: str) -> str:
    """Say the name of a server as people would."""
    if name in TITLES:
        return TITLES[name]
    return f"{TITLES[name.removesuffix(_THOUSAND)]}, 1,000 tools"


def terminal(outcome: Outcome) -> str:
    """Lay the outcome out for a terminal."""
    pieces = [f"note: {note}" for note in outcome.notes]
    for head, rows in _tables(outcome):
        pieces += ["", *_aligned([head, *rows])]
    return "\n".join(pieces)


def markdown(outcome: Outcome) -> str:
    """Lay the outcome out for a page."""
    plan = outcome.plan
    kept = "one core for the server, another for the load" if outcome.pinned else "nothing pinned"
    pieces = [f"{plan.rounds} rounds of {plan.seconds:g} s each, medians; load by {outcome.load}; {kept}."]
    if outcome.versions:
        named = ", ".join(f"{name} {version}" for name, version in outcome.versions.items())
        pieces.append(f"Measured beside {named}.")
    pieces += outcome.notes
    for head, rows in _tables(outcome):
        lines = [head, tuple("---" if word in _WORDS else "--:" for word in head), *rows]
        pieces.append("\n".join(f"| {' | '.join(line)} |" for line in lines))
    return "\n\n".join(pieces)


def _tables(outcome: Outcome) -> Iterator[Table]:
    yield _GOALS, [_verdict(each) for each in outcome.verdicts]
    if gateways := list(_gateways(outcome)):
        rates = tuple(f"calls/s, {count}" for count in outcome.plan.connections)
        cost = (f"CPU µs/call, {outcome.plan.usual}", "p50 ms, alone", "list ms", "idle MB", "start s")
        yield ("gateway", "before", *rates, *cost), gateways
    if cases := [_case(place, found) for place, found in outcome.measured.items()]:
        yield _CASES, cases
    shown = {name for _, name in _gateway_keys(outcome)}
    if servers := [_server(peer) for name, peer in outcome.peers.items() if name not in shown]:
        yield _SERVERS, servers
    if outcome.findings is not None:
        yield _FAULTS, [_fault_count(each) for each in outcome.findings.faults]
        yield _STEPS, [_step_count(each) for each in outcome.findings.steps]


def _verdict(verdict: Verdict) -> Row:
    return (
        verdict.name,
        _number(verdict.connections, 0),
        verdict.figure,
        _measured(verdict),
        verdict.bound.wanted,
        {True: "reached", False: "missed", None: ""}[verdict.reached],
    )


def _measured(verdict: Verdict) -> str:
    counted = verdict.unit in _PLAIN_UNITS
    number = f"{verdict.value:g}" if counted else figures(verdict.value)
    return f"{number} {verdict.unit}".rstrip()


def _gateways(outcome: Outcome) -> Iterator[Row]:
    """Give each gateway one line with all that is known of it."""
    plan, measured = outcome.plan, outcome.measured
    for kind, name in _gateway_keys(outcome):
        found = {count: measured.get(((kind, name), count)) for count in plan.connections}
        usual, alone = found[plan.usual], found.get(1)
        listed = measured.get((("tools", f"{name}{_THOUSAND}"), min(plan.connections)))
        peer = outcome.peers[name]
        yield (
            TITLES[name],
            "HTTP" if kind == "web" else "stdio",
            *(_number(each and each.rate, 0) for each in found.values()),
            _cpu(usual),
            _number(alone and alone.p50, 2),
            _number(listed and listed.p50, 2),
            _number(peer.idle_megabytes, 0),
            f"{peer.start_seconds:.2f}",
        )


def _gateway_keys(outcome: Outcome) -> list[Key]:
    return list(dict.fromkeys(key for key, _ in outcome.measured if key[0] in _GATEWAYS))


def _case(place: Place, found: Measured) -> Row:
    (what, server), connections = place
    return (
        WHAT[what],
        title(server),
        str(connections),
        f"{found.rate:,.0f}",
        _cpu(found),
        f"{found.p50:.2f}",
        f"{found.p99:.2f}",
        str(found.failures),
    )


def _server(peer: Peer) -> Row:
    return title(peer.name), f"{peer.start_seconds:.2f}", _number(peer.idle_megabytes, 0)


def _fault_count(count: FaultCount) -> Row:
    return (
        count.kind,
        str(count.faults),
        str(count.determined),
        str(count.repaired) if count.determined else _number(None, 0),
        str(count.harmful),
    )


def _step_count(count: StepCount) -> Row:
    return _AFTER[count.then], str(count.steps), str(count.hits), str(count.silent)


def _cpu(found: Measured | None) -> str:
    spent = found and found.cpu
    return _number(spent, 1 if spent and spent < 100 else 0)


def figures(value: float) -> str:
    """Spell a number with about three figures."""
    return f"{value:.2f}" if value < 10 else f"{value:.0f}"


def _number(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:,.{digits}f}"


def _is_number(text: str) -> bool:
    return _NUMBER.fullmatch(text) is not None


def _aligned(rows: Sequence[Row]) -> list[str]:
    """Set columns of numbers to the right, those of words to the left."""
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
