"""What is typed: lines out of a pipe or a file, or key by key out of a terminal that must not echo."""

import os
import stat
import sys
from codecs import getincrementaldecoder
from collections.abc import AsyncGenerator, Generator
from contextlib import contextmanager

import anyio
import anyio.lowlevel

_CHUNK = 4096
_LONGEST = 4000
"""A line is cut there: nobody says more in one breath."""
_ENTER, _ERASE, _KILL, _END, _ESCAPE = "\r\n", "\x7f\x08", "\x15", "\x04", "\x1b"


class Typed:
    """Keys become lines. Other control characters, and whole escape sequences, are not text."""

    def __init__(self) -> None:
        self.text = ""
        """The line as far as it has been typed."""
        self.ended = False
        self._decode = getincrementaldecoder("utf-8")(errors="replace")
        self._escape = ""

    def feed(self, keys: bytes) -> list[str]:
        """Take in some bytes; return the lines they finish. None at all are the end."""
        lines: list[str] = []
        for key in self._decode.decode(keys, final=not keys):
            if self._escaped(key):
                continue
            if key in _ENTER:
                lines.append(self._finish())
            elif key == _END and not self.text:
                self.ended = True
            else:
                self._edit(key)
        if not keys:
            self.ended = True
            lines.append(self._finish())
        return [line for line in lines if line]

    def _finish(self) -> str:
        line, self.text = self.text.strip(), ""
        return line

    def _edit(self, key: str) -> None:
        if key in _ERASE:
            self.text = self.text[:-1]
        elif key == _KILL:
            self.text = ""
        elif (key.isprintable() or key == "\t") and len(self.text) < _LONGEST:
            self.text += " " if key == "\t" else key

    def _escaped(self, key: str) -> bool:
        """Follow an escape sequence to its end: a letter or a tilde, after the bracket that opens it."""
        if not self._escape:
            self._escape = key if key == _ESCAPE else ""
            return bool(self._escape)
        opens = self._escape == _ESCAPE and key in "[O"
        self._escape = self._escape + key if opens or not (key.isalpha() or key == "~") else ""
        return True


async def keys() -> AsyncGenerator[bytes]:
    """Read our standard input as it comes, without a thread that would outlive us; ends where it ends."""
    waits = _waits(0)
    while True:
        if waits:
            await anyio.wait_readable(0)
        else:
            await anyio.lowlevel.checkpoint()
        piece = os.read(0, _CHUNK)
        if not piece:
            return
        yield piece


def _waits(descriptor: int) -> bool:
    """Whether reading can wait at all: a file never does, and /dev/null neither."""
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(descriptor)


@contextmanager
def unechoed() -> Generator[None]:
    """Have the terminal hand over each key and draw none of them; Ctrl-C still interrupts."""
    import termios
    import tty

    before = termios.tcgetattr(sys.stdin.fileno())
    tty.setcbreak(sys.stdin.fileno())
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin.fileno(), termios.TCSADRAIN, before)
