"""Adds a spoken sentence to each result, and refuses results that are too large."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from toolcrib.errors import Broken, Refused, ToolcribError
from toolcrib.interfaces import Handler, ResultMemory, Stage
from toolcrib.model import Call, Json, JsonObject, Result, Tool

FALLBACK = "I've fetched the result."
LARGE_BYTES = 1 << 20
"""Results above this size in bytes need a reservation of memory."""
_MEMORY_RETRY_SECONDS = 2.0
_MAX_SPOKEN_CHARACTERS = 800
_FIELD = re.compile(r"\{([^{}]+)\}")


@dataclass(frozen=True)
class Shape:
    """Runs outside the cache, so that cached results stay complete."""

    result_bytes: int = 8 * 1024 * 1024
    memory: ResultMemory | None = None
    """Memory budget for large results; None means unlimited."""

    def fit(self, tool: Tool) -> Stage:
        """Return the stage; every tool's results are bounded and get a message."""
        message_of, reservations = _message_function(tool), _Reservations(tool, self.memory)

        async def shape(call: Call, proceed: Handler) -> Result:
            expected = reservations.expected
            result = await (reservations.reserving(call, proceed, expected) if expected else proceed(call))
            size = len(result.encoded)
            if result.content or result.meta or result.ask is not None:
                size += _size_besides_data(result)
            if expected or size > LARGE_BYTES:
                result = reservations.admit(call, result, size, reserved=expected)
            if result.problem is not None:
                # A failed call stays a failure: of an oversized error only the content is dropped.
                return result if size <= self.result_bytes else result.replace(content=(), meta={})
            if size > self.result_bytes:
                excess = f"the result has {size} bytes, over the limit of {self.result_bytes}; request less"
                raise Broken("RESULT_TOO_LARGE", f"{tool.name}: {excess}")
            complete = bool(result.message) or result.ask is not None
            return result if complete else result.replace(message=message_of(result))

        return shape


class _Reservations:
    """Reserves memory for the results of one tool after one of them was large.

    First results are checked when they have arrived, as their size is unknown before.
    """

    __slots__ = ("_memory", "_tool", "expected")

    def __init__(self, tool: Tool, memory: ResultMemory | None) -> None:
        self._tool, self._memory = tool, memory
        self.expected = 0
        """Bytes to reserve before the next call; 0 while results are small."""

    async def reserving(self, call: Call, proceed: Handler, size: int) -> Result:
        """Run a call with memory reserved for its result; OVERLOADED if there is not enough."""
        memory, principal = self._memory, call.caller.principal
        if memory is None:
            return await proceed(call)
        if not memory.reserve(principal, size):
            short = f"not enough memory for a result of about {size} bytes; nothing was done, try again later"
            raise Refused("OVERLOADED", f"{self._tool.name}: {short}", retry_after=_MEMORY_RETRY_SECONDS)
        try:
            return await proceed(call)
        finally:
            memory.release(principal, size)

    def admit(self, call: Call, result: Result, size: int, *, reserved: int) -> Result:
        """Return the result if memory suffices, else raise; of a failed call return at least the problem."""
        # Halved after each small result, so that one large result does not cause reservations for ever.
        expected = size if size > LARGE_BYTES else self.expected // 2
        self.expected = expected if expected > LARGE_BYTES else 0
        memory, principal = self._memory, call.caller.principal
        if memory is None or size <= max(reserved, LARGE_BYTES):
            return result
        if memory.reserve(principal, size):
            memory.release(principal, size)
            return result
        if result.problem is not None:
            return result.replace(content=(), meta={})
        raise self._dropped(size)

    def _dropped(self, size: int) -> ToolcribError:
        name = self._tool.name
        reason = f"there was not enough memory for its result of {size} bytes, which was dropped"
        if self._tool.read_only:
            message = f"{name}: {reason}; the tool is read-only, so try again later"
            return Refused("OVERLOADED", message, retry_after=_MEMORY_RETRY_SECONDS)
        return Broken("ANSWER_NOT_KEPT", f"{name}: the call was executed; {reason}")


def _size_besides_data(result: Result) -> int:
    """Return the size of a result without its data: content, meta and questions."""
    size = sum(map(_text_length, result.content)) + _text_length(result.meta)
    if result.ask is not None:
        size += len(result.ask.state) + sum(map(_text_length, result.ask.questions.values()))
    return size


def _text_length(value: Json) -> int:
    """Return the length of all text in a content block, recursively: a resource nests its text."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        return sum(map(_text_length, cast("JsonObject", value).values()))
    return sum(map(_text_length, cast("list[Json]", value))) if isinstance(value, list) else 0


def _message_function(tool: Tool) -> Callable[[Result], str]:
    template, path = tool.speech.template, tool.speech.field

    def message_of(result: Result) -> str:
        data, message = result.data, None
        if template:
            message = _FIELD.sub(lambda name: _scalar_text(_value_at(data, name[1])) or "", template).strip()
        if not message and path:
            message = _scalar_text(_value_at(data, path))
        return (message or _text_of(result) or FALLBACK)[:_MAX_SPOKEN_CHARACTERS]

    return message_of


def _value_at(data: Json, path: str) -> Json:
    """Resolve a dotted path through objects and lists; None if it does not exist."""
    for part in path.split("."):
        try:
            data = data[int(part) if type(data) is list else part]
        except (KeyError, IndexError, TypeError, ValueError):
            return None
    return data


def _scalar_text(value: Json) -> str | None:
    return None if value is None or isinstance(value, dict | list) else str(value)


def _text_of(result: Result) -> str | None:
    if isinstance(result.data, str):
        return result.data
    return " ".join(block["text"] for block in result.content if block.get("type") == "text") or None
