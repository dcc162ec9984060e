"""ElevenLabs Agents: client tool declarations, calls and results."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from math import ceil
from typing import Any

from toolcrib.interfaces import Bounds, ProviderCall, ProviderResult
from toolcrib.model import JsonObject, Tool
from toolcrib.payloads import (
    model_description,
    object_at,
    parse_call,
    payload_json,
    result_payload,
    text_field,
)
from toolcrib.schemas.fitting.dialects import ELEVENLABS
from toolcrib.schemas.fitting.fit import FittedFormat, fit

_MAX_TIMEOUT_SECONDS = 120
"""Upper bound of `response_timeout_secs`, in seconds."""
_GRACE_SECONDS = 5
"""Seconds added to the tool's timeout, so that the agent still receives the timeout error."""


class ElevenLabs(FittedFormat):
    """Tools are configurations created on the agent beforehand; calls and results are messages."""

    name = "elevenlabs"
    bounds = Bounds(owns_audio=True)

    def __init__(self) -> None:
        super().__init__(partial(fit, dialect=ELEVENLABS))

    def tool(self, tool: Tool, name: str) -> JsonObject:
        """Declare one client tool, in the form of `tool_config` in the request that creates a tool."""
        declared: dict[str, Any] = {
            "type": "client",
            "name": name,
            "description": model_description(tool) or name,
            "parameters": self._fitted.of(tool).schema,
            "expects_response": True,
        }
        if tool.timeout is not None:
            declared["response_timeout_secs"] = min(ceil(tool.timeout) + _GRACE_SECONDS, _MAX_TIMEOUT_SECONDS)
        return declared

    def calls(self, message: JsonObject) -> tuple[ProviderCall, ...]:
        """Parse the call of a message; most messages have none."""
        if text_field(object_at(message, "message"), "type", "message") != "client_tool_call":
            return ()
        path = "message.client_tool_call"
        return (_parsed_call(object_at(message.get("client_tool_call"), path), path),)

    def results(self, answers: Sequence[ProviderResult]) -> list[JsonObject]:
        """Render one message for each result."""
        return [
            {
                "type": "client_tool_result",
                "tool_call_id": each.call.id,
                "result": payload_json(result_payload(each)),
                "is_error": each.result.problem is not None,
            }
            for each in answers
        ]


def _parsed_call(call: JsonObject, path: str) -> ProviderCall:
    parsed = parse_call(call, path, id="tool_call_id", name="tool_name", arguments="parameters")
    if parsed.arguments.get("tool_call_id") != parsed.id:
        return parsed
    # The SDK adds the call id to the parameters that it passes to a client tool.
    arguments = {key: value for key, value in parsed.arguments.items() if key != "tool_call_id"}
    return replace(parsed, arguments=arguments)
