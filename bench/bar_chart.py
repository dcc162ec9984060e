"""Draws bar charts as SVG: groups of bars with a note each, readable on light and dark pages."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

WIDTH = 1000
_LEFT, _RIGHT = 250, 700
_BAR_HEIGHT, _BAR_GAP, _GROUP_HEADER, _TOP, _FOOTER = 26, 10, 58, 84, 56
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


@dataclass(frozen=True, kw_only=True)
class Bar:
    """Calls per second of one server."""

    title: str
    rate: float
    cpu: float | None
    highlighted: bool
    goal: float | None = None
    """The lowest rate that meets the goal."""


@dataclass(frozen=True, kw_only=True)
class Group:
    """Bars that share a scale."""

    title: str
    note: str
    bars: Sequence[Bar]


def draw_chart(groups: Sequence[Group], *, heading: str, name: str, footer: str) -> str:
    """Return a chart as an SVG document, with its values as text for screen readers."""
    lines: list[str] = []
    height = _TOP
    for group in groups:
        lines += _draw_group(group, height)
        height += _GROUP_HEADER + len(group.bars) * (_BAR_HEIGHT + _BAR_GAP)
    height += _FOOTER
    size = f'viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
    page = (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-labelledby="title what">',
        f'  <title id="title">{escape(name)}</title>',
        f'  <desc id="what">{escape(_alt_text(groups))}</desc>',
        f"  <style>{_STYLE}  </style>",
        f'  <rect class="paper" x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1}" rx="14"/>',
        f'  <text class="heading" x="40" y="50">{escape(heading)}</text>',
        *(f"  {line}" for line in lines),
        f'  <text class="note" x="40" y="{height - 24}">{escape(footer)}</text>',
        "</svg>",
    )
    return "\n".join((*page, ""))


def _draw_group(group: Group, top: int) -> Iterator[str]:
    yield f'<text class="part" x="40" y="{top + 18}">{escape(group.title.upper())}</text>'
    yield f'<text class="note" x="{_LEFT}" y="{top + 18}">{escape(group.note)}</text>'
    maximum = max(max(bar.rate, bar.goal or 0.0) for bar in group.bars)
    for index, bar in enumerate(group.bars):
        yield from _draw_bar(bar, maximum, top + _GROUP_HEADER - 22 + index * (_BAR_HEIGHT + _BAR_GAP))


def _draw_bar(bar: Bar, maximum: float, top: int) -> Iterator[str]:
    scale = (_RIGHT - _LEFT) / maximum
    middle = top + _BAR_HEIGHT / 2 + 5
    size = f'height="{_BAR_HEIGHT}"'
    style, kind = ("name own", "crib") if bar.highlighted else ("name", "other")
    yield f'<text class="{style}" x="{_LEFT - 14}" y="{middle:g}">{escape(bar.title)}</text>'
    yield f'<rect class="track" x="{_LEFT}" y="{top}" width="{_RIGHT - _LEFT}" {size} rx="6"/>'
    width = max(bar.rate * scale, 3)
    yield f'<rect class="{kind}" x="{_LEFT}" y="{top}" width="{width:.1f}" {size} rx="6"/>'
    yield f'<text class="value" x="{_RIGHT + 18}" y="{middle:g}">{bar.rate:,.0f} calls/s</text>'
    if bar.cpu is not None:
        yield f'<text class="cost" x="{WIDTH - 40}" y="{middle:g}">{bar.cpu:,.0f} µs of CPU</text>'
    if bar.goal is not None:
        x = _LEFT + bar.goal * scale
        yield f'<line class="goal" x1="{x:.1f}" x2="{x:.1f}" y1="{top - 4}" y2="{top + _BAR_HEIGHT + 4}"/>'


def _alt_text(groups: Sequence[Group]) -> str:
    bars = ((group.title, bar) for group in groups for bar in group.bars)
    return "; ".join(f"{title}, {bar.title}: {bar.rate:,.0f} calls per second" for title, bar in bars) + "."
