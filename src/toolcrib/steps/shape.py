"""A result gets a sentence that can be spoken, and one that is too large is refused."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from toolcrib.errors import Broken
from toolcrib.interfaces import Handler, Stage
from toolcrib.model import Call, Json, JsonObject, Result, Tool

FALLBACK = "I've fetched the result."
_LONGEST = 800
_FIELD = re.compile(r"\{([^{}]+)\}")


@dataclass(frozen=True)
class Shape:
    """Outside the cache, so that what is kept stays whole."""

    result_bytes: int = 8 * 1024 * 1024

    def fit(self, tool: Tool) -> Stage:
        """Every result is spoken of and bounded."""
        speak = _speaker(tool)

        async def shape(call: Call, proceed: Handler) -> Result:
            result = await proceed(call)
            size = len(result.encoded)
            if result.content or result.meta or result.ask is not None:
                size += _rest(result)
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
