"""Simulated glasses: their state and their display."""

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from rich.cells import cell_len, set_cell_size

from toolcrib.cli.output import plain
from toolcrib.model import Device, JsonObject

# --- Draws what an app shows: a layout in, as many rows of text out as the display of the glasses has ---

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
    return _wall(_layout_text(layout, "text"), screen.columns, screen.lines)


def _double_text_wall(layout: JsonObject, screen: Screen) -> list[str]:
    """One text above the other: each keeps to its half."""
    upper = (screen.lines + 1) // 2
    top = _wall(_layout_text(layout, "topText"), screen.columns, upper)
    bottom = _wall(_layout_text(layout, "bottomText"), screen.columns, screen.lines - upper)
    return [*top, *[""] * (upper - len(top)), *bottom]


def _reference_card(layout: JsonObject, screen: Screen) -> list[str]:
    title = _wall(_layout_text(layout, "title"), screen.columns, 1)
    return [*title, *_wall(_layout_text(layout, "text"), screen.columns, screen.lines - len(title))]


def _dashboard_card(layout: JsonObject, screen: Screen) -> list[str]:
    """One text to the left, the other to the right."""
    width = (screen.columns - _GAP) // 2
    left = _wall(_layout_text(layout, "leftText"), width, screen.lines)
    right = _wall(_layout_text(layout, "rightText"), width, screen.lines)
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


def _layout_text(layout: JsonObject, field: str) -> str:
    value = layout.get(field)
    return plain("\n".join(value.splitlines())).strip("\n") if isinstance(value, str) else ""


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


# --- What a pair of glasses shows, has said and has been told of; each event in, lines for a reader out ---

MAIN = "main"
_REMEMBERED = 3
_SHORTEST = 0.05


@dataclass(frozen=True, slots=True)
class ShownLayout:
    """One layout on the display, and when it goes."""

    rows: tuple[str, ...]
    package: str
    until: float | None = None


class Glasses:
    """One pair. It has no clock: whoever wears it says what time it is."""

    def __init__(self, device: Device, user: str, screen: Screen | None) -> None:
        self.device, self.user, self.screen = device, user, screen
        self.views: dict[str, ShownLayout] = {}
        """What is on the display, by view; a view that is clear is not here, but for the main one."""
        self.said: deque[str] = deque(maxlen=_REMEMBERED)
        """The last sentences, with who spoke them."""
        self.status = ""
        """The last thing heard of tools and apps."""

    @property
    def speaker(self) -> str:
        """Who speaks: glasses without a speaker leave it to the phone."""
        return "glasses speak" if "SPEAKER" in self.device.has else "phone speaks"

    def describe(self) -> str:
        """Say in one line what is worn, and by whom."""
        size = "no display"
        if self.screen is not None:
            size = f"{self.screen.lines} lines of {self.screen.columns} characters"
        return f"{self.user} wears {self.device.model}: {size}, {self.speaker}"

    def take(self, kind: str, data: JsonObject, now: float) -> list[str]:
        """Take in an event; return what it looks like, line by line."""
        if kind == "display":
            return self._show(data, now)
        if kind in ("speak", "heard"):
            words = "(breaks off)" if data.get("stop") else _one_line(data.get("text"))
            line = f"{self.speaker if kind == 'speak' else 'you'}: {words}"
            self.said.append(line)
            return [line]
        self.status = _told(kind, data)
        return [self.status]

    def faded(self, now: float) -> list[str]:
        """Return the views that have been shown for long enough."""
        return [view for view, shown in self.views.items() if shown.until is not None and shown.until <= now]

    def due(self) -> float | None:
        """Return when something is to be cleared next."""
        times = [shown.until for shown in self.views.values() if shown.until is not None]
        return min(times, default=None)

    def _show(self, data: JsonObject, now: float) -> list[str]:
        view, package = _one_line(data.get("view")) or MAIN, _one_line(data.get("packageName"))
        layout = fields(data.get("layout"))
        if self.screen is None:
            return [f"no display: {package} shows a {_one_line(layout.get('layoutType'))}"]
        if layout.get("layoutType") == "clear_view":
            self.views.pop(view, None)
            return [f"display {view}: clear"]
        rows = drawn(layout, self.screen)
        self.views[view] = ShownLayout(rows, package, _until(data.get("durationMs"), now))
        return framed(rows, self.screen, f"{view} · {package}" if package else view)


def _until(milliseconds: Any, now: float) -> float | None:
    if isinstance(milliseconds, bool) or not isinstance(milliseconds, int | float) or milliseconds <= 0:
        return None
    return now + max(milliseconds / 1000, _SHORTEST)


def _told(kind: str, data: JsonObject) -> str:
    """Put an event of a tool, an app or the line in a few words."""
    if "lost" in data:
        return f"{kind}: {_one_line(data['lost'])} events were lost, this terminal is too slow"
    who = _one_line(data.get("tool")) or _one_line(data.get("packageName"))
    total, done = data.get("total"), data.get("done")
    far = f"{_count(done)} of {_count(total)}" if total is not None and done is not None else ""
    why = next((_one_line(data[each]) for each in ("message", "reason", "code") if data.get(each)), "")
    words = (who, _one_line(data.get("state")), far, why)
    return f"{kind}: " + ", ".join(word for word in words if word)


def _count(value: Any) -> str:
    return f"{value:g}" if isinstance(value, int | float) else _one_line(value)


def _one_line(value: Any) -> str:
    """Keep a value to one line of text that cannot steer the terminal."""
    return "" if value is None else plain(" ".join(str(value).split()))
