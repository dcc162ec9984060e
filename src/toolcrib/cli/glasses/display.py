"""Draws what an app shows: a layout in, as many rows of text out as the display of the glasses has."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from rich.cells import cell_len, set_cell_size

from toolcrib.cli.output import plain
from toolcrib.model import JsonObject

CELL = 16
"""How many of its pixels a display spends on the width of a character: no profile says how many fit."""
_MOST_LINES, _MOST_COLUMNS = 40, 120
_USUAL_LINES, _USUAL_COLUMNS = 5, 40
_CUT = "…"
_GAP = 2


@dataclass(frozen=True, slots=True)
class Screen:
    """How much text a display holds."""

    columns: int
    lines: int


def screen_of(capabilities: JsonObject) -> Screen | None:
    """Return the display a device says it has; None where it has none."""
    if not capabilities.get("hasDisplay"):
        return None
    display = fields(capabilities.get("display"))
    width = _number(fields(display.get("resolution")).get("width"))
    columns = _USUAL_COLUMNS if width is None else width // CELL
    lines = _number(display.get("maxTextLines")) or _USUAL_LINES
    return Screen(min(max(columns, 10), _MOST_COLUMNS), min(lines, _MOST_LINES))


def fields(value: Any) -> JsonObject:
    """Return a value that should be an object; what is none has no fields."""
    return cast("JsonObject", value) if isinstance(value, dict) else {}


def drawn(layout: JsonObject, screen: Screen) -> tuple[str, ...]:
    """Draw a layout: exactly the rows of the screen, none wider than it. What it cannot show it says."""
    kind = str(layout.get("layoutType"))
    draw = _LAYOUTS.get(kind)
    rows = _wall(f"[{kind}]", screen.columns, screen.lines) if draw is None else draw(layout, screen)
    return tuple((*rows, *[""] * screen.lines)[: screen.lines])


def framed(rows: tuple[str, ...], screen: Screen, title: str) -> list[str]:
    """Put a frame around what is drawn, so that its size can be seen."""
    shown = _cut(title, screen.columns - 2)
    head = f"─ {shown} " + "─" * (screen.columns - cell_len(shown) - 1)
    inner = [f"│ {set_cell_size(row, screen.columns)} │" for row in rows]
    return [f"┌{head}┐", *inner, f"└{'─' * (screen.columns + 2)}┘"]


def _text_wall(layout: JsonObject, screen: Screen) -> list[str]:
    return _wall(_text(layout, "text"), screen.columns, screen.lines)


def _double_text_wall(layout: JsonObject, screen: Screen) -> list[str]:
    """One text above the other: each keeps to its half."""
    upper = (screen.lines + 1) // 2
    top = _wall(_text(layout, "topText"), screen.columns, upper)
    bottom = _wall(_text(layout, "bottomText"), screen.columns, screen.lines - upper)
    return [*top, *[""] * (upper - len(top)), *bottom]


def _reference_card(layout: JsonObject, screen: Screen) -> list[str]:
    title = _wall(_text(layout, "title"), screen.columns, 1)
    return [*title, *_wall(_text(layout, "text"), screen.columns, screen.lines - len(title))]


def _dashboard_card(layout: JsonObject, screen: Screen) -> list[str]:
    """One text to the left, the other to the right."""
    width = (screen.columns - _GAP) // 2
    left = _wall(_text(layout, "leftText"), width, screen.lines)
    right = _wall(_text(layout, "rightText"), width, screen.lines)
    rows: list[str] = []
    for at in range(max(len(left), len(right))):
        begins, ends = (side[at] if at < len(side) else "" for side in (left, right))
        rows.append((begins + " " * (screen.columns - cell_len(begins) - cell_len(ends)) + ends).rstrip())
    return rows


def _clear_view(layout: JsonObject, screen: Screen) -> list[str]:
    return []


def _picture(layout: JsonObject, screen: Screen) -> list[str]:
    return ["[picture]"]


_LAYOUTS: Mapping[str, Callable[[JsonObject, Screen], list[str]]] = {
    "text_wall": _text_wall,
    "double_text_wall": _double_text_wall,
    "reference_card": _reference_card,
    "dashboard_card": _dashboard_card,
    "bitmap_view": _picture,
    "bitmap_animation": _picture,
    "clear_view": _clear_view,
}


def _wall(text: str, columns: int, lines: int) -> list[str]:
    """Wrap a text at its words; where it is too long, the last row says that there is more."""
    rows: list[str] = []
    for row in _wrapped(text, columns):
        if len(rows) == lines:
            return [*rows[:-1], _cut(rows[-1] + _CUT, columns) if lines else ""][:lines]
        rows.append(row)
    return rows


def _wrapped(text: str, columns: int) -> Iterator[str]:
    for line in text.splitlines():
        row = ""
        for word in line.split():
            if row and cell_len(row) + 1 + cell_len(word) > columns:
                yield row
                row = ""
            *whole, rest = _pieces(word, columns)
            yield from whole
            row = f"{row} {rest}" if row else rest
        yield row


def _pieces(word: str, columns: int) -> list[str]:
    """Break a word that is wider than the display."""
    pieces = [""]
    for each in word:
        if cell_len(pieces[-1]) + cell_len(each) > columns:
            pieces.append("")
        pieces[-1] += each
    return pieces


def _cut(text: str, columns: int) -> str:
    if cell_len(text) <= columns:
        return text
    return set_cell_size(text, columns - 1).rstrip() + _CUT


def _text(layout: JsonObject, field: str) -> str:
    value = layout.get(field)
    return plain("\n".join(value.splitlines())).strip("\n") if isinstance(value, str) else ""


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
