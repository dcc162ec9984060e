"""Three ways to watch a pair of glasses: drawn in a terminal, as plain lines, as lines of JSON."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import click
import orjson

from toolcrib.cli.glasses.display import drawn, framed
from toolcrib.cli.glasses.glasses import MAIN, Glasses
from toolcrib.cli.output import say
from toolcrib.model import JsonObject

if TYPE_CHECKING:
    from rich.live import Live
    from rich.text import Text

Line = tuple[str, str]
"""What is written, and in which style."""
_CLEAR: JsonObject = {"layoutType": "clear_view"}


class Renderer(Protocol):
    """Where everything that happens is shown."""

    def began(self, glasses: Glasses, session: JsonObject) -> None:
        """Show that somebody wears them."""
        ...

    def happened(self, kind: str, data: JsonObject, lines: Sequence[str]) -> None:
        """Show an event, which the glasses have taken in as these lines."""
        ...

    def typed(self, text: str) -> None:
        """Show what has been typed of a line."""
        ...


class JsonRenderer:
    """Every event as a line of JSON, for programs."""

    def began(self, glasses: Glasses, session: JsonObject) -> None:
        self.happened("session", session, ())

    def happened(self, kind: str, data: JsonObject, lines: Sequence[str]) -> None:
        click.echo(orjson.dumps({"event": kind, "data": data}))

    def typed(self, text: str) -> None:
        pass


class PlainRenderer:
    """Every event as a few lines of text."""

    def began(self, glasses: Glasses, session: JsonObject) -> None:
        say(glasses.describe())

    def happened(self, kind: str, data: JsonObject, lines: Sequence[str]) -> None:
        for line in lines:
            say(line)

    def typed(self, text: str) -> None:
        pass


class DrawnRenderer:
    """The glasses as a picture that changes in its place."""

    def __init__(self, live: "Live") -> None:
        self._live = live
        self._glasses: Glasses | None = None
        self._typed = ""

    def began(self, glasses: Glasses, session: JsonObject) -> None:
        self._glasses = glasses
        self._draw()

    def happened(self, kind: str, data: JsonObject, lines: Sequence[str]) -> None:
        self._draw()

    def typed(self, text: str) -> None:
        self._typed = text
        self._draw()

    def _draw(self) -> None:
        if self._glasses is not None:
            width = self._live.console.width
            self._live.update(_styled(picture(self._glasses, self._typed, width)), refresh=True)


def picture(glasses: Glasses, typed: str, width: int) -> list[Line]:
    """Draw everything there is to see, line by line."""
    lines = [(glasses.describe(), "bold"), *_displays(glasses)]
    lines += [(said, "cyan") for said in glasses.said]
    lines.append((glasses.status, "dim"))
    return [*lines, (f"> {typed[-max(width - 4, 1) :]}▏", "")]


def _displays(glasses: Glasses) -> list[Line]:
    """Draw the main view, and any other that something is shown on."""
    if glasses.screen is None:
        return []
    lines: list[Line] = []
    for view in (MAIN, *(each for each in glasses.views if each != MAIN)):
        shown = glasses.views.get(view)
        rows = drawn(_CLEAR, glasses.screen) if shown is None else shown.rows
        title = f"{view} · {shown.package}" if shown is not None and shown.package else view
        lines += [(row, "green") for row in framed(rows, glasses.screen, title)]
    return lines


def _styled(lines: Sequence[Line]) -> "Text":
    from rich.text import Text

    # What does not fit is cut: a line that wraps would break the frame.
    text = Text(no_wrap=True, overflow="crop")
    for at, (line, style) in enumerate(lines):
        text.append(f"\n{line}" if at else line, style=style or None)
    return text
