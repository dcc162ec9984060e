"""Protocols on the call path: steps, rules, formats and recorders."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

from toolcrib.model import Call, Caller, JsonObject, Result, Tool

Outcome = Coroutine[Any, Any, Result]
"""A running call, to be awaited once."""

Handler = Callable[[Call], Outcome]
"""A composed chain of steps, or the final handler of a source."""


Followers = tuple[tuple[str, float], ...]
"""Tools that follow another, with their frequency from 0 to 1; the most likely first."""


class ArgumentSource(NamedTuple):
    """Where an argument of the next call comes from: names and paths, never a value."""

    argument: str
    path: tuple[str | int, ...] = ()
    """Path in the previous result, 0 for the first item of a list; empty for an earlier argument."""
    given: str = ""
    """Name of an argument of the previous call."""


class LearnedStep(NamedTuple):
    """A tool that is called after another, with the sources of its arguments."""

    tool: str
    share: float
    """Frequency from 0 to 1."""
    sources: tuple[ArgumentSource, ...]
    own: bool = False
    """Whether it is from calls of this caller alone."""


class Stage(Protocol):
    """A step bound to one tool (middleware): acts, awaits `proceed(call)` or not, acts on the result.

    A stage that does nothing after `proceed` need not be async and returns its coroutine, as every
    further coroutine costs time on each call.
    """

    def __call__(self, call: Call, proceed: Handler) -> Outcome: ...


class Step(Protocol):
    """One middleware between the gateway and a source."""

    def fit(self, tool: Tool) -> Stage | None:
        """Bind the step to one tool, once per catalog version; None if it has nothing to do for it."""
        ...


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a caller may not use a tool. `hide`: as if it did not exist; `deny`: the error names the reason."""

    rule: str
    message: str
    """Continues a sentence after the tool's name: "needs a camera", "is hidden"."""
    effect: Literal["hide", "deny"] = "hide"
    code: str = "PERMISSION_DENIED"
    """Error code of a denied call."""


class Rule(Protocol):
    """An access rule. Pure: no I/O."""

    @property
    def name(self) -> str:
        """Name of the rule in `explain`."""
        ...

    def concerns(self, tool: Tool) -> bool:
        """Whether the rule may object to this tool for some caller; asked once per definition."""
        ...

    def why_not(self, tool: Tool, caller: Caller) -> Reason | None:
        """Return the reason against this tool for this caller, or None."""
        ...

    @property
    def audience(self) -> Callable[[Caller], object]:
        """Returns all that this rule depends on in a caller, hashable: equal audiences see equal lists."""
        ...


class Format(Protocol):
    """The tool declaration format of one LLM provider or frontend. Pure: no I/O."""

    @property
    def name(self) -> str:
        """Name of the format in `?format=`."""
        ...

    def tool(self, tool: Tool, name: str) -> JsonObject:
        """Return the declaration of one tool under this name."""
        ...


class Recorder(Protocol):
    """Receives every call exactly once. Must not block."""

    def record(self, call: Call, result: Result, seconds: float, waited: float = 0.0) -> None:
        """Record a call without blocking; `waited` is the time of elicitation, not part of `seconds`."""
        ...

    def refused(self, code: str) -> None:
        """Record a request that was refused before it resolved to a tool."""
        ...


class ResultMemory(Protocol):
    """Memory budget that large results share."""

    def reserve(self, principal: str, size: int) -> bool:
        """Reserve memory for a result of this size in bytes; False if there is not enough."""
        ...

    def release(self, principal: str, size: int) -> None:
        """Release a reservation."""
        ...
