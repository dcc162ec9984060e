"""One finished call as it waits to be written down: who, what and how it went, never arguments or data."""

from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol

from toolcrib.errors import CODES
from toolcrib.model import Caller, Kind, Origin, Problem, Tool

Outcome = Literal["success", "error", "timeout"]

BLAMELESS = frozenset({Kind.INVALID, Kind.NOT_FOUND, Kind.DENIED, Kind.LIMITED, Kind.CANCELLED})
"""Kinds of problems that say nothing about the tool: it was not tried, or nobody waited for it."""

_TOO_LATE = (Kind.TIMEOUT, Kind.UNKNOWN)


class Entry(NamedTuple):
    """A tuple, because one is made on every call; without results, because thousands wait at a time."""

    id: str
    tool: Tool
    caller: Caller
    origin: Origin
    problem: Problem | None
    cached: bool
    seconds: float
    at: float
    """When it ended, as seconds since the epoch."""
    waited: float = 0.0
    """How long the caller was asked something meanwhile: no part of `seconds`."""


class Sink(Protocol):
    """Where entries go. Each one bounds what it holds and counts what it had to drop."""

    @property
    def name(self) -> str:
        """What metrics and status call it."""
        ...

    @property
    def dropped(self) -> int:
        """How many entries it could not keep."""
        ...

    def take(self, batch: Sequence[Entry]) -> None:
        """Take a batch in, at once."""
        ...

    async def flush(self) -> None:
        """Bring what was taken in to where it belongs. May wait; is never run twice at a time."""
        ...


def outcome(problem: Problem | None) -> Outcome:
    """Say how a call ended. One whose end is unknown ran out of time, as its status 504 says too."""
    if problem is None:
        return "success"
    return "timeout" if problem.kind in _TOO_LATE else "error"


def outcome_of_code(code: str) -> Outcome:
    """Say the same from the code alone; the code of success is empty."""
    if not code:
        return "success"
    return "timeout" if code in CODES and CODES[code].kind in _TOO_LATE else "error"


def error_class(code: str) -> str:
    """Validation, business or system, from the table of codes."""
    return CODES[code].error_class if code in CODES else "system"
