"""Anthropic Messages API: tool declarations, calls and results."""

from collections.abc import Sequence
from functools import partial
from typing import Any, cast

from toolcrib.interfaces import Bounds, Loss, ProviderCall, ProviderResult
from toolcrib.model import JsonObject, Result, Tool
from toolcrib.payloads import (
    model_description,
    object_at,
    objects_at,
    parse_call,
    payload_json,
    result_payload,
)
from toolcrib.schemas.fitting.dialects import ANTHROPIC
from toolcrib.schemas.fitting.fit import SchemaCache, fit

_IMAGE_TYPES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
"""Image types that the model accepts."""


class Anthropic:
    """Tools go to `tools` of a request; calls and results are content blocks of messages."""

    name = "anthropic"
    bounds = Bounds(parameter=ANTHROPIC.parameter)

    def __init__(self) -> None:
        self._fitted = SchemaCache(partial(fit, dialect=ANTHROPIC))

    def tool(self, tool: Tool, name: str) -> JsonObject:
        """Declare one tool."""
        said = {
            "name": name,
            "description": model_description(tool),
            "input_schema": self._fitted.of(tool).schema,
        }
        return {key: value for key, value in said.items() if value}

    def tools(self, declared: Sequence[JsonObject]) -> list[JsonObject]:
        """Return the declarations as a list."""
        return list(declared)

    def losses(self, tool: Tool) -> tuple[Loss, ...]:
        """Return what the schema conversion dropped."""
        return self._fitted.of(tool).losses

    def calls(self, message: JsonObject | list[JsonObject]) -> tuple[ProviderCall, ...]:
        """Parse the `tool_use` blocks of a message, or of its content."""
        path = "message"
        blocks: Any = message
        if not isinstance(message, list):
            blocks, path = object_at(message, path).get("content"), "message.content"
        if isinstance(blocks, str):
            return ()
        found = objects_at(blocks, path)
        calls = [(where, block) for where, block in found if block.get("type") == "tool_use"]
        return tuple(parse_call(block, where, arguments="input") for where, block in calls)

    def cancelled(self, message: JsonObject) -> tuple[str, ...]:
        """Return nothing: the API has no cancellation."""
        return ()

    def results(self, answers: Sequence[ProviderResult]) -> list[JsonObject]:
        """Render all results as one user message, which must be the next one of the conversation."""
        if not answers:
            return []
        return [{"role": "user", "content": [_answer(each) for each in answers]}]


def _answer(answered: ProviderResult) -> JsonObject:
    result = answered.result
    return {
        "type": "tool_result",
        "tool_use_id": answered.call.id,
        "content": _content(result),
        "is_error": result.problem is not None,
    }


def _content(result: Result) -> str | list[JsonObject]:
    # The API accepts only text in a result with `is_error`.
    pictures = [] if result.problem is not None else [each for each in result.content if _is_image(each)]
    text = payload_json(result_payload(result))
    return [{"type": "text", "text": text}, *map(_image_block, pictures)] if pictures else text


def _is_image(block: JsonObject) -> bool:
    return block.get("type") == "image" and block.get("mimeType") in _IMAGE_TYPES and bool(block.get("data"))


def _image_block(block: JsonObject) -> JsonObject:
    source = {"type": "base64", "media_type": block["mimeType"], "data": cast("str", block["data"])}
    return {"type": "image", "source": source}
