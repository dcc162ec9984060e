"""How Deepgram's Voice Agent spells functions, calls and results."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from toolcrib.interfaces import Bounds, Loss, ProviderCall, ProviderResult
from toolcrib.model import JsonObject, Tool
from toolcrib.payloads import a_text, an_object, as_text, capped, described, objects, read_call, told
from toolcrib.schemas.fitting.dialects import DEEPGRAM
from toolcrib.schemas.fitting.fit import fit
from toolcrib.schemas.fitting.schema_cache import SchemaCache

CAP = 12_000
"""The most bytes of a result."""


class Deepgram:
    """Functions in `Settings`, under `agent.think`; calls, what is called off, and results as messages."""

    name = "deepgram"
    bounds = Bounds(parameter=DEEPGRAM.parameter, result_bytes=CAP, owns_audio=True)

    def __init__(self) -> None:
        self._fitted = SchemaCache(partial(fit, dialect=DEEPGRAM))

    def tool(self, tool: Tool, name: str) -> JsonObject:
        """Declare one function that the client carries out, since it has no endpoint.

        The agent calls ahead, before it is sure that somebody has finished speaking. What changes something
        waits until it is.
        """
        said: dict[str, Any] = {
            "name": name,
            "description": described(tool),
            "parameters": self._fitted.of(tool).schema,
            "defer_until_eot": not tool.repeatable,
        }
        return {key: value for key, value in said.items() if value}

    def tools(self, declared: Sequence[JsonObject]) -> list[JsonObject]:
        """Declarations stand side by side."""
        return list(declared)

    def losses(self, tool: Tool) -> tuple[Loss, ...]:
        """Say what of the schema could not be said."""
        return self._fitted.of(tool).losses

    def calls(self, message: JsonObject) -> tuple[ProviderCall, ...]:
        """Read every call that is the client's to make; those with an endpoint are made by the agent."""
        found = _functions(message, "FunctionCallRequest")
        ours = [(path, each) for path, each in found if each.get("client_side") is not False]
        return tuple(read_call(each, path, arguments="arguments") for path, each in ours)

    def cancelled(self, message: JsonObject) -> tuple[str, ...]:
        """Read which calls were made too early."""
        return tuple(a_text(each, "id", path) for path, each in _functions(message, "FunctionCallCancelled"))

    def results(self, answers: Sequence[ProviderResult]) -> list[JsonObject]:
        """Answer each call in a message of its own."""
        return [
            {
                "type": "FunctionCallResponse",
                "id": each.asked.id,
                "name": each.asked.name,
                "content": as_text(capped(told(each.result), CAP)),
            }
            for each in answers
        ]


def _functions(message: JsonObject, kind: str) -> list[tuple[str, JsonObject]]:
    given = an_object(message, "message")
    if a_text(given, "type", "message") != kind:
        return []
    return objects(given.get("functions"), "message.functions")
