"""Logs changed tool definitions, rate limited so that a source cannot flood the log."""

import logging
from collections.abc import Callable, Mapping
from time import monotonic

from toolcrib.catalog.pins import Mode, PinChange

log = logging.getLogger(__name__)

MAX_NAMES = 20
"""Tools that one line may list."""
QUIET_SECONDS = 60.0
"""Seconds before a tool is logged again, however often it changes; every change is still counted."""

_OUTCOMES: Mapping[Mode, str] = {
    "notify": "served all the same, as their source's `pin` says",
    "strict": "hidden until an operator approves them with `toolcrib pins approve`",
}


class ChangeLog:
    """Logs a tool at its first change, and later changes at most once per quiet period."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._named: dict[str, float] = {}

    def report(self, changed: Mapping[str, PinChange], before: Mapping[str, PinChange]) -> None:
        """Log the changes since `before`."""
        now = self._clock()
        self._named = {name: at for name, at in self._named.items() if at > now - QUIET_SECONDS}
        for mode, outcome in _OUTCOMES.items():
            of_mode = [name for name, change in changed.items() if change.mode == mode]
            fresh = [name for name in of_mode if changed[name] != before.get(name)]
            told = [name for name in fresh if name not in self._named]
            self._named.update(dict.fromkeys(told, now))
            if told:
                named = ", ".join(told[:MAX_NAMES]) + (", …" if len(told) > MAX_NAMES else "")
                log.warning("not what was trusted before, and %s: %s", outcome, named)
