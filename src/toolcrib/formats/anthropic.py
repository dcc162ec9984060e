"""Anthropic Messages API: tool declarations, calls and results."""

from collections.abc import Sequence
from functools import partial
from typing import Any, cast

from toolcrib.interfaces import Bounds, ProviderCall, ProviderResult
from toolcrib.model import JsonObject, Tool
from toolcrib.payloads import (
    model_description,
    object_at,
    objects_at,
    parse_call,
    payload_json,
    result_payload,
)
from toolcrib.schemas.fitting.dialects import ANTHROPIC
from toolcrib.schemas.fitting.fit import FittedFormat, fit

_IMAGE_TYPES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
"""Image types that the model accepts."""


class Anthropic(FittedFormat):
    """Tools go to `tools` of a request; calls and results are content blocks of messages."""

    name = "anthropic"
    bounds = Bounds(parameter=ANTHROPIC.parameter)

    def __init__(self) -> None:
        super().__init__(partial(fit, dialect=ANTHROPIC))

    def tool(self, tool: Tool, name: str) -> JsonObject:
        """Declare one tool."""
        schema = self._fitted.of(tool).schema
        fields = {"name": name, "description": model_description(tool), "input_schema": schema}
        return {key: value for key, value in fields.items() if value}

    def calls(self, message: JsonObject | list[JsonObject]) -> tuple[ProviderCall, ...]:
        """Parse the `tool_use` blocks of a message, or of its content."""
        path = "message"
        blocks: Any = message
        if not isinstance(message, list):
            blocks, path = object_at(message, path).get("content"), "message.content"
        if isinstance(blocks, str):
            return ()
        return tuple(
            parse_call(block, block_path, arguments="input")
            for block_path, block in objects_at(blocks, path)
            if block.get("type") == "tool_use"
        )

    def results(self, answers: Sequence[ProviderResult]) -> list[JsonObject]:
        """Render all results as one user message, which must be the next one of the conversation."""
        return [{"role": "user", "content": [_tool_result(each) for each in answers]}] if answers else []


def _tool_result(outcome: ProviderResult) -> JsonObject:
    return {
        "type": "tool_result",
        "tool_use_id": outcome.call.id,
        "content": _content(outcome),
        "is_error": outcome.result.problem is not None,
    }


def _content(outcome: ProviderResult) -> str | list[JsonObject]:
    result = outcome.result
    # The API accepts only text in a result with `is_error`.
    images = [] if result.problem is not None else [each for each in result.content if _is_image(each)]
    text = payload_json(result_payload(outcome))
    return [{"type": "text", "text": text}, *map(_image_block, images)] if images else text


def _is_image(block: JsonObject) -> bool:
    return block.get("type") == "image" and block.get("mimeType") in _IMAGE_TYPES and bool(block.get("data"))


def _image_block(block: JsonObject) -> JsonObject:
    source = {"type": "base64", "media_type": block["mimeType"], "data": cast("str", block["data"])}
    return {"type": "image", "source": source}
