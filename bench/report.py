"""The outcome as tables: lines for a terminal, and Markdown for the documentation."""

from collections.abc import Iterator, Sequence

from bench.goals import Ratio
from bench.outcome import Outcome
from bench.rounds import Measured, Place

TITLES = {
    "echo": "bare ASGI echo",
    "echo-list": "bare ASGI echo, same bytes",
    "toolcrib": "Toolcrib",
    "toolcrib-10000": "Toolcrib, 10,000 tools",
    "toolcrib-servers": "Toolcrib",
    "upstream": "the server itself",
    "sdk": "mcp SDK, low level",
    "fastmcp": "FastMCP",
}
WHAT = {
    "rest": "REST execute",
    "mcp": "MCP tools/call",
    "list": "list half of 10,000",
    "function": "REST, a function",
    "pipe": "REST, a server's pipe",
    "web": "REST, a server's HTTP",
}

_CASES = ("", "server", "connections", "calls/s", "CPU µs/call", "p50 ms", "p99 ms", "failed")
_RATIOS = ("ratio", "connections", "throughput", "CPU", "goal", "")
_SERVERS = ("server", "start s", "idle MB")

Row = tuple[str, ...]


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
    for head, rows in _tables(outcome):
        lines = [head, tuple(_rule(head, place) for place in range(len(head))), *rows]
        pieces.append("\n".join(f"| {' | '.join(line)} |" for line in lines))
    return "\n\n".join(pieces)


def _tables(outcome: Outcome) -> Iterator[tuple[Row, list[Row]]]:
    yield _CASES, [_case(place, found) for place, found in outcome.measured.items()]
    yield (
        _SERVERS,
        [
            (TITLES[name], f"{peer.start_seconds:.2f}", _number(peer.idle_megabytes, 0))
            for name, peer in outcome.peers.items()
        ],
    )
    yield _RATIOS, [_ratio(each) for each in outcome.ratios]


def _case(place: Place, found: Measured) -> Row:
    (what, server), connections = place
    return (
        WHAT[what],
        TITLES[server],
        str(connections),
        f"{found.rate:,.0f}",
        _number(found.cpu, 1 if found.cpu and found.cpu < 100 else 0),
        f"{found.p50:.2f}",
        f"{found.p99:.2f}",
        str(found.failures),
    )


def _ratio(ratio: Ratio) -> Row:
    verdict = {True: "reached", False: "missed", None: ""}[ratio.reached]
    return (
        ratio.goal.name,
        str(ratio.connections),
        f"{ratio.value:.2f}",
        _number(ratio.cpu, 2),
        ratio.goal.wanted,
        verdict,
    )


def _number(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:,.{digits}f}"


def _is_number(text: str) -> bool:
    return text.replace(",", "").replace(".", "").isdigit() or text == "–"


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


def _rule(head: Row, place: int) -> str:
    words = head[place] in {"", "server", "ratio", "goal"}
    return "---" if words else "--:"
