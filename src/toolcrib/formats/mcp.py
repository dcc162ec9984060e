"""Model Context Protocol: tool declarations, calls and results."""

from collections.abc import Sequence
from typing import Any

from orjson import Fragment, dumps, loads

from toolcrib.errors import Refused, problem_json
from toolcrib.interfaces import Bounds, Loss, ProviderCall, ProviderResult
from toolcrib.mcp.meta import ERROR_KEY, EXTENSIONS_KEY, HINTS_KEY, MESSAGE_KEY, METADATA_KEY, SERVER_KEY
from toolcrib.mcp.methods import CALL_TOOL, CANCELLED
from toolcrib.model import Json, JsonObject, Result, Tool
from toolcrib.payloads import is_encodable, object_at, parse_arguments, text_field

_ANNOTATIONS: dict[str, type] = {
    "title": str,
    "readOnlyHint": bool,
    "destructiveHint": bool,
    "idempotentHint": bool,
    "openWorldHint": bool,
}
"""Types the protocol requires; a value of another type breaks clients that validate."""
_FOR_MODEL = {"audience": ["assistant"]}
"""Annotations of a text block that clients need not show to the user."""


class McpFormat:
    """Renders `tools/list` entries, parses `tools/call` requests or their params, renders the responses."""

    name = "mcp"
    bounds = Bounds(name=r"[A-Za-z0-9._-]{1,128}")

    def tool(self, tool: Tool, name: str) -> JsonObject:
        """Declare one tool."""
        entry: dict[str, Any] = {
            "name": name,
            "description": tool.description,
            "inputSchema": tool.input_schema,
        }
        hints = annotations(tool)
        if hints:
            entry["annotations"] = hints
        if tool.title is not None:
            entry["title"] = tool.title
        if tool.output_schema is not None:
            entry["outputSchema"] = tool.output_schema
        if tool.icons:
            entry["icons"] = list(tool.icons)
        if tool.meta or tool.extensions:
            entry["_meta"] = {**tool.meta, EXTENSIONS_KEY: tool.extensions} if tool.extensions else tool.meta
        return entry

    def tools(self, declared: Sequence[JsonObject]) -> list[JsonObject]:
        """Return the declarations as a list."""
        return list(declared)

    def losses(self, tool: Tool) -> tuple[Loss, ...]:
        """Return nothing: MCP accepts every schema."""
        return ()

    def calls(self, message: JsonObject) -> tuple[ProviderCall, ...]:
        """Parse a request, with its id for the response, or bare params."""
        if "method" not in object_at(message, "message"):
            return (_parsed_call(message, "message", "", {}),)
        if message["method"] != CALL_TOOL:
            return ()
        params, request = object_at(message.get("params"), "message.params"), {"id": _id(message)}
        return (_parsed_call(params, "message.params", str(request["id"]), request),)

    def cancelled(self, message: JsonObject) -> tuple[str, ...]:
        """Parse the id of a `notifications/cancelled`."""
        if object_at(message, "message").get("method") != CANCELLED:
            return ()
        return (str(_id(object_at(message.get("params"), "message.params"), "requestId", "message.params")),)

    def results(self, answers: Sequence[ProviderResult]) -> list[JsonObject]:
        """Render a JSON-RPC response for each request, and a bare result for bare params."""
        return [_response(each) for each in answers]


def _parsed_call(params: JsonObject, path: str, id: str, request: JsonObject) -> ProviderCall:
    arguments, problem = parse_arguments(params.get("arguments"))
    name = text_field(params, "name", path)
    return ProviderCall(id=id, name=name, arguments=arguments, problem=problem, more=request)


def _id(parent: JsonObject, key: str = "id", path: str = "message") -> str | int:
    """Return a request id, which is a string or an integer."""
    value = parent.get(key)
    if (type(value) is str and is_encodable(value)) or type(value) is int:
        return value
    raise Refused("INVALID_REQUEST", f"{path}.{key} must be a text or a whole number", path=f"{path}.{key}")


def _response(provider_result: ProviderResult) -> JsonObject:
    outcome = provider_result.result
    if outcome.ask is not None:
        outcome = outcome.replace(content=({"type": "text", "text": outcome.message},))
    hints = provider_result.hints
    text = hints if isinstance(hints, str) else dumps(hints).decode()
    result: JsonObject = loads(encode(outcome, hints=text))
    request = provider_result.call.more
    return {"jsonrpc": "2.0", "id": request["id"], "result": result} if "id" in request else result


def annotations(tool: Tool) -> dict[str, Any]:
    """Return annotations: authored tools state all hints; external ones have claims and confirmed hints.

    For external tools only a true hint is added. A missing hint has a default meaning, for some the cautious
    one.
    """
    claimed = {key: value for key, value in tool.annotations.items() if _has_right_type(key, value)}
    confirmed = {"readOnlyHint": tool.read_only, "idempotentHint": tool.idempotent}
    if tool.family in ("mcp", "langchain"):
        return {**claimed, **{key: True for key, value in confirmed.items() if value}}
    return {**claimed, **confirmed, "destructiveHint": tool.destructive}


def _has_right_type(key: str, value: Json) -> bool:
    kind = _ANNOTATIONS.get(key)
    return kind is None or type(value) is kind


def encode(outcome: Result, stamp: bytes = b"", hints: str = "") -> bytes:
    """Encode a completed result as a `tools/call` result; JSON encoded earlier is spliced in.

    With a stamp, the server's identity as JSON, it also has `resultType` and the identity that newer protocol
    revisions require. Hints for the model are one more text block, after those of the result.
    """
    problem, data = outcome.problem, outcome.data
    fields = meta(outcome, splice=True)
    blocks = _blocks(outcome)
    if hints:
        blocks = (*blocks, {"type": "text", "text": hints, "annotations": _FOR_MODEL})
    encoded: dict[str, Any] = {"content": blocks, "isError": problem is not None, "_meta": fields}
    # A failed tool may return its own structured content; errors of the gateway have none.
    if outcome.structured and (problem is None or outcome.content) and _is_structure(data, bool(stamp)):
        encoded["structuredContent"] = Fragment(outcome.encoded) if outcome.encoded else data
    if stamp:
        encoded["resultType"] = "complete"
        fields[SERVER_KEY] = Fragment(stamp)
    return dumps(encoded)


def _is_structure(data: Json, modern: bool) -> bool:  # noqa: FBT001 - the protocol era is the only choice
    """Return whether data may be `structuredContent`; older revisions only allow an object."""
    return type(data) is dict or (modern and data is not None)


def _blocks(outcome: Result) -> Sequence[Json]:
    """Return the content blocks; a string result that is already encoded is not encoded again."""
    encoded = outcome.encoded
    if outcome.content or outcome.problem is not None or not encoded or type(outcome.data) is not str:
        return _content(outcome)
    if not outcome.data:
        return ()
    return ({"type": "text", "text": Fragment(encoded)},)


def meta(outcome: Result, *, splice: bool = False) -> dict[str, Any]:
    """Return the `_meta` of a result: hints, metadata, message, voice extensions and any error."""
    fields: dict[str, Any] = dict(outcome.meta)
    hints = outcome.hints
    if hints is not None:
        fields[HINTS_KEY] = Fragment(hints.encoded) if splice and hints.encoded else hints.as_json()
    if outcome.metadata is not None:
        fields[METADATA_KEY] = outcome.metadata.as_json()
    fields[MESSAGE_KEY] = outcome.message
    if outcome.voice.suppress or outcome.voice.follow_ups:
        fields[EXTENSIONS_KEY] = outcome.voice.as_json()
    if outcome.problem is not None:
        fields[ERROR_KEY] = problem_json(outcome.problem)
    return fields


def _content(outcome: Result) -> list[Json]:
    if outcome.content:
        return list(outcome.content)
    if outcome.problem is not None:
        return [{"type": "text", "text": outcome.problem.message}]
    if isinstance(outcome.data, str):
        # Model vendors reject empty text blocks.
        return [{"type": "text", "text": outcome.data}] if outcome.data else []
    return [{"type": "text", "text": (outcome.encoded or dumps(outcome.data)).decode()}]
