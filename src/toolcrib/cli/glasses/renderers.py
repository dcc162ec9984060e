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

# --- Speech output: the speech programs of this machine and a queue in front of them ---

_MAX_SENTENCE_SECONDS = 60.0
"""A speech program that takes longer is stopped."""
_MAX_QUEUED_SENTENCES = 16
_LANGUAGE = "{language}"
_TEXT = "{text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeechProgram:
    """A text-to-speech program; it reads the text from stdin unless its command has a placeholder for it."""

    command: tuple[str, ...]
    language_options: tuple[str, ...] = ()
    """Arguments that set the language."""

    def command_for(self, text: str, language: str) -> tuple[tuple[str, ...], bytes]:
        """Return the command that speaks a text, and its stdin."""
        program, *rest = self.command
        text_arguments = tuple(text if each == _TEXT else each for each in rest)
        language_arguments = (
            tuple(each.replace(_LANGUAGE, language) for each in self.language_options) if language else ()
        )
        stdin = b"" if _TEXT in self.command else text.encode()
        return (program, *language_arguments, *text_arguments), stdin


SPEECH_PROGRAMS = (
    SpeechProgram(command=("say", "-f", "-")),
    SpeechProgram(command=("spd-say", "--wait", "--", _TEXT), language_options=("-l", _LANGUAGE)),
    SpeechProgram(command=("espeak-ng", "--stdin"), language_options=("-v", _LANGUAGE)),
    SpeechProgram(command=("espeak", "--stdin"), language_options=("-v", _LANGUAGE)),
)
"""In order of preference: programs that are part of a system come before installed ones."""


def find_speech_program(find: Callable[[str], str | None] = which) -> SpeechProgram | None:
    """Return the first speech program that is installed."""
    return next((program for program in SPEECH_PROGRAMS if find(program.command[0])), None)


class SpeechQueue:
    """Speaks queued texts one after the other; a program that fails is not used again."""

    def __init__(self, program: SpeechProgram | None, language: str) -> None:
        self._program, self._language = program, language.partition("-")[0]
        self._sender, self._receiver = anyio.create_memory_object_stream[str](_MAX_QUEUED_SENTENCES)
        self._speaking: anyio.CancelScope | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self._sender.close()
        self._receiver.close()

    @property
    def unavailable(self) -> bool:
        """Whether there is no speech program, or it has failed."""
        return self._program is None

    @property
    def speaking(self) -> bool:
        """Whether a text is being spoken."""
        return self._speaking is not None

    def say(self, text: str) -> None:
        """Queue a text; it is dropped if the queue is full."""
        if self.unavailable or not text:
            return
        with suppress(anyio.WouldBlock):
            self._sender.send_nowait(text)

    def stop(self) -> None:
        """Stop speaking and clear the queue."""
        with suppress(anyio.WouldBlock):
            while True:
                self._receiver.receive_nowait()
        if self._speaking is not None:
            self._speaking.cancel()

    async def run(self) -> None:
        """Speak queued texts until cancelled."""
        async for text in self._receiver:
            if self._program is None:
                continue
            with anyio.move_on_after(_MAX_SENTENCE_SECONDS) as self._speaking:
                if not await _run_program(*self._program.command_for(text, self._language)):
                    self._program = None
            self._speaking = None


async def _run_program(command: tuple[str, ...], text: bytes) -> bool:
    code = None
    try:
        code = (await anyio.run_process(command, input=text, check=False)).returncode
    except* (OSError, anyio.BrokenResourceError):
        # The program is missing, or exited without reading its stdin.
        pass
    return code == 0


# --- Renderers: a live drawing in the terminal, plain lines, or JSON lines ---

StyledLine = tuple[str, str]
"""A text and its style."""
_CLEAR: JsonObject = {"layoutType": "clear_view"}


class Renderer(Protocol):
    """Output of the simulation."""

    def show_start(self, glasses: Glasses, session: JsonObject) -> None:
        """Show the device at the start of the session."""
        ...

    def show_event(self, kind: str, data: JsonObject, lines: Sequence[str]) -> None:
        """Show an event; `lines` is its text form."""
        ...

    def show_input(self, text: str) -> None:
        """Show the line of input typed so far."""
        ...


class JsonRenderer:
    """Prints every event as a line of JSON, for programs."""

    def show_start(self, glasses: Glasses, session: JsonObject) -> None:
        self.show_event("session", session, ())

    def show_event(self, kind: str, data: JsonObject, lines: Sequence[str]) -> None:
        click.echo(orjson.dumps({"event": kind, "data": data}))

    def show_input(self, text: str) -> None:
        pass


class PlainRenderer:
    """Prints every event as lines of text."""

    def show_start(self, glasses: Glasses, session: JsonObject) -> None:
        print_line(glasses.describe())

    def show_event(self, kind: str, data: JsonObject, lines: Sequence[str]) -> None:
        for line in lines:
            print_line(line)

    def show_input(self, text: str) -> None:
        pass


class LiveRenderer:
    """Draws the glasses in place, updated with every event."""

    def __init__(self, live: "Live") -> None:
        self._live = live
        self._glasses: Glasses | None = None
        self._input = ""

    def show_start(self, glasses: Glasses, session: JsonObject) -> None:
        self._glasses = glasses
        self._draw()

    def show_event(self, kind: str, data: JsonObject, lines: Sequence[str]) -> None:
        self._draw()

    def show_input(self, text: str) -> None:
        self._input = text
        self._draw()

    def _draw(self) -> None:
        if self._glasses is not None:
            width = self._live.console.width
            self._live.update(_styled(draw_glasses(self._glasses, self._input, width)), refresh=True)


def draw_glasses(glasses: Glasses, typed: str, width: int) -> list[StyledLine]:
    """Return the complete drawing: device, displays, transcript, status and input."""
    lines = [(glasses.describe(), "bold"), *_draw_displays(glasses)]
    lines += [(line, "cyan") for line in glasses.transcript]
    lines.append((glasses.status, "dim"))
    return [*lines, (f"> {typed[-max(width - 4, 1) :]}▏", "")]


def _draw_displays(glasses: Glasses) -> list[StyledLine]:
    """Return the frames of the main view and of all other views in use."""
    if glasses.screen is None:
        return []
    lines: list[StyledLine] = []
    for view in (MAIN, *(each for each in glasses.views if each != MAIN)):
        shown = glasses.views.get(view)
        rows = draw_layout(_CLEAR, glasses.screen) if shown is None else shown.rows
        title = f"{view} · {shown.package}" if shown is not None and shown.package else view
        lines += [(row, "green") for row in add_frame(rows, glasses.screen, title)]
    return lines


def _styled(lines: Sequence[StyledLine]) -> "Text":
    from rich.text import Text

    # Long lines are cropped, since wrapping would break the frame.
    text = Text(no_wrap=True, overflow="crop")
    for index, (line, style) in enumerate(lines):
        text.append(f"\n{line}" if index else line, style=style or None)
    return text
