"""How OpenAI's Responses spell tools, calls and results."""

from collections.abc import Sequence
from typing import Any

from toolcrib.interfaces import Bounds, Loss, ProviderCall, ProviderResult
from toolcrib.model import JsonObject, Tool
from toolcrib.payloads import a_text, an_object, as_text, capped, described, objects, read_call, told
from toolcrib.schemas.fitting.schema_cache import SchemaCache
from toolcrib.schemas.fitting.strict import strictest

_GIVEN_UP = ("cancelled", "failed")
"""Responses nobody goes on with."""


class OpenAIResponses:
    """A response with items of the type `function_call` in, one item `function_call_output` per call out."""

    name = "openai_responses"
    bounds = Bounds(description=1_024, tools=128, result_bytes=12_000)

    def __init__(self) -> None:
        self._spelled = SchemaCache(strictest)

    def tool(self, tool: Tool, name: str) -> JsonObject:
        """Declare one tool; whether it is strict must be said either way."""
        fitted, strict = self._spelled.of(tool)
        spelled: dict[str, Any] = {"type": "function", "name": name}
        description = described(tool, self.bounds.description)
        if description:
            spelled["description"] = description
        return {**spelled, "parameters": fitted.schema, "strict": strict}

    def tools(self, declared: Sequence[JsonObject]) -> list[JsonObject]:
        """Leave them as they are."""
        return list(declared)

    def losses(self, tool: Tool) -> tuple[Loss, ...]:
        """Say what a declaration leaves out."""
        return self._spelled.of(tool)[0].losses

    def calls(self, message: JsonObject) -> tuple[ProviderCall, ...]:
        """Read a whole response, or one item of its output."""
        an_object(message, "message")
        if "output" not in message:
            a_text(message, "type", "message")
            return _asked("message", message)
        if message.get("status") in _GIVEN_UP:
            return ()
        items = objects(message["output"], "message.output")
        return tuple(asked for path, item in items for asked in _asked(path, item))

    def cancelled(self, message: JsonObject) -> tuple[str, ...]:
        """Nothing is taken back: a response that is given up has no calls."""
        return ()

    def results(self, answers: Sequence[ProviderResult]) -> list[JsonObject]:
        """Answer every call with an item for the next input."""
        return [
            {
                "type": "function_call_output",
                "call_id": each.asked.id,
                "output": as_text(capped(told(each.result), self.bounds.result_bytes)),
            }
            for each in answers
        ]


def _asked(path: str, item: JsonObject) -> tuple[ProviderCall, ...]:
    """Read an item: most are no calls, and one that was cut off in the middle is none yet."""
    if item.get("type") != "function_call" or item.get("status") == "incomplete":
        return ()
    return (read_call(item, path, id="call_id", arguments="arguments"),)
