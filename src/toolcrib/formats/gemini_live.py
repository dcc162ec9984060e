"""How Gemini's Live API spells tools, calls and results, over a socket on which it does the talking."""

from collections.abc import Sequence
from typing import Any, cast

import orjson

from toolcrib.errors import Refused
from toolcrib.interfaces import Bounds, Loss, ProviderCall, ProviderResult
from toolcrib.model import Json, JsonObject, Kind, Result, Tool
from toolcrib.payloads import SILENCE, an_object, capped, described, either, objects, read_call, told
from toolcrib.schemas.fitting.dialects import GEMINI
from toolcrib.schemas.fitting.gemini_types import capitals
from toolcrib.schemas.fitting.schema_cache import SchemaCache

CAP = 8_000
"""The most bytes of a message that answers one call."""
_LONGEST = 500
"""So many characters an id and a name may have, which are said again in it and may be six bytes each."""


class GeminiLive:
    """Tools in `setup`, calls and what is called off in messages of the server, results as one message.

    A result has its status, its message and what telephones look for, and never raw data: the model would
    read it out. Vertex AI takes neither the ids of calls nor `scheduling`, so that they are left out there;
    that somebody wants silence is said in the response instead.
    """

    bounds = Bounds(
        name=r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}",
        parameter=GEMINI.parameter,
        tools=512,
        result_bytes=CAP,
        owns_audio=True,
    )

    def __init__(self, *, vertex: bool = False) -> None:
        self.name = "gemini_live_vertex" if vertex else "gemini_live"
        self._vertex = vertex
        self._fitted = SchemaCache(capitals)

    def tool(self, tool: Tool, name: str) -> JsonObject:
        """Declare one function; one without parameters says nothing of them."""
        said = {"name": name, "description": described(tool), "parameters": self._fitted.of(tool).schema}
        return {key: value for key, value in said.items() if value}

    def tools(self, declared: Sequence[JsonObject]) -> list[JsonObject]:
        """All declarations are one tool of Gemini's."""
        return [{"functionDeclarations": list(declared)}] if declared else []

    def losses(self, tool: Tool) -> tuple[Loss, ...]:
        """Say what of the schema could not be said."""
        return self._fitted.of(tool).losses

    def calls(self, message: JsonObject) -> tuple[ProviderCall, ...]:
        """Read the calls of a message of the server's; most messages have none."""
        call = _told(message, "toolCall", "tool_call")
        found: Json = either(call, "functionCalls", "function_calls") or []
        return tuple(_asked(each, path) for path, each in objects(found, "message.toolCall.functionCalls"))

    def cancelled(self, message: JsonObject) -> tuple[str, ...]:
        """Read which calls were called off because somebody spoke."""
        ids: Json = _told(message, "toolCallCancellation", "tool_call_cancellation").get("ids") or []
        path = "message.toolCallCancellation.ids"
        if not isinstance(ids, list) or not all(isinstance(each, str) for each in cast("list[Json]", ids)):
            raise Refused("INVALID_REQUEST", f"{path} must be a list of texts", path=path)
        return tuple(cast("list[str]", ids))

    def results(self, answers: Sequence[ProviderResult]) -> list[JsonObject]:
        """Answer all calls in one message; a call that is not answered would hold up the session."""
        if not answers:
            return []
        return [_message([self._answer(each) for each in answers])]

    def _answer(self, answered: ProviderResult) -> JsonObject:
        asked, result = answered.asked, answered.result
        answer: dict[str, Any] = {"name": asked.name, "response": {}}
        said = told(result, data=False)
        if not self._vertex:
            answer |= {"id": asked.id, "scheduling": scheduling(result)}
            said = {name: value for name, value in said.items() if name != SILENCE}
        room = CAP - len(orjson.dumps(_message([answer])))
        return {**answer, "response": capped(said, room + len("{}"))}


def scheduling(result: Result) -> str:
    """When the model takes note of a result while it talks.

    It finishes what it says first, also before an error. It is interrupted where nobody knows whether a
    change was made, since it may be telling somebody that it was; what wants no words gets none.
    """
    if result.voice.suppress:
        return "SILENT"
    unknown = result.problem is not None and result.problem.kind is Kind.UNKNOWN
    return "INTERRUPT" if unknown else "WHEN_IDLE"


def _message(answers: list[JsonObject]) -> JsonObject:
    return {"tool_response": {"functionResponses": answers}}


def _told(message: JsonObject, wire: str, python: str) -> JsonObject:
    """Find one part of a message. All that the server says is objects by name, whatever is added one day."""
    given = an_object(message, "message")
    said = [each for each in given.values() if each is not None]
    if not said or not all(isinstance(each, dict) for each in said):
        raise Refused(
            "INVALID_REQUEST",
            "message must be one of a Live session, such as {toolCall: {functionCalls: […]}}",
            path="message",
        )
    return an_object(either(given, wire, python) or {}, f"message.{wire}")


def _asked(call: JsonObject, path: str) -> ProviderCall:
    return read_call(call, path, arguments="args", needed=False, most=_LONGEST)
