"""The outcome as a picture: bars of throughput with the goals marked, on paper for day and night alike."""

from collections.abc import Iterator
from xml.sax.saxutils import escape

from bench.goals import GOALS, Ratio
from bench.outcome import Outcome
from bench.report import TITLES, WHAT
from bench.rounds import Measured

Found = dict[str, Measured]

WIDTH = 1000
_LEFT, _RIGHT = 250, 700
_BAR, _GAP, _HEAD, _TOP, _FOOT = 26, 10, 58, 84, 56
_ORDER = {
    "rest": ("echo", "toolcrib", "toolcrib-10000"),
    "mcp": ("sdk", "toolcrib", "fastmcp"),
    "list": ("echo-list", "toolcrib-10000"),
}
_STYLE = """
    .paper { fill: #fbfaf6; stroke: #d9d4c7; }
    .heading { font: 600 20px system-ui, sans-serif; fill: #23211c; }
    .part { font: 600 13px system-ui, sans-serif; fill: #6b6657; letter-spacing: 0.06em; }
    .name { font: 14px system-ui, sans-serif; fill: #3c392e; text-anchor: end; }
    .own { font-weight: 600; fill: #23211c; }
    .value { font: 600 13.5px system-ui, sans-serif; fill: #23211c; }
    .note { font: 13px system-ui, sans-serif; fill: #55513f; }
    .cost { font: 13px system-ui, sans-serif; fill: #55513f; text-anchor: end; }
    .track { fill: #f1ede2; }
    .other { fill: #b9c9d6; }
    .crib { fill: #d9a63a; }
    .goal { stroke: #5c7f5c; stroke-width: 2; stroke-dasharray: 3 3; }
"""


def picture(outcome: Outcome) -> str:
    """Draw the bars at the largest number of connections."""
    connections = max(outcome.plan.connections)
    drawn: list[str] = []
    height = _TOP
    for part, servers in _ORDER.items():
        found = {
            name: outcome.measured[(part, name), connections]
            for name in servers
            if ((part, name), connections) in outcome.measured
        }
        if found:
            drawn += _part(part, found, _ratio_of(outcome, part, connections), height)
            height += _HEAD + len(found) * (_BAR + _GAP)
    return _page(drawn, height + _FOOT, outcome, connections)


def _ratio_of(outcome: Outcome, part: str, connections: int) -> Ratio | None:
    """Return the part's own goal: the first that is about it."""
    goal = next(each for each in GOALS if each.over[0] == part)
    found = (each for each in outcome.ratios if each.goal is goal and each.connections == connections)
    return next(found, None)


def _part(part: str, found: Found, ratio: Ratio | None, top: int) -> Iterator[str]:
    yield f'<text class="part" x="40" y="{top + 18}">{escape(WHAT[part].upper())}</text>'
    if ratio is not None:
        said = escape(f"{ratio.value:.2f} × {ratio.goal.against}; the goal is {ratio.goal.wanted}")
        yield f'<text class="note" x="{_LEFT}" y="{top + 18}">{said}</text>'
    most = max(each.rate for each in found.values())
    for place, (name, each) in enumerate(found.items()):
        yield from _bar(name, each, most, top + _HEAD - 22 + place * (_BAR + _GAP))
    yield from _aim(found, ratio, most, top + _HEAD - 22)


def _bar(name: str, found: Measured, most: float, top: int) -> Iterator[str]:
    own = name.startswith("toolcrib")
    width = max(found.rate / most * (_RIGHT - _LEFT), 3)
    middle = top + _BAR / 2 + 5
    style = "name own" if own else "name"
    yield f'<text class="{style}" x="{_LEFT - 14}" y="{middle:g}">{escape(TITLES[name])}</text>'
    yield f'<rect class="track" x="{_LEFT}" y="{top}" width="{_RIGHT - _LEFT}" height="{_BAR}" rx="6"/>'
    kind = "crib" if own else "other"
    yield f'<rect class="{kind}" x="{_LEFT}" y="{top}" width="{width:.1f}" height="{_BAR}" rx="6"/>'
    yield f'<text class="value" x="{_RIGHT + 18}" y="{middle:g}">{found.rate:,.0f} calls/s</text>'
    if found.cpu is not None:
        yield f'<text class="cost" x="{WIDTH - 40}" y="{middle:g}">{found.cpu:,.0f} µs of CPU</text>'


def _aim(found: Found, ratio: Ratio | None, most: float, top: int) -> Iterator[str]:
    """Mark on our own bar where the goal begins."""
    if ratio is None or ratio.reached is None:
        return
    goal = ratio.goal
    share, own, other = (
        (goal.at_least, goal.over, goal.under)
        if goal.at_least is not None
        else (1 / (goal.below or 1), goal.under, goal.over)
    )
    x = _LEFT + found[other[1]].rate * share / most * (_RIGHT - _LEFT)
    y = top + list(found).index(own[1]) * (_BAR + _GAP)
    yield f'<line class="goal" x1="{x:.1f}" x2="{x:.1f}" y1="{y - 4}" y2="{y + _BAR + 4}"/>'


def _page(drawn: list[str], height: int, outcome: Outcome, connections: int) -> str:
    plan = outcome.plan
    where = "one process on one core" if outcome.pinned else "one process, not pinned to a core"
    facts = (
        f"{connections} connections, {where}; medians of {plan.rounds} rounds of "
        f"{plan.seconds:g} s; load by {outcome.load}. The dashed mark is the goal."
    )
    size = f'viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
    lines = (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-labelledby="title what">',
        '  <title id="title">Toolcrib beside its peers</title>',
        f'  <desc id="what">{escape(_told(outcome, connections))}</desc>',
        f"  <style>{_STYLE}  </style>",
        f'  <rect class="paper" x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1}" rx="14"/>',
        '  <text class="heading" x="40" y="50">Calls a second, beside the bare thing and peers</text>',
        *(f"  {line}" for line in drawn),
        f'  <text class="note" x="40" y="{height - 24}">{escape(facts)}</text>',
        "</svg>",
    )
    return "\n".join((*lines, ""))


def _told(outcome: Outcome, connections: int) -> str:
    """Say the bars in words, for who cannot see them."""
    bars = (
        f"{WHAT[what]}, {TITLES[server]}: {found.rate:,.0f} calls a second"
        for ((what, server), count), found in outcome.measured.items()
        if count == connections
    )
    return "; ".join(bars) + "."
