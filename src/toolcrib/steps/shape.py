"""A result gets a sentence that can be spoken, and one that is too large is refused."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from toolcrib.errors import Broken, Refused, ToolcribError
from toolcrib.interfaces import Handler, ResultMemory, Stage
from toolcrib.model import Call, Json, JsonObject, Result, Tool

FALLBACK = "I've fetched the result."
LARGE_BYTES = 1 << 20
"""Larger results are compared with the memory that is left."""
_RETRY_SECONDS = 2.0
_LONGEST = 800
_FIELD = re.compile(r"\{([^{}]+)\}")


@dataclass(frozen=True)
class Shape:
    """Outside the cache, so that what is kept stays whole."""

    result_bytes: int = 8 * 1024 * 1024
    memory: ResultMemory | None = None
    """Refuses large results that memory has no room for."""

    def fit(self, tool: Tool) -> Stage:
        """Every result is spoken of and bounded."""
        speak, large = _speaker(tool), _Reservations(tool, self.memory)

        async def shape(call: Call, proceed: Handler) -> Result:
            expected = large.expected
            result = await (large.reserving(call, proceed, expected) if expected else proceed(call))
            size = len(result.encoded)
            if result.content or result.meta or result.ask is not None:
                size += _rest(result)
            if expected or size > LARGE_BYTES:
                result = large.admit(call, result, size, reserved=expected)
            if result.problem is not None:
                # What failed has failed, however much the tool says about it.
                return result if size <= self.result_bytes else result.replace(content=(), meta={})
            if size > self.result_bytes:
                cap = f"the answer has {size} bytes, the cap is {self.result_bytes}; ask for less"
                raise Broken("RESULT_TOO_LARGE", f"{tool.name}: {cap}")
            return (
                result if result.message or result.ask is not None else result.replace(message=speak(result))
            )

        return shape


class _Reservations:
    """Reserves memory for the results of one tool, once one of them was large.

    The first ones are measured when they are there: nothing says before how large a result will be.
    """

    __slots__ = ("_memory", "_tool", "expected")

    def __init__(self, tool: Tool, memory: ResultMemory | None) -> None:
        self._tool, self._memory = tool, memory
        self.expected = 0
        """The size to reserve before the next call; 0 where results are small."""

    async def reserving(self, call: Call, proceed: Handler, size: int) -> Result:
        """Run a call with memory reserved for its result; refuse it where there is none."""
        memory, principal = self._memory, call.caller.principal
        if memory is None:
            return await proceed(call)
        if not memory.reserve(principal, size):
            short = f"memory is short for a result of about {size} bytes; nothing was done, try again later"
            raise Refused("OVERLOADED", f"{self._tool.name}: {short}", retry_after=_RETRY_SECONDS)
        try:
            return await proceed(call)
        finally:
            memory.release(principal, size)

    def admit(self, call: Call, result: Result, size: int, *, reserved: int) -> Result:
        """Return a result that memory has room for; of a failed call at least the problem."""
        # Halved, so that one large result among small ones is not reserved for ever.
        self.expected = size if size > LARGE_BYTES else _large(self.expected // 2)
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
        name, what = self._tool.name, f"memory is short for its result of {size} bytes, which was dropped"
        if self._tool.read_only:
            message = f"{name}: {what}; it changes nothing, so try again later"
            return Refused("OVERLOADED", message, retry_after=_RETRY_SECONDS)
        return Broken("ANSWER_NOT_KEPT", f"{name}: the call was carried out; {what}")


def _large(size: int) -> int:
    return size if size > LARGE_BYTES else 0


def _rest(result: Result) -> int:
    """What an answer holds beside its data."""
    size = sum(map(_weight, result.content)) + _weight(result.meta)
    if result.ask is not None:
        size += len(result.ask.state) + sum(map(_weight, result.ask.questions.values()))
    return size


def _weight(value: Json) -> int:
    """The text in a block, wherever in it that is: a resource has it one level down."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        return sum(map(_weight, cast("JsonObject", value).values()))
    return sum(map(_weight, cast("list[Json]", value))) if isinstance(value, list) else 0


def _speaker(tool: Tool) -> Callable[[Result], str]:
    template, path = tool.speech.template, tool.speech.field

    def speak(result: Result) -> str:
        said = _fill(template, result.data) if template else None
        if not said and path:
            said = _say(_dig(result.data, path))
        return (said or _text(result) or FALLBACK)[:_LONGEST]

    return speak


def _fill(template: str, data: Json) -> str:
    return _FIELD.sub(lambda found: _say(_dig(data, found[1])) or "", template).strip()


def _dig(data: Json, path: str) -> Json:
    """Follow a dotted path through objects and lists; None where it leads nowhere."""
    for part in path.split("."):
        try:
            data = data[int(part) if type(data) is list else part]
        except (KeyError, IndexError, TypeError, ValueError):
            return None
    return data


def _say(value: Json) -> str | None:
    return None if value is None or isinstance(value, dict | list) else str(value)


def _text(result: Result) -> str | None:
    if isinstance(result.data, str):
        return result.data
    return " ".join(block["text"] for block in result.content if block.get("type") == "text") or None
