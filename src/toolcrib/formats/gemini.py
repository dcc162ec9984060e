"""Gemini generateContent: function declarations, calls and results."""

from collections.abc import Sequence

from toolcrib.errors import Refused
from toolcrib.interfaces import Bounds, ProviderCall, ProviderResult
from toolcrib.model import Json, JsonObject, Tool
from toolcrib.payloads import model_description, object_at, objects_at, parse_call, result_payload, wire_field
from toolcrib.schemas.fitting.dialects import GEMINI
from toolcrib.schemas.fitting.fit import FittedFormat, fit_gemini


class Gemini(FittedFormat):
    """Tools are one list of function declarations; calls and results are parts of contents."""

    name = "gemini"
    bounds = Bounds(name=r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}", parameter=GEMINI.parameter, tools=512)

    def __init__(self) -> None:
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
        """Parse the calls of a response's first candidate, or of a single content."""
        content, path = _content(object_at(message, "message"))
        parts = objects_at(content.get("parts") or [], f"{path}.parts")
        calls = ((wire_field(part, "functionCall", "function_call"), part_path) for part_path, part in parts)
        return tuple(_parsed_call(call, f"{at}.functionCall") for call, at in calls if call is not None)

    def results(self, answers: Sequence[ProviderResult]) -> list[JsonObject]:
        """Render all results as one content: the API requires one part for each call."""
        if not answers:
            return []
        return [{"role": "user", "parts": [{"functionResponse": _response(each)} for each in answers]}]


def _content(message: JsonObject) -> tuple[JsonObject, str]:
    """Return the content and its path; a candidate that was stopped may have none."""
    if "candidates" not in message and "parts" not in message and "promptFeedback" not in message:
        raise Refused(
            "INVALID_REQUEST",
            "message must be a response of Gemini's with candidates, or a content with parts",
            path="message",
        )
    if "parts" in message:
        return message, "message"
    candidates = objects_at(message.get("candidates") or [], "message.candidates")
    if not candidates:
        return {}, "message"
    path, first = candidates[0]
    content = first.get("content")
    return ({}, path) if content is None else (object_at(content, f"{path}.content"), f"{path}.content")


def _parsed_call(value: Json, path: str) -> ProviderCall:
    call = object_at(value, path)
    if wire_field(call, "willContinue", "will_continue"):
        raise Refused(
            "INVALID_REQUEST", f"{path} is only a piece of a call: put the pieces together first", path=path
        )
    return parse_call(call, path, arguments="args", required=False)


def _response(outcome: ProviderResult) -> JsonObject:
    call = outcome.call
    key = "output" if outcome.result.problem is None else "error"
    response = {"name": call.name, "response": {key: result_payload(outcome)}}
    return {"id": call.id, **response} if call.id else response
