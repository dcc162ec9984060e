"""LangChain: tool declarations, calls and results; LangChain converts them for the model in use."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from toolcrib.errors import Refused, problem
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
)
from toolcrib.schemas.fitting.dialects import OPENAI
from toolcrib.schemas.fitting.fit import FittedFormat, fit

_DIALECT = replace(OPENAI, references=False)
"""References are inlined, as LangChain does for its own tools."""
_MODEL_MESSAGES = ("ai", "AIMessageChunk")
_OTHER_MESSAGES = ("human", "system", "tool", "function", "chat", "remove")


class LangChain(FittedFormat):
    """Tools in the form of `bind_tools`, calls from an AIMessage, results as ToolMessages."""

    name = "langchain"
    bounds = Bounds()

    def __init__(self) -> None:
        super().__init__(partial(fit, dialect=_DIALECT))

    def tool(self, tool: Tool, name: str) -> JsonObject:
        """Declare one tool, in the form `convert_to_openai_tool` returns."""
        schema = self._fitted.of(tool).schema
        fields = {"name": name, "description": model_description(tool), "parameters": schema}
        return {"type": "function", "function": {key: value for key, value in fields.items() if value}}

    def calls(self, message: JsonObject) -> tuple[ProviderCall, ...]:
        """Parse the calls of a serialized AIMessage, including those LangChain failed to parse."""
        fields, path = _message_fields(object_at(message, "message"))
        calls = objects_at(fields.get("tool_calls") or [], f"{path}.tool_calls")
        invalid = objects_at(fields.get("invalid_tool_calls") or [], f"{path}.invalid_tool_calls")
        return (
            *(_parsed_call(each, call_path) for call_path, each in calls),
            *(_invalid_call(each, call_path) for call_path, each in invalid),
        )

    def results(self, answers: Sequence[ProviderResult]) -> list[JsonObject]:
        """Render each result as a serialized ToolMessage; its artifact is not sent to the model."""
        return [_tool_message(each) for each in answers]


def _message_fields(message: JsonObject) -> tuple[JsonObject, str]:
    """Return the fields of a message and their path; one serialization nests them under `data`."""
    kind = text_field(message, "type", "message")
    if kind in _OTHER_MESSAGES:
        return {}, "message"
    if kind not in _MODEL_MESSAGES:
        raise Refused("INVALID_REQUEST", "message.type must be ai", path="message.type")
    if "data" in message:
        return object_at(message["data"], "message.data"), "message.data"
    return message, "message"


def _parsed_call(call: JsonObject, path: str) -> ProviderCall:
    return parse_call(call, path, arguments="args", required=False)


def _invalid_call(call: JsonObject, path: str) -> ProviderCall:
    parsed = _parsed_call(call, path)
    if parsed.problem is not None:
        return parsed
    reason = call.get("error") or "LangChain could not read them"
    fault = problem("INVALID_ARGUMENTS", f"the arguments are of no use: {reason}", path="arguments")
    return ProviderCall(id=parsed.id, name=parsed.name, problem=fault)


def _tool_message(outcome: ProviderResult) -> JsonObject:
    call, result = outcome.call, outcome.result
    return {
        "type": "tool",
        "content": payload_json(result_payload(outcome)),
        "tool_call_id": call.id,
        "name": call.name,
        "status": "success" if result.problem is None else "error",
        "artifact": result.data if result.data is not None else list(result.content) or None,
    }
