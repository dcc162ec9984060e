"""Deepgram Voice Agent: function declarations, calls, cancellations and results."""

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
from toolcrib.schemas.fitting.dialects import DEEPGRAM
from toolcrib.schemas.fitting.fit import FittedFormat, fit

MAX_CONTENT_BYTES = 12_000
"""Bytes of a result's JSON."""


class Deepgram(FittedFormat):
    """Functions go to `agent.think` of `Settings`; calls, cancellations and results are messages."""

    name = "deepgram"
    bounds = Bounds(parameter=DEEPGRAM.parameter, result_bytes=MAX_CONTENT_BYTES, owns_audio=True)

    def __init__(self) -> None:
        super().__init__(partial(fit, dialect=DEEPGRAM))

    def tool(self, tool: Tool, name: str) -> JsonObject:
        """Declare one client-side function, that is, one without an endpoint.

        The agent calls speculatively, before the end of the user's turn. Tools that are not repeatable are
        deferred until then.
        """
        fields: dict[str, Any] = {
            "name": name,
            "description": model_description(tool),
            "parameters": self._fitted.of(tool).schema,
            "defer_until_eot": not tool.repeatable,
        }
        return {key: value for key, value in fields.items() if value}

    def calls(self, message: JsonObject) -> tuple[ProviderCall, ...]:
        """Parse the client-side calls; functions with an endpoint are called by the agent."""
        return tuple(
            parse_call(each, path, arguments="arguments")
            for path, each in _functions(message, "FunctionCallRequest")
            if each.get("client_side") is not False
        )

    def cancelled(self, message: JsonObject) -> tuple[str, ...]:
        """Parse the ids of speculative calls that were cancelled."""
        return tuple(
            text_field(each, "id", path) for path, each in _functions(message, "FunctionCallCancelled")
        )

    def results(self, answers: Sequence[ProviderResult]) -> list[JsonObject]:
        """Render one message for each result."""
        return [
            {
                "type": "FunctionCallResponse",
                "id": each.call.id,
                "name": each.call.name,
                "content": payload_json(truncate_payload(result_payload(each), MAX_CONTENT_BYTES)),
            }
            for each in answers
        ]


def _functions(message: JsonObject, kind: str) -> list[tuple[str, JsonObject]]:
    if text_field(object_at(message, "message"), "type", "message") != kind:
        return []
    return objects_at(message.get("functions"), "message.functions")
