"""ElevenLabs Agents: client tool declarations, calls and results."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from math import ceil
from typing import Any

from toolcrib.interfaces import Bounds, Loss, ProviderCall, ProviderResult
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
from toolcrib.schemas.fitting.fit import SchemaCache, fit

_MAX_TIMEOUT_SECONDS = 120
"""Upper bound of `response_timeout_secs`, in seconds."""
_GRACE_SECONDS = 5
"""Seconds added to the tool's timeout, so that the agent still receives the timeout error."""


class ElevenLabs:
    """Tools are configurations created on the agent beforehand; calls and results are messages."""

    name = "elevenlabs"
    bounds = Bounds(owns_audio=True)

    def __init__(self) -> None:
        self._fitted = SchemaCache(partial(fit, dialect=ELEVENLABS))

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

    def tools(self, declared: Sequence[JsonObject]) -> list[JsonObject]:
        """Return the declarations as a list; each is created by a separate request."""
        return list(declared)

    def losses(self, tool: Tool) -> tuple[Loss, ...]:
        """Return what the schema conversion dropped."""
        return self._fitted.of(tool).losses

    def calls(self, message: JsonObject) -> tuple[ProviderCall, ...]:
        """Parse the call of a message; most messages have none."""
        given = object_at(message, "message")
        if text_field(given, "type", "message") != "client_tool_call":
            return ()
        path = "message.client_tool_call"
        return (_parsed_call(object_at(given.get("client_tool_call"), path), path),)

    def cancelled(self, message: JsonObject) -> tuple[str, ...]:
        """Return nothing: the API has no cancellation."""
        return ()

    def results(self, answers: Sequence[ProviderResult]) -> list[JsonObject]:
        """Render one message for each result."""
        return [
            {
                "type": "client_tool_result",
                "tool_call_id": each.call.id,
                "result": payload_json(result_payload(each.result)),
                "is_error": each.result.problem is not None,
            }
            for each in answers
        ]


def _parsed_call(call: JsonObject, path: str) -> ProviderCall:
    found = parse_call(call, path, id="tool_call_id", name="tool_name", arguments="parameters")
    if found.arguments.get("tool_call_id") != found.id:
        return found
    # The SDK adds the call id to the parameters that it passes to a client tool.
    own = {key: value for key, value in found.arguments.items() if key != "tool_call_id"}
    return replace(found, arguments=own)
