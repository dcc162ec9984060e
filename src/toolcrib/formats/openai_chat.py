"""OpenAI Chat Completions and compatible APIs: tool declarations, calls and results."""

from collections.abc import Sequence
from typing import Any

from toolcrib.interfaces import Bounds, Loss, ProviderCall, ProviderResult
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
from toolcrib.schemas.fitting.fit import SchemaCache, fit_openai


class OpenAIChat:
    """Parses `tool_calls` of an assistant message; renders one `tool` message for each result."""

    name = "openai_chat"
    bounds = Bounds(description=1_024, tools=128, result_bytes=12_000)

    def __init__(self) -> None:
        self._spelled = SchemaCache(fit_openai)

    def tool(self, tool: Tool, name: str) -> JsonObject:
        """Declare one tool; `strict` is set where it does not restrict what the tool accepts."""
        fitted, strict = self._spelled.of(tool)
        function: dict[str, Any] = {"name": name}
        description = model_description(tool, self.bounds.description)
        if description:
            function["description"] = description
        function["parameters"] = fitted.schema
        if strict:
            function["strict"] = True
        return {"type": "function", "function": function}

    def tools(self, declared: Sequence[JsonObject]) -> list[JsonObject]:
        """Return the declarations as a list."""
        return list(declared)

    def losses(self, tool: Tool) -> tuple[Loss, ...]:
        """Return what the schema conversion dropped."""
        return self._spelled.of(tool)[0].losses

    def calls(self, message: JsonObject) -> tuple[ProviderCall, ...]:
        """Parse an assistant message, the choice around it, or the whole completion."""
        path, said = _message(object_at(message, "message"))
        given = said.get("tool_calls")
        if given is None and said.get("role") == "assistant":
            return ()
        found = (_parsed_call(each, path) for path, each in objects_at(given, f"{path}.tool_calls"))
        return tuple(each for each in found if each is not None)

    def cancelled(self, message: JsonObject) -> tuple[str, ...]:
        """Return nothing: the API has no cancellation."""
        return ()

    def results(self, answers: Sequence[ProviderResult]) -> list[JsonObject]:
        """Render one message for each result; the next turn requires all of them."""
        return [
            {
                "role": "tool",
                "tool_call_id": each.call.id,
                "content": payload_json(
                    truncate_payload(result_payload(each.result), self.bounds.result_bytes)
                ),
            }
            for each in answers
        ]


def _message(given: JsonObject) -> tuple[str, JsonObject]:
    """Return the path and the message; of several choices the first is used."""
    path = "message"
    if "choices" in given:
        choices = objects_at(given["choices"], f"{path}.choices")
        if not choices:
            return path, {"role": "assistant"}
        path, given = choices[0]
    if "message" in given:
        path = f"{path}.message"
        return path, object_at(given["message"], path)
    return path, given


def _parsed_call(call: JsonObject, path: str) -> ProviderCall | None:
    """Parse one call; tools of a type other than `function` were declared elsewhere."""
    if call.get("type", "function") != "function":
        return None
    function = object_at(call.get("function"), f"{path}.function")
    arguments, problem = parse_arguments(function.get("arguments"))
    return ProviderCall(
        id=text_field(call, "id", path),
        name=text_field(function, "name", f"{path}.function"),
        arguments=arguments,
        problem=problem,
    )
