"""LangChain: tool declarations, calls and results; LangChain converts them for the model in use."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from toolcrib.errors import Refused, problem
from toolcrib.interfaces import Bounds, Loss, ProviderCall, ProviderResult
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
from toolcrib.schemas.fitting.fit import SchemaCache, fit

_DIALECT = replace(OPENAI, references=False)
"""References are inlined, as LangChain does for its own tools."""
_MODEL_MESSAGES = ("ai", "AIMessageChunk")
_OTHER_MESSAGES = ("human", "system", "tool", "function", "chat", "remove")


class LangChain:
    """Tools in the form of `bind_tools`, calls from an AIMessage, results as ToolMessages."""

    name = "langchain"
    bounds = Bounds()

    def __init__(self) -> None:
        self._fitted = SchemaCache(partial(fit, dialect=_DIALECT))

    def tool(self, tool: Tool, name: str) -> JsonObject:
        """Declare one tool, in the form `convert_to_openai_tool` returns."""
        said = {
            "name": name,
            "description": model_description(tool),
            "parameters": self._fitted.of(tool).schema,
        }
        return {"type": "function", "function": {key: value for key, value in said.items() if value}}

    def tools(self, declared: Sequence[JsonObject]) -> list[JsonObject]:
        """Return the declarations as a list."""
        return list(declared)

    def losses(self, tool: Tool) -> tuple[Loss, ...]:
        """Return what the schema conversion dropped."""
        return self._fitted.of(tool).losses

    def calls(self, message: JsonObject) -> tuple[ProviderCall, ...]:
        """Parse the calls of a serialized AIMessage, including those LangChain failed to parse."""
        given, path = _message(object_at(message, "message"))
        read = objects_at(given.get("tool_calls") or [], f"{path}.tool_calls")
        unread = objects_at(given.get("invalid_tool_calls") or [], f"{path}.invalid_tool_calls")
        return (
            *(_parsed_call(each, where) for where, each in read),
            *(_unparsed_call(each, where) for where, each in unread),
        )

    def cancelled(self, message: JsonObject) -> tuple[str, ...]:
        """Return nothing: LangChain has no cancellation."""
        return ()

    def results(self, answers: Sequence[ProviderResult]) -> list[JsonObject]:
        """Render each result as a serialized ToolMessage; its artifact is not sent to the model."""
        return [_answer(each) for each in answers]


def _message(given: JsonObject) -> tuple[JsonObject, str]:
    """Return the fields of a message and their path; one serialization nests them under `data`."""
    kind = text_field(given, "type", "message")
    if kind in _OTHER_MESSAGES:
        return {}, "message"
    if kind not in _MODEL_MESSAGES:
        raise Refused("INVALID_REQUEST", "message.type must be ai", path="message.type")
    if "data" in given:
        return object_at(given["data"], "message.data"), "message.data"
    return given, "message"


def _parsed_call(call: JsonObject, path: str) -> ProviderCall:
    return parse_call(call, path, arguments="args", required=False)


def _unparsed_call(call: JsonObject, path: str) -> ProviderCall:
    found = _parsed_call(call, path)
    if found.problem is not None:
        return found
    why = call.get("error") or "LangChain could not read them"
    fault = problem("INVALID_ARGUMENTS", f"the arguments are of no use: {why}", path="arguments")
    return ProviderCall(id=found.id, name=found.name, problem=fault)


def _answer(answered: ProviderResult) -> JsonObject:
    call, result = answered.call, answered.result
    return {
        "type": "tool",
        "content": payload_json(result_payload(result)),
        "tool_call_id": call.id,
        "name": call.name,
        "status": "success" if result.problem is None else "error",
        "artifact": result.data if result.data is not None else list(result.content) or None,
    }
