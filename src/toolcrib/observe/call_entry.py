"""One call as it waits to be written: who, what was asked, how it ended; never what was answered."""

from collections.abc import Sequence
from types import NoneType
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

from toolcrib.errors import CODES
from toolcrib.model import Ask, Caller, JsonObject, Kind, Origin, Problem, Tool

Outcome = Literal["success", "error", "timeout"]

BLAMELESS = frozenset({Kind.INVALID, Kind.NOT_FOUND, Kind.DENIED, Kind.LIMITED, Kind.CANCELLED})
"""Kinds of problems that say nothing about the tool: it was not tried, or nobody waited for it."""

_TOO_LATE = (Kind.TIMEOUT, Kind.UNKNOWN)
_SORTS: dict[type[Any], str] = {
    dict: "object",
    list: "list",
    str: "text",
    bool: "boolean",
    int: "number",
    float: "number",
    Ask: "question",
    NoneType: "content",
}
_WITHOUT_DATA: frozenset[type[Any]] = frozenset({NoneType, Ask})
_COUNTED: frozenset[type[Any]] = frozenset({dict, list, NoneType})


class CallEntry(NamedTuple):
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
    gave: tuple[type[Any], int, int] = (NoneType, 0, 0)
    """What came back, never the thing itself: its type, how many items it has, its bytes as JSON."""
    arguments: JsonObject | None = None
    """What it was asked, for the log alone; None where the line of its start has it, or nobody wants it."""


class CallStart(NamedTuple):
    """A call that has begun: what its line says, since what else hangs on it need not wait for that."""

    id: str
    tool: Tool
    caller: Caller
    origin: Origin
    arguments: JsonObject
    at: float
    """When it began, as seconds since the epoch."""


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

    def take(self, batch: Sequence[CallEntry]) -> None:
        """Take a batch in, at once."""
        ...

    async def flush(self) -> None:
        """Bring what was taken in to where it belongs. May wait; is never run twice at a time."""
        ...


@runtime_checkable
class StartListener(Protocol):
    """A sink that also hears of calls as they begin."""

    @property
    def hears_starts(self) -> bool:
        """Whether it wants to: nobody pays for what nobody reads."""
        ...

    def begin(self, batch: Sequence[CallStart]) -> None:
        """Take a batch in, at once; the ends of these calls come later."""
        ...

    def begin_now(self, start: CallStart) -> None:
        """Hand the line of a start over before this returns."""
        ...


def summary_of(entry: CallEntry) -> tuple[str | None, int | None, int | None]:
    """Sum an answer up: what it is, how many items it has, its bytes; three times None for a failure."""
    if entry.problem is not None:
        return None, None, None
    sort, items, size = entry.gave
    return (
        _SORTS.get(sort, "other"),
        items if sort in _COUNTED else None,
        None if sort in _WITHOUT_DATA else size,
    )


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
