"""Maps a server's response to a Result, or to an error that states what is known about the call's outcome."""

from collections.abc import Callable
from typing import Any, cast

import orjson

from toolcrib.errors import Broken, Failed, Lost, ToolcribError, Unavailable, problem
from toolcrib.mcp.meta import forwarded, server_meta
from toolcrib.mcp.revisions import request_error
from toolcrib.model import Ask, Json, JsonObject, Result, Tool
from toolcrib.sources.mcp.connection import (
    MAX_QUESTION_BYTES,
    ConnectionLost,
    HttpStatusError,
    InvalidResponse,
    JsonRpcError,
    NotSent,
    ResponseTooLarge,
    ServerError,
    redacted,
)
from toolcrib.sources.mcp.envelope import hints_in
from toolcrib.sources.mcp.server_messages import parse_message

MAX_MESSAGE_CHARS = 2_000
"""Maximum characters of a server's own message in an error."""

MAX_INPUT_REQUESTS = 16
"""Maximum input requests in one `input_required` result."""
MAX_STATE_CHARS = 64 << 10
"""Maximum characters of the `requestState` that a server sends with its input requests."""

_MAX_ERROR_DATA_BYTES = 16 << 10
"""Maximum bytes of the `data` of an error; larger data is dropped."""
_MAX_REQUEST_NAME_CHARS = 256
"""Maximum characters of the name of an input request."""
_PROTOCOL_FIELDS = frozenset({"resultType", "ttlMs", "cacheScope"})
"""Protocol fields of a result. They address the client, so they are no part of a raw result's data."""
_EMPTY_RESULT = Result()
_NO_REASON = "the tool says that it failed, but not why"


def result_of(result: JsonObject, tool: Tool, capabilities: JsonObject | None = None) -> Result:
    """Parse the result of `tools/call`. The data is `structuredContent`, else the parsed content.

    `capabilities` are the caller's client capabilities; None if the caller has no channel.
    """
    if (input_required := _input_required(result, tool, capabilities)) is not None:
        return input_required
    blocks = _blocks(result, tool)
    meta, data = result.get("_meta"), result.get("structuredContent")
    base = _EMPTY_RESULT
    if meta is not None:
        base = base.replace(meta=server_meta(meta), hints=hints_in(meta))
    if result.get("isError"):
        return base.replace(problem=problem("TOOL_FAILED", _error_text(blocks)), data=data, content=blocks)
    if data is not None:
        return base.replace(data=data, content=blocks)
    return base.replace(data=_text_data(blocks), content=blocks, structured=False)


def raw_of(result: JsonObject, tool: Tool, capabilities: JsonObject | None = None) -> Result:
    """Parse the result of any other request: the data is the whole result without its protocol fields."""
    if (input_required := _input_required(result, tool, capabilities)) is not None:
        return input_required
    members = {key: value for key, value in result.items() if key not in _PROTOCOL_FIELDS}
    return _EMPTY_RESULT.replace(data=forwarded(members))


def _input_required(result: JsonObject, tool: Tool, capabilities: JsonObject | None) -> Result | None:
    """Return the input requests of an `input_required` result; None for a complete result."""
    kind = result.get("resultType")
    if kind is None or kind == "complete":
        return None
    if kind != "input_required":
        raise _contract_violation(tool, f"it is of a kind we did not ask for: {str(kind)[:40]!r}")
    if capabilities is None:
        message = f"{tool.name} has to ask the user something first, and this caller cannot be asked"
        raise Failed("TOOL_FAILED", message)
    requests, state = _object(result.get("inputRequests")), result.get("requestState") or ""
    if requests is None or not isinstance(state, str) or not (requests or state):
        raise _contract_violation(tool, "it asks something, but not what")
    if len(requests) > MAX_INPUT_REQUESTS or len(state) > MAX_STATE_CHARS:
        why = f"it asks more than {MAX_INPUT_REQUESTS} things, or has us keep too much for it"
        raise _contract_violation(tool, why)
    questions = {name: _input_request(name, each, tool, capabilities) for name, each in requests.items()}
    ask = Ask(questions=questions, state=state)
    return _EMPTY_RESULT.replace(ask=ask, meta=server_meta(result.get("_meta")))


def _input_request(name: str, value: Json, tool: Tool, capabilities: JsonObject) -> JsonObject:
    fields = _object(value) or {}
    method, params = fields.get("method"), _object(fields.get("params"))
    if len(name) > _MAX_REQUEST_NAME_CHARS or not isinstance(method, str) or params is None:
        raise _contract_violation(tool, "something it asks is not a question")
    violation = request_error(method, params, capabilities)
    if violation is not None:
        raise _contract_violation(tool, f"it asks what it was told cannot be asked: {violation[1]}")
    if len(orjson.dumps(params)) > MAX_QUESTION_BYTES:
        why = f"a question may have {MAX_QUESTION_BYTES:,} bytes, and one of its has more"
        raise _contract_violation(tool, why)
    return {"method": method, "params": forwarded(params)}


def _object(value: Json) -> JsonObject | None:
    """Return an object, `{}` for None, and None for any other type."""
    if value is None:
        return {}
    return cast("JsonObject", value) if isinstance(value, dict) else None


def _blocks(result: JsonObject, tool: Tool) -> tuple[JsonObject, ...]:
    content = result.get("content")
    if content is None:
        return ()
    if not isinstance(content, list):
        raise _contract_violation(tool, "its content is not a list")
    for block in cast("list[Json]", content):
        if not isinstance(block, dict) or not isinstance(cast("dict[str, Any]", block).get("type"), str):
            raise _contract_violation(tool, "a block of its content is not an object with a type")
        if block["type"] == "text" and not isinstance(cast("dict[str, Any]", block).get("text"), str):
            raise _contract_violation(tool, "a text block of its content has no text")
    return tuple(cast("list[JsonObject]", content))


def _text_data(blocks: tuple[JsonObject, ...]) -> Json:
    if not blocks:
        return ""
    if len(blocks) == 1 and blocks[0]["type"] == "text":
        return _parsed_text(blocks[0]["text"])
    if all(block["type"] == "text" for block in blocks):
        return "\n".join(block["text"] for block in blocks)
    return list(blocks)


def _parsed_text(text: str) -> Json:
    """Parse text that is JSON, within the limits of a message: many tools serialize their results as text."""
    if text[:1] not in ("{", "["):
        return text
    try:
        return parse_message(text.encode())
    except InvalidResponse:
        return text


def _error_text(blocks: tuple[JsonObject, ...]) -> str:
    text = "\n".join(block["text"] for block in blocks if block["type"] == "text").strip()
    return shortened(text) or _NO_REASON


def shortened(text: str) -> str:
    """Truncate a server's message to the maximum length in an error."""
    return text if len(text) <= MAX_MESSAGE_CHARS else f"{text[: MAX_MESSAGE_CHARS - 1]}…"


def _contract_violation(tool: Tool, why: str) -> Broken:
    return Broken("CONTRACT_VIOLATION", f"the answer of {tool.name} cannot be used: {why}")


def error_of(fault: ServerError, tool: Tool, redact: Callable[[str], str] = str) -> ToolcribError:
    """Map a transport or protocol error to the error of the call that it ended."""
    if isinstance(fault, ConnectionLost):
        return _connection_lost(tool)
    message = f"{tool.source}: {shortened(redact(str(fault)))}"
    if isinstance(fault, JsonRpcError):
        return _json_rpc_failure(fault, redact)
    if isinstance(fault, NotSent):
        return Unavailable("NETWORK_ERROR", message)
    if isinstance(fault, HttpStatusError):
        return _status_error(fault.status, tool, message)
    if isinstance(fault, ResponseTooLarge):
        return Broken("RESULT_TOO_LARGE", message)
    return Broken("CONTRACT_VIOLATION", message)


def _json_rpc_failure(refusal: JsonRpcError, redact: Callable[[str], str]) -> Failed:
    """Preserve code, message and bounded data of a JSON-RPC error: an MCP client receives the same error."""
    message = shortened(redact(str(refusal))) or _NO_REASON
    details: dict[str, Any] = {"code": refusal.code, "message": message}
    if refusal.data is not None and len(orjson.dumps(refusal.data)) <= _MAX_ERROR_DATA_BYTES:
        details["data"] = redacted(refusal.data, redact)
    return Failed("TOOL_FAILED", message, tool_code=str(refusal.code), details=details)


def _connection_lost(tool: Tool) -> Lost:
    if tool.read_only or tool.idempotent:
        return Lost("SOURCE_DOWN", f"{tool.source} stopped during the call; it is safe to try again")
    message = f"{tool.source} stopped during the call; it may have taken effect, so check before trying again"
    return Lost("OUTCOME_UNKNOWN", message)


def _status_error(status: int, tool: Tool, message: str) -> ToolcribError:
    if status < 500:
        return Unavailable("HTTP_ERROR", message, retryable=status == 429)
    # The request was sent, and the status may be a proxy's, which does not know the outcome.
    if tool.read_only or tool.idempotent:
        return Lost("HTTP_ERROR", f"{message}; it is safe to try again", retryable=True)
    advice = "it may have taken effect, so check before trying again"
    return Lost("HTTP_ERROR", f"{message}; {advice}", retryable=False)
