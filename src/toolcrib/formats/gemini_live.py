"""Gemini Live API over a WebSocket: function declarations, calls, cancellations and results."""

from collections.abc import Sequence
from typing import Any, cast

import orjson

from toolcrib.errors import Refused
from toolcrib.interfaces import Bounds, ProviderCall, ProviderResult
from toolcrib.model import Json, JsonObject, Kind, Result, Tool
from toolcrib.payloads import (
    SUPPRESS_VOICE_FIELD,
    model_description,
    object_at,
    objects_at,
    parse_call,
    result_payload,
    truncate_payload,
    wire_field,
)
from toolcrib.schemas.fitting.dialects import GEMINI
from toolcrib.schemas.fitting.fit import FittedFormat, fit_gemini

MAX_RESULT_BYTES = 8_000
"""Bytes of a message with the result of one call."""
_MAX_ID_CHARACTERS = 500
"""Characters of an id or a name. Both are echoed in the result, at up to six bytes a character."""


class GeminiLive(FittedFormat):
    """Tools go to `setup`; calls and cancellations are server messages; all results are one message.

    A result has status, message and telephony fields, never raw data: the model would read it aloud. Vertex
    AI supports neither call ids nor `scheduling`, so both are omitted there; suppressed speech is then
    requested by a field of the response.
    """

    bounds = Bounds(
        name=r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}",
        parameter=GEMINI.parameter,
        tools=512,
        result_bytes=MAX_RESULT_BYTES,
        owns_audio=True,
    )

    def __init__(self, *, vertex: bool = False) -> None:
        self.name = "gemini_live_vertex" if vertex else "gemini_live"
        self._vertex = vertex
        super().__init__(fit_gemini)

    def tool(self, tool: Tool, name: str) -> JsonObject:
        """Declare one function; `parameters` is omitted if there are none."""
        schema = self._fitted.of(tool).schema
        fields = {"name": name, "description": model_description(tool), "parameters": schema}
        return {key: value for key, value in fields.items() if value}

    def tools(self, declared: Sequence[JsonObject]) -> list[JsonObject]:
        """Wrap all declarations in one Gemini tool."""
        return [{"functionDeclarations": list(declared)}] if declared else []

    def calls(self, message: JsonObject) -> tuple[ProviderCall, ...]:
        """Parse the calls of a server message; most messages have none."""
        call = _message_member(message, "toolCall", "tool_call")
        calls = objects_at(
            wire_field(call, "functionCalls", "function_calls") or [], "message.toolCall.functionCalls"
        )
        return tuple(
            parse_call(each, path, arguments="args", required=False, max_chars=_MAX_ID_CHARACTERS)
            for path, each in calls
        )

    def cancelled(self, message: JsonObject) -> tuple[str, ...]:
        """Parse the ids of calls that were cancelled because the user interrupted."""
        cancellation = _message_member(message, "toolCallCancellation", "tool_call_cancellation")
        ids: Json = cancellation.get("ids") or []
        path = "message.toolCallCancellation.ids"
        if not isinstance(ids, list) or not all(isinstance(each, str) for each in cast("list[Json]", ids)):
            raise Refused("INVALID_REQUEST", f"{path} must be a list of texts", path=path)
        return tuple(cast("list[str]", ids))

    def results(self, answers: Sequence[ProviderResult]) -> list[JsonObject]:
        """Render all results as one message; a call without a result would block the session."""
        return [_message([self._function_response(each) for each in answers])] if answers else []

    def _function_response(self, outcome: ProviderResult) -> JsonObject:
        call, result = outcome.call, outcome.result
        response: dict[str, Any] = {"name": call.name, "response": {}}
        payload = result_payload(outcome, data=False)
        if not self._vertex:
            response |= {"id": call.id, "scheduling": scheduling(result)}
            payload = {name: value for name, value in payload.items() if name != SUPPRESS_VOICE_FIELD}
        free_bytes = MAX_RESULT_BYTES - len(orjson.dumps(_message([response])))
        return {**response, "response": truncate_payload(payload, free_bytes + len("{}"))}


def scheduling(result: Result) -> str:
    """Return when the model processes a result during its own speech.

    By default it finishes speaking first, also before an error. It is interrupted if the outcome is unknown,
    since it may be confirming a change that did not happen. Results that suppress speech are silent.
    """
    if result.voice.suppress:
        return "SILENT"
    unknown = result.problem is not None and result.problem.kind is Kind.UNKNOWN
    return "INTERRUPT" if unknown else "WHEN_IDLE"


def _message(responses: list[JsonObject]) -> JsonObject:
    return {"tool_response": {"functionResponses": responses}}


def _message_member(message: JsonObject, wire: str, python: str) -> JsonObject:
    """Return one member of a message. All members are objects, which allows for future message types."""
    members = [each for each in object_at(message, "message").values() if each is not None]
    if not members or not all(isinstance(each, dict) for each in members):
        raise Refused(
            "INVALID_REQUEST",
            "message must be one of a Live session, such as {toolCall: {functionCalls: […]}}",
            path="message",
        )
    return object_at(wire_field(message, wire, python) or {}, f"message.{wire}")
