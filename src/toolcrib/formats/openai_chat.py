"""OpenAI Chat Completions and compatible APIs: tool declarations, calls and results."""

from collections.abc import Sequence
from typing import Any

from toolcrib.interfaces import Bounds, ProviderCall, ProviderResult
from toolcrib.model import JsonObject, Tool
from toolcrib.payloads import (
    model_description,
    object_at,
    objects_at,
    parse_arguments,
    payload_json,
    result_payload,
    text_field,
    truncate_payload,
)
from toolcrib.schemas.fitting.fit import FittedFormat, fit_openai


class OpenAIChat(FittedFormat):
    """Parses `tool_calls` of an assistant message; renders one `tool` message for each result."""

    name = "openai_chat"
    bounds = Bounds(description=1_024, tools=128, result_bytes=12_000)

    def __init__(self) -> None:
        super().__init__(fit_openai)

    def tool(self, tool: Tool, name: str) -> JsonObject:
        """Declare one tool; `strict` is set where it does not restrict what the tool accepts."""
        fitted = self._fitted.of(tool)
        function: dict[str, Any] = {"name": name}
        description = model_description(tool, self.bounds.description)
        if description:
            function["description"] = description
        function["parameters"] = fitted.schema
        if fitted.strict:
            function["strict"] = True
        return {"type": "function", "function": function}

    def calls(self, message: JsonObject) -> tuple[ProviderCall, ...]:
        """Parse an assistant message, the choice around it, or the whole completion."""
        path, assistant = _assistant_message(object_at(message, "message"))
        calls = assistant.get("tool_calls")
        if calls is None and assistant.get("role") == "assistant":
            return ()
        parsed = (_parsed_call(each, path) for path, each in objects_at(calls, f"{path}.tool_calls"))
        return tuple(each for each in parsed if each is not None)

    def results(self, answers: Sequence[ProviderResult]) -> list[JsonObject]:
        """Render one message for each result; the next turn requires all of them."""
        limit = self.bounds.result_bytes
        return [
            {
                "role": "tool",
                "tool_call_id": each.call.id,
                "content": payload_json(truncate_payload(result_payload(each), limit)),
            }
            for each in answers
        ]


def _assistant_message(message: JsonObject) -> tuple[str, JsonObject]:
    """Return the path and the message; of several choices the first is used."""
    path = "message"
    if "choices" in message:
        choices = objects_at(message["choices"], f"{path}.choices")
        if not choices:
            return path, {"role": "assistant"}
        path, message = choices[0]
    if "message" in message:
        path = f"{path}.message"
        return path, object_at(message["message"], path)
    return path, message


def _parsed_call(call: JsonObject, path: str) -> ProviderCall | None:
    """Parse one call; tools of a type other than `function` were declared elsewhere."""
    if call.get("type", "function") != "function":
        return None
    function = object_at(call.get("function"), f"{path}.function")
    arguments, problem = parse_arguments(function.get("arguments"))
    name = text_field(function, "name", f"{path}.function")
    return ProviderCall(id=text_field(call, "id", path), name=name, arguments=arguments, problem=problem)
