"""OpenAI Responses: tool declarations, calls and results."""

from collections.abc import Sequence
from typing import Any

from toolcrib.interfaces import Bounds, ProviderCall, ProviderResult
from toolcrib.model import JsonObject, Tool
from toolcrib.payloads import (
    model_description,
    object_at,
    objects_at,
    parse_call,
    payload_json,
    result_payload,
    text_field,
    truncate_payload,
)
from toolcrib.schemas.fitting.fit import FittedFormat, fit_openai

_ABANDONED_STATUSES = ("cancelled", "failed")
"""Status values of responses that are abandoned."""


class OpenAIResponses(FittedFormat):
    """Parses `function_call` items; renders one `function_call_output` item for each result."""

    name = "openai_responses"
    bounds = Bounds(description=1_024, tools=128, result_bytes=12_000)

    def __init__(self) -> None:
        super().__init__(fit_openai)

    def tool(self, tool: Tool, name: str) -> JsonObject:
        """Declare one tool; the API requires `strict` to be explicit."""
        fitted = self._fitted.of(tool)
        declared: dict[str, Any] = {"type": "function", "name": name}
        description = model_description(tool, self.bounds.description)
        if description:
            declared["description"] = description
        return {**declared, "parameters": fitted.schema, "strict": fitted.strict}

    def calls(self, message: JsonObject) -> tuple[ProviderCall, ...]:
        """Parse a whole response, or one item of its output."""
        object_at(message, "message")
        if "output" not in message:
            text_field(message, "type", "message")
            return _parsed_calls("message", message)
        if message.get("status") in _ABANDONED_STATUSES:
            return ()
        items = objects_at(message["output"], "message.output")
        return tuple(call for path, item in items for call in _parsed_calls(path, item))

    def results(self, answers: Sequence[ProviderResult]) -> list[JsonObject]:
        """Render each result as an item of the next input."""
        limit = self.bounds.result_bytes
        return [
            {
                "type": "function_call_output",
                "call_id": each.call.id,
                "output": payload_json(truncate_payload(result_payload(each), limit)),
            }
            for each in answers
        ]


def _parsed_calls(path: str, item: JsonObject) -> tuple[ProviderCall, ...]:
    """Parse an item; other types and incomplete calls are skipped."""
    if item.get("type") != "function_call" or item.get("status") == "incomplete":
        return ()
    return (parse_call(item, path, id="call_id", arguments="arguments"),)
