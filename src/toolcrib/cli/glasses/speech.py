"""The voice of this machine: the programs that speak, and one that says everything in its turn."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from shutil import which
from typing import Self

import anyio

_SECONDS = 60.0
"""How long one sentence may take."""
_WAITING = 16
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
        self._ours, self._theirs = anyio.create_memory_object_stream[str](_WAITING)
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
            with anyio.move_on_after(_SECONDS) as self._speaking:
                if not await _spoken(*self._voice.asked(text, self._language)):
                    self._voice = None
            self._speaking = None


async def _spoken(command: tuple[str, ...], text: bytes) -> bool:
    code = None
    try:
        code = (await anyio.run_process(command, input=text, check=False)).returncode
    except* (OSError, anyio.BrokenResourceError):
        # It is not there, or would not even listen.
        pass
    return code == 0
