"""Gemini generateContent: function declarations, calls and results."""

from collections.abc import Sequence

from toolcrib.errors import Refused
from toolcrib.interfaces import Bounds, Loss, ProviderCall, ProviderResult
from toolcrib.model import Json, JsonObject, Tool
from toolcrib.payloads import model_description, object_at, objects_at, parse_call, result_payload, wire_field
from toolcrib.schemas.fitting.dialects import GEMINI
from toolcrib.schemas.fitting.fit import SchemaCache, fit_gemini


class Gemini:
    """Tools are one list of function declarations; calls and results are parts of contents."""

    name = "gemini"
    bounds = Bounds(name=r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}", parameter=GEMINI.parameter, tools=512)

    def __init__(self) -> None:
        self._fitted = SchemaCache(fit_gemini)

    def tool(self, tool: Tool, name: str) -> JsonObject:
        """Declare one function; `parameters` is omitted if there are none."""
        said = {
            "name": name,
            "description": model_description(tool),
            "parameters": self._fitted.of(tool).schema,
        }
        return {key: value for key, value in said.items() if value}

    def tools(self, declared: Sequence[JsonObject]) -> list[JsonObject]:
        """Wrap all declarations in one Gemini tool."""
        return [{"functionDeclarations": list(declared)}] if declared else []

    def losses(self, tool: Tool) -> tuple[Loss, ...]:
        """Return what the schema conversion dropped."""
        return self._fitted.of(tool).losses

    def calls(self, message: JsonObject) -> tuple[ProviderCall, ...]:
        """Parse the calls of a response's first candidate, or of a single content."""
        content, path = _content(object_at(message, "message"))
        found = objects_at(content.get("parts") or [], f"{path}.parts")
        parts = ((wire_field(part, "functionCall", "function_call"), where) for where, part in found)
        return tuple(_parsed_call(part, f"{where}.functionCall") for part, where in parts if part is not None)

    def cancelled(self, message: JsonObject) -> tuple[str, ...]:
        """Return nothing: the API has no cancellation."""
        return ()

    def results(self, answers: Sequence[ProviderResult]) -> list[JsonObject]:
        """Render all results as one content: the API requires one part for each call."""
        if not answers:
            return []
        return [{"role": "user", "parts": [{"functionResponse": _answer(each)} for each in answers]}]


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


def _parsed_call(given: Json, path: str) -> ProviderCall:
    call = object_at(given, path)
    if wire_field(call, "willContinue", "will_continue"):
        raise Refused(
            "INVALID_REQUEST", f"{path} is only a piece of a call: put the pieces together first", path=path
        )
    return parse_call(call, path, arguments="args", required=False)


def _answer(answered: ProviderResult) -> JsonObject:
    asked, result = answered.call, answered.result
    key = "output" if result.problem is None else "error"
    answer = {"name": asked.name, "response": {key: result_payload(result)}}
    return {"id": asked.id, **answer} if asked.id else answer
