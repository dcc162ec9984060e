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


class McpFormat:
    """Renders `tools/list` entries, parses `tools/call` requests or their params, renders the responses."""

    name = "mcp"
    bounds = Bounds(name=r"[A-Za-z0-9._-]{1,128}")

    def tool(self, tool: Tool, name: str) -> JsonObject:
        """Declare one tool."""
        spelled: dict[str, Any] = {
            "name": name,
            "description": tool.description,
            "inputSchema": tool.input_schema,
        }
        said = annotations(tool)
        if said:
            spelled["annotations"] = said
        if tool.title is not None:
            spelled["title"] = tool.title
        if tool.output_schema is not None:
            spelled["outputSchema"] = tool.output_schema
        if tool.icons:
            spelled["icons"] = list(tool.icons)
        if tool.meta or tool.extensions:
            spelled["_meta"] = (
                {**tool.meta, EXTENSIONS_KEY: tool.extensions} if tool.extensions else tool.meta
            )
        return spelled

    def tools(self, declared: Sequence[JsonObject]) -> list[JsonObject]:
        """Return the declarations as a list."""
        return list(declared)

    def losses(self, tool: Tool) -> tuple[Loss, ...]:
        """Return nothing: MCP accepts every schema."""
        return ()

    def calls(self, message: JsonObject) -> tuple[ProviderCall, ...]:
        """Parse a request, with its id for the response, or bare params."""
        if "method" not in object_at(message, "message"):
            return (_asked(message, "message", "", {}),)
        if message["method"] != CALL_TOOL:
            return ()
        params, known = object_at(message.get("params"), "message.params"), {"id": _id(message)}
        return (_asked(params, "message.params", str(known["id"]), known),)

    def cancelled(self, message: JsonObject) -> tuple[str, ...]:
        """Parse the id of a `notifications/cancelled`."""
        if object_at(message, "message").get("method") != CANCELLED:
            return ()
        return (str(_id(object_at(message.get("params"), "message.params"), "requestId", "message.params")),)

    def results(self, answers: Sequence[ProviderResult]) -> list[JsonObject]:
        """Render a JSON-RPC response for each request, and a bare result for bare params."""
        return [_answer(each) for each in answers]


def _asked(params: JsonObject, path: str, id: str, known: JsonObject) -> ProviderCall:
    arguments, problem = parse_arguments(params.get("arguments"))
    return ProviderCall(
        id=id, name=text_field(params, "name", path), arguments=arguments, problem=problem, more=known
    )


def _id(holder: JsonObject, key: str = "id", path: str = "message") -> str | int:
    """Return a request id, which is a string or an integer."""
    found = holder.get(key)
    if (type(found) is str and is_encodable(found)) or type(found) is int:
        return found
    raise Refused("INVALID_REQUEST", f"{path}.{key} must be a text or a whole number", path=f"{path}.{key}")


def _answer(answer: ProviderResult) -> JsonObject:
    outcome = answer.result
    if outcome.ask is not None:
        outcome = outcome.replace(content=({"type": "text", "text": outcome.message},))
    result: JsonObject = loads(encode(outcome))
    known = answer.call.more
    return {"jsonrpc": "2.0", "id": known["id"], "result": result} if "id" in known else result


def annotations(tool: Tool) -> dict[str, Any]:
    """Return annotations: authored tools state all hints; external ones have claims and confirmed hints.

    For external tools only a true hint is added. A missing hint has a default meaning, for some the cautious
    one.
    """
    claimed = {key: value for key, value in tool.annotations.items() if _is_right(key, value)}
    vouched = {"readOnlyHint": tool.read_only, "idempotentHint": tool.idempotent}
    if tool.family in ("mcp", "langchain"):
        return {**claimed, **{key: True for key, value in vouched.items() if value}}
    return {**claimed, **vouched, "destructiveHint": tool.destructive}


def _is_right(key: str, value: Json) -> bool:
    kind = _ANNOTATIONS.get(key)
    return kind is None or type(value) is kind


def encode(outcome: Result, stamp: bytes = b"") -> bytes:
    """Encode a completed result as a `tools/call` result; JSON encoded earlier is spliced in.

    With a stamp, the server's identity as JSON, it also has `resultType` and the identity that newer protocol
    revisions require.
    """
    carried: dict[str, Any] = {**outcome.meta} if outcome.meta else {}
    hints, metadata, problem = outcome.hints, outcome.metadata, outcome.problem
    data: Json = outcome.data
    if hints is not None:
        carried[HINTS_KEY] = Fragment(hints.encoded) if hints.encoded else hints.as_json()
    if metadata is not None:
        carried[METADATA_KEY] = metadata.as_json()
    carried[MESSAGE_KEY] = outcome.message
    if outcome.voice.suppress or outcome.voice.follow_ups:
        carried[EXTENSIONS_KEY] = outcome.voice.as_json()
    spelled: dict[str, Any] = {"content": _blocks(outcome), "isError": problem is not None, "_meta": carried}
    if problem is not None:
        carried[ERROR_KEY] = problem_json(problem)
    # A failed tool may return its own structured content; errors of the gateway have none.
    if outcome.structured and (problem is None or outcome.content) and _is_structure(data, bool(stamp)):
        spelled["structuredContent"] = Fragment(outcome.encoded) if outcome.encoded else data
    if stamp:
        spelled["resultType"] = "complete"
        carried[SERVER_KEY] = Fragment(stamp)
    return dumps(spelled)


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


def meta(outcome: Result) -> dict[str, Any]:
    """Return the `_meta` of a result: hints, metadata, message, voice extensions and any error."""
    carried: dict[str, Any] = dict(outcome.meta)
    if outcome.hints is not None:
        carried[HINTS_KEY] = outcome.hints.as_json()
    if outcome.metadata is not None:
        carried[METADATA_KEY] = outcome.metadata.as_json()
    carried[MESSAGE_KEY] = outcome.message
    if outcome.voice.suppress or outcome.voice.follow_ups:
        carried[EXTENSIONS_KEY] = outcome.voice.as_json()
    if outcome.problem is not None:
        carried[ERROR_KEY] = problem_json(outcome.problem)
    return carried


def _content(outcome: Result) -> list[Json]:
    if outcome.content:
        return list(outcome.content)
    if outcome.problem is not None:
        return [{"type": "text", "text": outcome.problem.message}]
    if isinstance(outcome.data, str):
        # Model vendors reject empty text blocks.
        return [{"type": "text", "text": outcome.data}] if outcome.data else []
    return [{"type": "text", "text": (outcome.encoded or dumps(outcome.data)).decode()}]
