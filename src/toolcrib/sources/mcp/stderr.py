"""The standard error of a server: its last lines for the status page, a limited rate of lines for the log."""

import asyncio
import logging
import re
from collections import deque
from collections.abc import Callable
from time import monotonic

LINES = 50
"""Number of last lines that are stored."""
LONGEST = 1024
"""Maximum characters of a line that are shown."""

BURST = 50
"""Maximum lines in the log at once."""
RATE = 20.0
"""Lines per second in the log, once a burst is used up (token bucket)."""

_KEPT = 4 * LONGEST
"""Maximum bytes of a line that are stored: more than is shown, so that redaction sees each secret whole."""

_COLOURS = re.compile(r"\x1b\[[0-9;:?]*[ -/]*[@-~]")
_CONTROLS = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")

log = logging.getLogger("toolcrib.sources.mcp")

Redact = Callable[[str], str]


def shown(line: bytes, redact: Redact) -> str:
    """Return a line for display: text without control characters and secrets, truncated."""
    text = line[:_KEPT].decode("utf-8", "replace")
    clean = redact(_CONTROLS.sub("", _COLOURS.sub("", text)))
    return clean if len(clean) <= LONGEST else f"{clean[: LONGEST - 1]}…"


class RateLimitedLog:
    """Logs unsolicited lines at a limited rate, and then the number of those omitted."""

    def __init__(
        self, message: str, redact: Redact, server: str, clock: Callable[[], float] = monotonic
    ) -> None:
        self._message, self._redact, self._clock = message, redact, clock
        self._server = server
        self._left, self._at = float(BURST), clock()
        self._omitted = 0
        self._note: asyncio.TimerHandle | None = None

    def write(self, lines: list[bytes], unseen: int = 0) -> None:
        """Log as many lines as the token bucket allows; `unseen` ones are only counted."""
        now = self._clock()
        self._left = min(float(BURST), self._left + (now - self._at) * RATE)
        self._at = now
        room = int(self._left)
        if room and self._omitted:
            self.close()
        told = lines[:room]
        for line in told:
            self._say(self._message, shown(line, self._redact))
        self._left -= len(told)
        self._omit(len(lines) - len(told) + unseen)

    def close(self) -> None:
        """Log the number of lines omitted so far."""
        if self._note is not None:
            self._note.cancel()
            self._note = None
        if self._omitted:
            self._say("%s: %s more lines like these were left out", str(self._omitted))
            self._omitted = 0

    def _omit(self, count: int) -> None:
        self._omitted += count
        if count and self._note is None:
            self._note = asyncio.get_running_loop().call_later(1.0, self.close)

    def _say(self, message: str, text: str) -> None:
        log.info(message, self._server, text, extra={"server": self._server})


class StderrTail:
    """Splits the standard error of a server into lines, and stores the last ones."""

    def __init__(self, redact: Redact, server: str, clock: Callable[[], float] = monotonic) -> None:
        self._redact = redact
        self._begun = b""
        self._last: deque[bytes] = deque(maxlen=LINES)
        self._log = RateLimitedLog("%s wrote to its standard error: %s", redact, server, clock)

    def feed(self, chunk: bytes) -> None:
        """Handle a chunk of the standard error."""
        *ends, rest = chunk.split(b"\n")
        if not ends:
            self._begun += rest[: _KEPT - len(self._begun)]
            return
        ends[0] = self._begun + ends[0]
        self._begun = rest[:_KEPT]
        unseen = max(0, len(ends) - BURST - LINES)
        if unseen:  # the lines in between are neither logged nor stored
            ends = ends[:BURST] + ends[-LINES:]
        self._keep([line[:_KEPT] for line in ends if line.strip()], unseen)

    def close(self) -> None:
        """Handle the end of the stream: an incomplete line counts as a line."""
        if self._begun.strip():
            self._keep([self._begun])
        self._begun = b""
        self._log.close()

    def lines(self) -> list[str]:
        """Return the last lines, for display."""
        return [shown(line, self._redact) for line in self._last]

    def _keep(self, lines: list[bytes], unseen: int = 0) -> None:
        self._last.extend(lines)
        self._log.write(lines, unseen)
