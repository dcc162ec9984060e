"""Simulated glasses: layout rendering and display state."""

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from rich.cells import cell_len, set_cell_size

from toolcrib.cli.output import strip_control
from toolcrib.model import Device, JsonObject

# --- Layout rendering: draws a layout of an app as the rows of text that the display has ---

CELL_PIXELS = 16
"""Assumed width of a character in pixels: device profiles give the resolution, not the columns."""
_MAX_LINES, _MAX_COLUMNS = 40, 120
_DEFAULT_LINES, _DEFAULT_COLUMNS = 5, 40
_ELLIPSIS = "…"
_GAP_COLUMNS = 2


@dataclass(frozen=True, slots=True)
class Screen:
    """Size of a display in characters."""

    columns: int
    lines: int


def device_screen(capabilities: JsonObject) -> Screen | None:
    """Return the display size from a device's capabilities; None if it has no display."""
    if not capabilities.get("hasDisplay"):
        return None
    display = object_or_empty(capabilities.get("display"))
    width = _positive_integer(object_or_empty(display.get("resolution")).get("width"))
    columns = _DEFAULT_COLUMNS if width is None else width // CELL_PIXELS
    lines = _positive_integer(display.get("maxTextLines")) or _DEFAULT_LINES
    return Screen(min(max(columns, 10), _MAX_COLUMNS), min(lines, _MAX_LINES))


def object_or_empty(value: Any) -> JsonObject:
    """Return the value if it is a JSON object, else an empty object."""
    return cast("JsonObject", value) if isinstance(value, dict) else {}


def draw_layout(layout: JsonObject, screen: Screen) -> tuple[str, ...]:
    """Return the rows of a layout, exactly as many as the screen has; an unsupported layout is named."""
    kind = str(layout.get("layoutType"))
    draw = _LAYOUTS.get(kind)
    rows = _wrap(f"[{kind}]", screen.columns, screen.lines) if draw is None else draw(layout, screen)
    return tuple((*rows, *[""] * screen.lines)[: screen.lines])


def add_frame(rows: tuple[str, ...], screen: Screen, title: str) -> list[str]:
    """Return the rows with a frame and a title, so that the size of the display is visible."""
    shown = _cut(title, screen.columns - 2)
    head = f"─ {shown} " + "─" * (screen.columns - cell_len(shown) - 1)
    inner = [f"│ {set_cell_size(row, screen.columns)} │" for row in rows]
    return [f"┌{head}┐", *inner, f"└{'─' * (screen.columns + 2)}┘"]


def _text_wall(layout: JsonObject, screen: Screen) -> list[str]:
    return _wrap(_layout_text(layout, "text"), screen.columns, screen.lines)


def _double_text_wall(layout: JsonObject, screen: Screen) -> list[str]:
    """Draw two texts, each in its half of the display."""
    upper = (screen.lines + 1) // 2
    top = _wrap(_layout_text(layout, "topText"), screen.columns, upper)
    bottom = _wrap(_layout_text(layout, "bottomText"), screen.columns, screen.lines - upper)
    return [*top, *[""] * (upper - len(top)), *bottom]


def _reference_card(layout: JsonObject, screen: Screen) -> list[str]:
    title = _wrap(_layout_text(layout, "title"), screen.columns, 1)
    return [*title, *_wrap(_layout_text(layout, "text"), screen.columns, screen.lines - len(title))]


def _dashboard_card(layout: JsonObject, screen: Screen) -> list[str]:
    """Draw two columns, the right one aligned to the right."""
    width = (screen.columns - _GAP_COLUMNS) // 2
    left = _wrap(_layout_text(layout, "leftText"), width, screen.lines)
    right = _wrap(_layout_text(layout, "rightText"), width, screen.lines)
    rows: list[str] = []
    for index in range(max(len(left), len(right))):
        left_row, right_row = (side[index] if index < len(side) else "" for side in (left, right))
        padding = " " * (screen.columns - cell_len(left_row) - cell_len(right_row))
        rows.append((left_row + padding + right_row).rstrip())
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


def _wrap(text: str, columns: int, lines: int) -> list[str]:
    """Wrap a text at word boundaries; if it is too long, the last row ends with an ellipsis."""
    rows: list[str] = []
    for row in _wrapped_rows(text, columns):
        if len(rows) == lines:
            return [*rows[:-1], _cut(rows[-1] + _ELLIPSIS, columns) if lines else ""][:lines]
        rows.append(row)
    return rows


def _wrapped_rows(text: str, columns: int) -> Iterator[str]:
    for line in text.splitlines():
        row = ""
        for word in line.split():
            if row and cell_len(row) + 1 + cell_len(word) > columns:
                yield row
                row = ""
            *whole, rest = _split_word(word, columns)
            yield from whole
            row = f"{row} {rest}" if row else rest
        yield row


def _split_word(word: str, columns: int) -> list[str]:
    """Split a word that is wider than the display."""
    pieces = [""]
    for each in word:
        if cell_len(pieces[-1]) + cell_len(each) > columns:
            pieces.append("")
        pieces[-1] += each
    return pieces


def _cut(text: str, columns: int) -> str:
    if cell_len(text) <= columns:
        return text
    return set_cell_size(text, columns - 1).rstrip() + _ELLIPSIS


def _layout_text(layout: JsonObject, field: str) -> str:
    value = layout.get(field)
    return strip_control("\n".join(value.splitlines())).strip("\n") if isinstance(value, str) else ""


def _positive_integer(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


# --- State: displayed views, transcript and status; each event is returned as lines of text ---

MAIN = "main"
_MAX_TRANSCRIPT_LINES = 3
_MIN_SHOWN_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class ShownLayout:
    """A displayed layout and the time at which it expires."""

    rows: tuple[str, ...]
    package: str
    until: float | None = None


class Glasses:
    """State of one pair of glasses. The caller passes the current time, so that tests need no clock."""

    def __init__(self, device: Device, user: str, screen: Screen | None) -> None:
        self.device, self.user, self.screen = device, user, screen
        self.views: dict[str, ShownLayout] = {}
        """Displayed layouts by view; cleared views are removed."""
        self.transcript: deque[str] = deque(maxlen=_MAX_TRANSCRIPT_LINES)
        """The last spoken lines, each with its speaker."""
        self.status = ""
        """Text of the latest tool, app or connection event."""

    @property
    def speaker(self) -> str:
        """Label of speech output: glasses without a speaker use the phone's."""
        return "glasses speak" if "SPEAKER" in self.device.has else "phone speaks"

    def describe(self) -> str:
        """Return the user, the model and its capabilities in one line."""
        size = "no display"
        if self.screen is not None:
            size = f"{self.screen.lines} lines of {self.screen.columns} characters"
        return f"{self.user} wears {self.device.model}: {size}, {self.speaker}"

    def apply_event(self, kind: str, data: JsonObject, now: float) -> list[str]:
        """Apply an event to the state; return the lines that describe it."""
        if kind == "display":
            return self._show_layout(data, now)
        if kind in ("speak", "heard"):
            spoken = "(stopped)" if data.get("stop") else _one_line(data.get("text"))
            line = f"{self.speaker if kind == 'speak' else 'you'}: {spoken}"
            self.transcript.append(line)
            return [line]
        self.status = _event_text(kind, data)
        return [self.status]

    def expired_views(self, now: float) -> list[str]:
        """Return the views whose display time is over."""
        return [view for view, shown in self.views.items() if shown.until is not None and shown.until <= now]

    def next_expiry(self) -> float | None:
        """Return the earliest time at which a view expires; None if no view does."""
        times = [shown.until for shown in self.views.values() if shown.until is not None]
        return min(times, default=None)

    def _show_layout(self, data: JsonObject, now: float) -> list[str]:
        view, package = _one_line(data.get("view")) or MAIN, _one_line(data.get("packageName"))
        layout = object_or_empty(data.get("layout"))
        if self.screen is None:
            return [f"no display: {package} shows a {_one_line(layout.get('layoutType'))}"]
        if layout.get("layoutType") == "clear_view":
            self.views.pop(view, None)
            return [f"display {view}: clear"]
        rows = draw_layout(layout, self.screen)
        self.views[view] = ShownLayout(rows, package, _expiry(data.get("durationMs"), now))
        return add_frame(rows, self.screen, f"{view} · {package}" if package else view)


def _expiry(milliseconds: Any, now: float) -> float | None:
    if isinstance(milliseconds, bool) or not isinstance(milliseconds, int | float) or milliseconds <= 0:
        return None
    return now + max(milliseconds / 1000, _MIN_SHOWN_SECONDS)


def _event_text(kind: str, data: JsonObject) -> str:
    """Return a one-line description of a tool, app or connection event."""
    if "lost" in data:
        return f"{kind}: {_one_line(data['lost'])} events were dropped because this terminal is too slow"
    subject = _one_line(data.get("tool")) or _one_line(data.get("packageName"))
    total, done = data.get("total"), data.get("done")
    progress = f"{_count(done)} of {_count(total)}" if total is not None and done is not None else ""
    detail = next((_one_line(data[each]) for each in ("message", "reason", "code") if data.get(each)), "")
    parts = (subject, _one_line(data.get("state")), progress, detail)
    return f"{kind}: " + ", ".join(part for part in parts if part)


def _count(value: Any) -> str:
    return f"{value:g}" if isinstance(value, int | float) else _one_line(value)


def _one_line(value: Any) -> str:
    """Return a value as one line of text without control characters, which could control the terminal."""
    return "" if value is None else strip_control(" ".join(str(value).split()))
