"""The seams a call passes: steps, rules, formats, and whoever takes note."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from toolcrib.model import Call, Caller, JsonObject, Result, Tool

Outcome = Coroutine[Any, Any, Result]
"""A call under way."""

Handler = Callable[[Call], Outcome]
"""What a composed chain is, and what its end is."""


Followers = tuple[tuple[str, float], ...]
"""Names of tools that follow another, and how often they do, from 0 to 1; the most likely first."""


class Stage(Protocol):
    """A step fitted to one tool: act, `await proceed(call)` or not, act on what comes back.

    One that does nothing after `proceed` need not be async, and hands on what that returns: a call pays for
    every coroutine it passes.
    """

    def __call__(self, call: Call, proceed: Handler) -> Outcome: ...


class Step(Protocol):
    """What happens to a call between the door and its source."""

    def fit(self, tool: Tool) -> Stage | None:
        """Prepare for one tool, once per catalog version; None where there is nothing to do for it."""
        ...


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a caller may not use a tool. `hide`: as if it were not there; `deny`: says what is missing."""

    rule: str
    message: str
    """Goes on where the name of the tool ends: "needs a camera", "is hidden"."""
    effect: Literal["hide", "deny"] = "hide"
    code: str = "PERMISSION_DENIED"
    """What a call that is denied answers."""


class Rule(Protocol):
    """Who may see and use what. Pure: no I/O."""

    @property
    def name(self) -> str:
        """What `explain` calls it."""
        ...

    def why_not(self, tool: Tool, caller: Caller) -> Reason | None:
        """Return the reason against this tool for this caller, or None."""
        ...

    def audience(self, caller: Caller) -> object:
        """Return all this rule looks at in a caller, hashable: equal audiences see equal lists."""
        ...


class Format(Protocol):
    """How one LLM provider or face spells tools. Pure: no I/O."""

    @property
    def name(self) -> str:
        """What `?format=` calls it."""
        ...

    def tool(self, tool: Tool, name: str) -> JsonObject:
        """Declare one tool under the name the caller's style gives it."""
        ...


class Recorder(Protocol):
    """Hears of every call exactly once. Must not wait for anything."""

    def record(self, call: Call, result: Result, seconds: float, waited: float = 0.0) -> None:
        """Take note and return at once; `waited` is how long the caller was asked, no part of `seconds`."""
        ...

    def refused(self, code: str) -> None:
        """Take note of a request that was refused before it had a tool."""
        ...


class ResultMemory(Protocol):
    """The memory that large results share."""

    def reserve(self, principal: str, size: int) -> bool:
        """Reserve memory for a result of this size; False where there is not enough."""
        ...

    def release(self, principal: str, size: int) -> None:
        """Release a reservation."""
        ...
