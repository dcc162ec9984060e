"""OpenAI Realtime: tool declarations, calls, cancellations and results.

A call is reported by three events in sequence: its arguments, its item and its response are done. Each of
them is parsed, so that a caller can act on any one; a caller that passes all of them must deduplicate by call
id. Only the last one reveals whether the user interrupted.
"""

from collections.abc import Sequence
from functools import partial
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
from toolcrib.schemas.fitting.dialects import OPENAI
from toolcrib.schemas.fitting.fit import FittedFormat, fit

_ARGUMENTS_DONE = "response.function_call_arguments.done"
_ITEM_DONE = "response.output_item.done"
_RESPONSE_DONE = "response.done"


class OpenAIRealtime(FittedFormat):
    """Parses events; renders one `conversation.item.create` for each result, then a `response.create`."""

    name = "openai_realtime"
    bounds = Bounds(description=1_024, tools=128, result_bytes=12_000, owns_audio=True)

    def __init__(self) -> None:
        super().__init__(partial(fit, dialect=OPENAI))

    def tool(self, tool: Tool, name: str) -> JsonObject:
        """Declare one tool in the form of `session.tools`, which has no strict mode."""
        declared: dict[str, Any] = {"type": "function", "name": name}
        description = model_description(tool, self.bounds.description)
        if description:
            declared["description"] = description
        return {**declared, "parameters": self._fitted.of(tool).schema}

    def calls(self, message: JsonObject) -> tuple[ProviderCall, ...]:
        """Parse the calls of any event; an incomplete response has none."""
        kind = text_field(object_at(message, "message"), "type", "message")
        if kind == _ARGUMENTS_DONE:
            # Older sessions omit the name here; the item event that follows has it.
            return (_parsed_call("message", message),) if "name" in message else ()
        if kind == _ITEM_DONE:
            path = "message.item"
            item = object_at(message.get("item"), path)
            return (_parsed_call(path, item),) if _is_call(item) and _is_complete(item) else ()
        if kind == _RESPONSE_DONE and _status(message) == "completed":
            return tuple(_parsed_call(path, item) for path, item in _items(message) if _is_complete(item))
        return ()

    def cancelled(self, message: JsonObject) -> tuple[str, ...]:
        """Parse the ids of calls in an incomplete response: the user interrupted, or it was cut off."""
        if object_at(message, "message").get("type") != _RESPONSE_DONE or _status(message) == "completed":
            return ()
        return tuple(text_field(item, "call_id", path) for path, item in _items(message))

    def results(self, answers: Sequence[ProviderResult]) -> list[JsonObject]:
        """Render all results, then request a response, unless a tool suppresses speech."""
        events: list[JsonObject] = [_item_event(each, self.bounds) for each in answers]
        if answers and not any(each.result.voice.suppress for each in answers):
            events.append({"type": "response.create"})
        return events


def _status(event: JsonObject) -> object:
    return object_at(event.get("response"), "message.response").get("status")


def _items(event: JsonObject) -> list[tuple[str, JsonObject]]:
    """Return the calls of a response, with their paths."""
    response = object_at(event.get("response"), "message.response")
    output = objects_at(response.get("output", []), "message.response.output")
    return [(path, item) for path, item in output if _is_call(item)]


def _is_call(item: JsonObject) -> bool:
    return item.get("type") == "function_call"


def _is_complete(item: JsonObject) -> bool:
    return item.get("status") != "incomplete"


def _parsed_call(path: str, call: JsonObject) -> ProviderCall:
    return parse_call(call, path, id="call_id", arguments="arguments")


def _item_event(outcome: ProviderResult, bounds: Bounds) -> JsonObject:
    output = payload_json(truncate_payload(result_payload(outcome), bounds.result_bytes))
    item = {"type": "function_call_output", "call_id": outcome.call.id, "output": output}
    return {"type": "conversation.item.create", "item": item}
