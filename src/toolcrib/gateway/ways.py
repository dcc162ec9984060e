"""How a request comes to the door: what it carries beside what it asks for, and who may not come in."""

from collections.abc import Awaitable, Callable
from typing import TypedDict

from toolcrib.errors import Refused
from toolcrib.model import Channel, JsonObject, Origin, Report, Result, Tool


class Way(TypedDict, total=False):
    """What every request may carry; each field is one of `Call`."""

    origin: Origin
    deadline: float | None
    answers: JsonObject
    state: str
    report: Report | None
    channel: Channel | None
    meta: JsonObject


Run = Callable[[Way], Awaitable[Result]]
"""One try of a request; it is tried again where the answer to a question must be brought along."""


class Denied(Refused):
    """A tool was found, and this caller may not use it."""

    def __init__(self, code: str, message: str, tool: Tool) -> None:
        super().__init__(code, message)
        self.tool = tool
