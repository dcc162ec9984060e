"""One call as it is recorded, and its ids."""

from binascii import hexlify
from collections.abc import Sequence
from random import getrandbits
from struct import Struct
from types import NoneType
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

from toolcrib.errors import CODES
from toolcrib.model import Ask, Caller, JsonObject, Kind, Origin, Problem, Tool

# --- Fast generation of ids for calls, and for traces that start here (random UUIDs, version 4) ---

_parts = Struct("8s4sx3sx3s12s").unpack
"""Splits 32 hex digits into UUID groups; the digits for version and variant are skipped."""


def new_id() -> str:
    """Return a new id for a call, a trace or a correlation: the text of a random UUID."""
    # Ids must be distinct, not unguessable; a secure source would cost a system call per id.
    parts = _parts(hexlify(getrandbits(128).to_bytes(16, "big")))
    # Version 4 and the variant of RFC 9562; its two free bits are not needed.
    return (b"%b-%b-4%b-8%b-%b" % parts).decode()


# --- The record of one finished call as sinks receive it: caller, tool, outcome; never the result itself ---

Outcome = Literal["success", "error", "timeout"]

NOT_TOOL_FAULTS = frozenset({Kind.INVALID, Kind.NOT_FOUND, Kind.DENIED, Kind.LIMITED, Kind.CANCELLED})
"""Problem kinds that are not the tool's fault: it was not called, or the client cancelled."""

_TIMEOUT_KINDS = (Kind.TIMEOUT, Kind.UNKNOWN)
_RESULT_TYPES: dict[type[Any], str] = {
    dict: "object",
    list: "list",
    str: "text",
    bool: "boolean",
    int: "number",
    float: "number",
    Ask: "question",
    NoneType: "content",
}
_TYPES_WITHOUT_DATA: frozenset[type[Any]] = frozenset({NoneType, Ask})
_TYPES_WITH_ITEMS: frozenset[type[Any]] = frozenset({dict, list, NoneType})


class CallEntry(NamedTuple):
    """A finished call. A tuple, as one is made per call; without results, as thousands are queued."""

    id: str
    tool: Tool
    caller: Caller
    origin: Origin
    problem: Problem | None
    cached: bool
    seconds: float
    at: float
    """When the call ended, in seconds since the epoch."""
    waited: float = 0.0
    """Seconds spent waiting for input from the caller (elicitation); not part of `seconds`."""
    returned: tuple[type[Any], int, int] = (NoneType, 0, 0)
    """Summary of the result, without its content: type, number of items, size as JSON in bytes."""
    arguments: JsonObject | None = None
    """Arguments, for the log only; None if the start line has them or if no log is configured for them."""


class CallStart(NamedTuple):
    """A call that has started. Only what its log line needs, so that a queued entry holds nothing else."""

    id: str
    tool: Tool
    caller: Caller
    origin: Origin
    arguments: JsonObject
    at: float
    """When the call started, in seconds since the epoch."""


class Sink(Protocol):
    """Consumer of call entries with a bounded queue; it counts the entries that it drops."""

    @property
    def name(self) -> str:
        """Name of the sink in metrics and status."""
        ...

    @property
    def dropped(self) -> int:
        """Number of entries that were dropped."""
        ...

    def take(self, batch: Sequence[CallEntry]) -> None:
        """Enqueue a batch without blocking."""
        ...

    async def flush(self) -> None:
        """Write the queued entries to their destination. May wait; never runs concurrently with itself."""
        ...


@runtime_checkable
class StartListener(Protocol):
    """A sink that also receives calls as they start."""

    @property
    def wants_starts(self) -> bool:
        """Whether starts are wanted; where they are not, they cost nothing."""
        ...

    def begin(self, batch: Sequence[CallStart]) -> None:
        """Enqueue a batch without blocking; the ends of these calls follow later."""
        ...

    def begin_now(self, start: CallStart) -> None:
        """Hand the line of one start to the writer before this returns."""
        ...


def summary_of(entry: CallEntry) -> tuple[str | None, int | None, int | None]:
    """Return type, number of items and size in bytes of a result; three times None for a failure."""
    if entry.problem is not None:
        return None, None, None
    kind, items, size = entry.returned
    return (
        _RESULT_TYPES.get(kind, "other"),
        items if kind in _TYPES_WITH_ITEMS else None,
        None if kind in _TYPES_WITHOUT_DATA else size,
    )


def outcome(problem: Problem | None) -> Outcome:
    """Return the outcome of a call. An unknown outcome counts as a timeout, like its HTTP status 504."""
    if problem is None:
        return "success"
    return "timeout" if problem.kind in _TIMEOUT_KINDS else "error"


def outcome_of_code(code: str) -> Outcome:
    """Return the outcome for an error code; the code of success is empty."""
    if not code:
        return "success"
    return "timeout" if code in CODES and CODES[code].kind in _TIMEOUT_KINDS else "error"


def error_class(code: str) -> str:
    """Return the error class of a code: validation, business or system; unknown codes are system."""
    return CODES[code].error_class if code in CODES else "system"
