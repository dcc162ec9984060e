"""The seam to LLM providers: how each declares tools, asks for them, and wants to be answered."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from toolcrib.interfaces.calls import Format
from toolcrib.model import JsonObject, Problem, Result, Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What a provider takes; None where nobody knows of a limit."""

    name: str = r"[a-zA-Z0-9_-]{1,64}"
    """The whole of a tool's name must match this."""
    parameter: str | None = None
    """So must the names of its parameters."""
    description: int | None = None
    """The most characters a description may have."""
    tools: int | None = None
    """The most tools one request may declare."""
    result_bytes: int | None = None
    """The most bytes of UTF-8 a result may have."""
    owns_audio: bool = False
    """Whether the provider speaks by itself: nobody else says that a call takes a while."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """Something of a schema that a provider cannot be told."""

    path: str
    """Where, as a JSON pointer such as `#/properties/when`."""
    keyword: str
    """Which keyword of the original is not said any more, or not as it was."""
    message: str
    """What was done instead, in words for the tool's author."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderCall:
    """One call that a model wants made."""

    id: str
    """What the provider calls it; empty where it has no ids."""
    name: str
    arguments: JsonObject = field(default_factory=dict[str, Any])
    problem: Problem | None = None
    """What is wrong with its arguments, where they cannot be read: such a call is answered, not made."""
    more: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What else the answer needs to know of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderResult:
    """A call and what came of it."""

    asked: ProviderCall
    result: Result


@runtime_checkable
class Provider(Format, Protocol):
    """A format whose reader also calls: pure, like every format."""

    @property
    def bounds(self) -> Bounds:
        """What it takes."""
        ...

    def tools(self, declared: Sequence[JsonObject]) -> list[JsonObject]:
        """Put declarations together as the provider's `tools` wants them; some wrap all of them in one."""
        ...

    def losses(self, tool: Tool) -> tuple[Loss, ...]:
        """Say what of a tool's schema its declaration does not say."""
        ...

    def calls(self, message: JsonObject) -> tuple[ProviderCall, ...]:
        """Read the calls in a message of the provider's, all of them, in order; none where there are none.

        A message that is none of this provider's is refused with INVALID_REQUEST and its path.
        """
        ...

    def cancelled(self, message: JsonObject) -> tuple[str, ...]:
        """Read the ids of calls that nobody wants answered any more."""
        ...

    def results(self, answers: Sequence[ProviderResult]) -> list[JsonObject]:
        """Spell the messages that answer calls, every call once, within the provider's bounds."""
        ...
