"""What a pair of glasses shows, has said and has been told of; each event in, lines for a reader out."""

from collections import deque
from dataclasses import dataclass
from typing import Any

from toolcrib.cli.glasses.display import Screen, drawn, fields, framed
from toolcrib.cli.output import plain
from toolcrib.model import Device, JsonObject

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
            words = "(breaks off)" if data.get("stop") else _text(data.get("text"))
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
        view, package = _text(data.get("view")) or MAIN, _text(data.get("packageName"))
        layout = fields(data.get("layout"))
        if self.screen is None:
            return [f"no display: {package} shows a {_text(layout.get('layoutType'))}"]
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
        return f"{kind}: {_text(data['lost'])} events were lost, this terminal is too slow"
    who = _text(data.get("tool")) or _text(data.get("packageName"))
    total, done = data.get("total"), data.get("done")
    far = f"{_count(done)} of {_count(total)}" if total is not None and done is not None else ""
    why = next((_text(data[each]) for each in ("message", "reason", "code") if data.get(each)), "")
    words = (who, _text(data.get("state")), far, why)
    return f"{kind}: " + ", ".join(word for word in words if word)


def _count(value: Any) -> str:
    return f"{value:g}" if isinstance(value, int | float) else _text(value)


def _text(value: Any) -> str:
    """Keep a value to one line of text that cannot steer the terminal."""
    return "" if value is None else plain(" ".join(str(value).split()))
