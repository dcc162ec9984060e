"""Protocol of LLM providers: tool declarations, tool calls and tool results."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from toolcrib.interfaces.calls import Format
from toolcrib.model import JsonObject, Problem, Result, Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Limits of a provider; None means no known limit."""

    name: str = r"[a-zA-Z0-9_-]{1,64}"
    """Pattern that a tool's full name must match."""
    parameter: str | None = None
    """Pattern that parameter names must match."""
    description: int | None = None
    """Maximum length of a description, in characters."""
    tools: int | None = None
    """Maximum number of tools one request may declare."""
    result_bytes: int | None = None
    """Maximum size of a result, in bytes of UTF-8."""
    owns_audio: bool = False
    """Whether the provider generates the speech: the gateway then sends no sentence for slow calls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """A part of a schema that a provider's format cannot express."""

    path: str
    """JSON pointer of the place, such as `#/properties/when`."""
    keyword: str
    """Keyword of the original schema that is dropped or changed."""
    message: str
    """What was done instead, for the tool's author."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderCall:
    """One tool call requested by a model."""

    id: str
    """The provider's id of the call; empty for providers without ids."""
    name: str
    arguments: JsonObject = field(default_factory=dict[str, Any])
    problem: Problem | None = None
    """Fault of arguments that cannot be parsed: such a call gets an error result and is not executed."""
    more: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Further provider data that the result message needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderResult:
    """A provider's call and its result."""

    call: ProviderCall
    result: Result
    hints: str | JsonObject = ""
    """The hints that the model sees: a text or JSON; empty if there are none."""


@runtime_checkable
class Provider(Format, Protocol):
    """A format of a provider that also requests calls; pure, like every format."""

    @property
    def bounds(self) -> Bounds:
        """Limits of the provider."""
        ...

    def tools(self, declared: Sequence[JsonObject]) -> list[JsonObject]:
        """Assemble declarations into the provider's `tools` value; some providers wrap all in one object."""
        ...

    def losses(self, tool: Tool) -> tuple[Loss, ...]:
        """Return the parts of a tool's schema that its declaration cannot express."""
        ...

    def calls(self, message: JsonObject) -> tuple[ProviderCall, ...]:
        """Parse all calls in a message of the provider, in order.

        Raises `Refused` (INVALID_REQUEST, with the path) for a message of another format.
        """
        ...

    def cancelled(self, message: JsonObject) -> tuple[str, ...]:
        """Parse the ids of calls that the provider cancelled."""
        ...

    def results(self, answers: Sequence[ProviderResult]) -> list[JsonObject]:
        """Return the messages with the results, each call once, within the provider's limits."""
        ...
