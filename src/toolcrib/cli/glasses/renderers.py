"""Output of simulated glasses on the terminal, as JSON lines or as speech."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from shutil import which
from typing import TYPE_CHECKING, Protocol, Self

import anyio
import click
import orjson

from toolcrib.cli.glasses.glasses import MAIN, Glasses, add_frame, draw_layout
from toolcrib.cli.output import print_line
from toolcrib.model import JsonObject

if TYPE_CHECKING:
    from rich.live import Live
    from rich.text import Text

# --- The voice of this machine: the programs that speak, and one that says everything in its turn ---

_MAX_SENTENCE_SECONDS = 60.0
"""How long one sentence may take."""
_MAX_QUEUED_SENTENCES = 16
_LANGUAGE = "{language}"
_TEXT = "{text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeechProgram:
    """One program that speaks. The text goes to its standard input, unless its command has a place for it."""

    command: tuple[str, ...]
    spoken: tuple[str, ...] = ()
    """How it is told the language."""

    def asked(self, text: str, language: str) -> tuple[tuple[str, ...], bytes]:
        """Return the command that says a text, and what it reads."""
        program, *rest = self.command
        words = tuple(text if each == _TEXT else each for each in rest)
        tongue = tuple(each.replace(_LANGUAGE, language) for each in self.spoken) if language else ()
        return (program, *tongue, *words), b"" if _TEXT in self.command else text.encode()


SPEECH_PROGRAMS = (
    SpeechProgram(command=("say", "-f", "-")),
    SpeechProgram(command=("spd-say", "--wait", "--", _TEXT), spoken=("-l", _LANGUAGE)),
    SpeechProgram(command=("espeak-ng", "--stdin"), spoken=("-v", _LANGUAGE)),
    SpeechProgram(command=("espeak", "--stdin"), spoken=("-v", _LANGUAGE)),
)
"""In the order they are tried: what comes with a system first, then what is installed on it."""


def find_speech_program(find: Callable[[str], str | None] = which) -> SpeechProgram | None:
    """Return the first voice this machine has."""
    return next((voice for voice in SPEECH_PROGRAMS if find(voice.command[0])), None)


class SpeechQueue:
    """Says one sentence after the other; where nothing can be heard, it says nothing more."""

    def __init__(self, voice: SpeechProgram | None, language: str) -> None:
        self._voice, self._language = voice, language.partition("-")[0]
        self._ours, self._theirs = anyio.create_memory_object_stream[str](_MAX_QUEUED_SENTENCES)
        self._speaking: anyio.CancelScope | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self._ours.close()
        self._theirs.close()

    @property
    def silent(self) -> bool:
        """Whether there is no voice to speak with, or none that works."""
        return self._voice is None

    @property
    def speaking(self) -> bool:
        """Whether something is being said at the moment."""
        return self._speaking is not None

    def say(self, text: str) -> None:
        """Have it said; what would wait behind too many others is left out."""
        if self.silent or not text:
            return
        with suppress(anyio.WouldBlock):
            self._ours.send_nowait(text)

    def hush(self) -> None:
        """Break off, and forget what was still to be said."""
        with suppress(anyio.WouldBlock):
            while True:
                self._theirs.receive_nowait()
        if self._speaking is not None:
            self._speaking.cancel()

    async def run(self) -> None:
        """Speak until cancelled."""
        async for text in self._theirs:
            if self._voice is None:
                continue
            with anyio.move_on_after(_MAX_SENTENCE_SECONDS) as self._speaking:
                if not await _run_program(*self._voice.asked(text, self._language)):
                    self._voice = None
            self._speaking = None


async def _run_program(command: tuple[str, ...], text: bytes) -> bool:
    code = None
    try:
        code = (await anyio.run_process(command, input=text, check=False)).returncode
    except* (OSError, anyio.BrokenResourceError):
        # It is not there, or would not even listen.
        pass
    return code == 0


# --- Three ways to watch a pair of glasses: drawn in a terminal, as plain lines, as lines of JSON ---

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
        print_line(glasses.describe())

    def happened(self, kind: str, data: JsonObject, lines: Sequence[str]) -> None:
        for line in lines:
            print_line(line)

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
        rows = draw_layout(_CLEAR, glasses.screen) if shown is None else shown.rows
        title = f"{view} · {shown.package}" if shown is not None and shown.package else view
        lines += [(row, "green") for row in add_frame(rows, glasses.screen, title)]
    return lines


def _styled(lines: Sequence[Line]) -> "Text":
    from rich.text import Text

    # What does not fit is cut: a line that wraps would break the frame.
    text = Text(no_wrap=True, overflow="crop")
    for at, (line, style) in enumerate(lines):
        text.append(f"\n{line}" if at else line, style=style or None)
    return text
