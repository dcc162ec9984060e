"""How ElevenLabs' agents spell client tools, calls and results."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from math import ceil
from typing import Any

from toolcrib.interfaces import Bounds, Loss, ProviderCall, ProviderResult
from toolcrib.model import JsonObject, Tool
from toolcrib.payloads import a_text, an_object, as_text, described, read_call, told
from toolcrib.schemas.fitting.dialects import ELEVENLABS
from toolcrib.schemas.fitting.fit import fit
from toolcrib.schemas.fitting.schema_cache import SchemaCache

_LONGEST = 120
"""The most seconds an agent waits for a client."""
_GRACE = 5
"""So many seconds longer than the tool may take it waits, to hear that it took too long."""


class ElevenLabs:
    """Tools as configurations that are filed with an agent beforehand, calls and results as messages."""

    name = "elevenlabs"
    bounds = Bounds(owns_audio=True)

    def __init__(self) -> None:
        self._fitted = SchemaCache(partial(fit, dialect=ELEVENLABS))

    def tool(self, tool: Tool, name: str) -> JsonObject:
        """Declare one client tool: what `tool_config` holds where a tool is created."""
        declared: dict[str, Any] = {
            "type": "client",
            "name": name,
            "description": described(tool) or name,
            "parameters": self._fitted.of(tool).schema,
            "expects_response": True,
        }
        if tool.timeout is not None:
            declared["response_timeout_secs"] = min(ceil(tool.timeout) + _GRACE, _LONGEST)
        return declared

    def tools(self, declared: Sequence[JsonObject]) -> list[JsonObject]:
        """Declarations stand side by side; each is created by a request of its own."""
        return list(declared)

    def losses(self, tool: Tool) -> tuple[Loss, ...]:
        """Say what of the schema could not be said."""
        return self._fitted.of(tool).losses

    def calls(self, message: JsonObject) -> tuple[ProviderCall, ...]:
        """Read the one call of a message; most messages have none."""
        given = an_object(message, "message")
        if a_text(given, "type", "message") != "client_tool_call":
            return ()
        path = "message.client_tool_call"
        return (_asked(an_object(given.get("client_tool_call"), path), path),)

    def cancelled(self, message: JsonObject) -> tuple[str, ...]:
        """Nothing is ever called off."""
        return ()

    def results(self, answers: Sequence[ProviderResult]) -> list[JsonObject]:
        """Answer each call in a message of its own."""
        return [
            {
                "type": "client_tool_result",
                "tool_call_id": each.asked.id,
                "result": as_text(told(each.result)),
                "is_error": each.result.problem is not None,
            }
            for each in answers
        ]


def _asked(call: JsonObject, path: str) -> ProviderCall:
    found = read_call(call, path, id="tool_call_id", name="tool_name", arguments="parameters")
    if found.arguments.get("tool_call_id") != found.id:
        return found
    # The SDK puts the id among the parameters when it hands them to a client's tool.
    own = {key: value for key, value in found.arguments.items() if key != "tool_call_id"}
    return replace(found, arguments=own)
