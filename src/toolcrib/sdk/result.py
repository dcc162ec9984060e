"""What a handler may return beside plain data: the data, and how it is to be said."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from toolcrib.model import Hints, JsonObject

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult(Generic[T]):
    """Data with a sentence to speak, hints for the agent, or a wish to keep silent."""

    data: T
    message: str = ""
    """A sentence that can be spoken; the gateway finds one where it is empty."""
    hints: Hints | JsonObject | None = None
    """What the agent may do next: built with `toolcrib.hints`, or spelled as the JSON agents read."""
    suppress_voice: bool = False
    """Keep a voice assistant from speaking: the tool has shown or said it already."""
    follow_ups: tuple[str, ...] = ()
    """What the user may want to ask next."""
