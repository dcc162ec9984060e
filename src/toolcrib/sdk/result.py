"""ToolResult: data with a message to speak, hints and follow-ups, as an alternative to plain data."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from toolcrib.model import Hints, JsonObject

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult(Generic[T]):
    """Data with a message to speak, hints for the agent, follow-ups, or a request for silence."""

    data: T
    message: str = ""
    """A sentence to speak; if empty, the gateway derives one."""
    hints: Hints | JsonObject | None = None
    """Hints for the agent's next step: built with `toolcrib.hints`, or a mapping in their JSON form."""
    suppress_voice: bool = False
    """Suppress speech of a voice assistant: the tool has shown or spoken the result already."""
    follow_ups: tuple[str, ...] = ()
    """Suggested next questions of the user."""
