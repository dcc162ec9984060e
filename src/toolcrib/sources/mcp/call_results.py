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
from toolcrib.sources.mcp.envelope import hinted
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


def result_of(answer: JsonObject, tool: Tool, capabilities: JsonObject | None = None) -> Result:
    """Parse the result of `tools/call`. The data is `structuredContent`, else the parsed content.

    `capabilities` are the caller's client capabilities; None if the caller has no channel.
    """
    asked = _asked(answer, tool, capabilities)
    if asked is not None:
        return asked
    blocks = _blocks(answer, tool)
    said, data = answer.get("_meta"), answer.get("structuredContent")
    blank = (
        _EMPTY_RESULT if said is None else _EMPTY_RESULT.replace(meta=server_meta(said), hints=hinted(said))
    )
    if answer.get("isError"):
        fault = problem("TOOL_FAILED", _complaint(blocks))
        return blank.replace(problem=fault, data=data, content=blocks)
    if data is not None:
        return blank.replace(data=data, content=blocks)
    return blank.replace(data=_data(blocks), content=blocks, structured=False)


def raw_of(answer: JsonObject, tool: Tool, capabilities: JsonObject | None = None) -> Result:
    """Parse the result of any other request: the data is the whole result without its protocol fields."""
    asked = _asked(answer, tool, capabilities)
    if asked is not None:
        return asked
    kept = {key: value for key, value in answer.items() if key not in _PROTOCOL_FIELDS}
    return _EMPTY_RESULT.replace(data=forwarded(kept))


def _asked(answer: JsonObject, tool: Tool, capabilities: JsonObject | None) -> Result | None:
    """Return the input requests of an `input_required` result; None for a complete result."""
    kind = answer.get("resultType")
    if kind is None or kind == "complete":
        return None
    if kind != "input_required":
        raise _broken(tool, f"it is of a kind we did not ask for: {str(kind)[:40]!r}")
    if capabilities is None:
        message = f"{tool.name} has to ask the user something first, and this caller cannot be asked"
        raise Failed("TOOL_FAILED", message)
    questions, state = _object(answer.get("inputRequests")), answer.get("requestState") or ""
    if questions is None or not isinstance(state, str) or not (questions or state):
        raise _broken(tool, "it asks something, but not what")
    if len(questions) > MAX_INPUT_REQUESTS or len(state) > MAX_STATE_CHARS:
        raise _broken(tool, f"it asks more than {MAX_INPUT_REQUESTS} things, or has us keep too much for it")
    found = {name: _question(name, each, tool, capabilities) for name, each in questions.items()}
    return _EMPTY_RESULT.replace(ask=Ask(questions=found, state=state), meta=server_meta(answer.get("_meta")))


def _question(name: str, asked: Json, tool: Tool, capabilities: JsonObject) -> JsonObject:
    fields = _object(asked) or {}
    method, params = fields.get("method"), _object(fields.get("params"))
    if len(name) > _MAX_REQUEST_NAME_CHARS or not isinstance(method, str) or params is None:
        raise _broken(tool, "something it asks is not a question")
    wrong = request_error(method, params, capabilities)
    if wrong is not None:
        raise _broken(tool, f"it asks what it was told cannot be asked: {wrong[1]}")
    if len(orjson.dumps(params)) > MAX_QUESTION_BYTES:
        raise _broken(tool, f"a question may have {MAX_QUESTION_BYTES:,} bytes, and one of its has more")
    return {"method": method, "params": forwarded(params)}


def _object(value: Json) -> JsonObject | None:
    """Return an object, `{}` for None, and None for any other type."""
    if value is None:
        return {}
    return cast("JsonObject", value) if isinstance(value, dict) else None


def _blocks(answer: JsonObject, tool: Tool) -> tuple[JsonObject, ...]:
    content = answer.get("content")
    if content is None:
        return ()
    if not isinstance(content, list):
        raise _broken(tool, "its content is not a list")
    for block in cast("list[Json]", content):
        if not isinstance(block, dict) or not isinstance(cast("dict[str, Any]", block).get("type"), str):
            raise _broken(tool, "a block of its content is not an object with a type")
        if block["type"] == "text" and not isinstance(cast("dict[str, Any]", block).get("text"), str):
            raise _broken(tool, "a text block of its content has no text")
    return tuple(cast("list[JsonObject]", content))


def _data(blocks: tuple[JsonObject, ...]) -> Json:
    if not blocks:
        return ""
    if len(blocks) == 1 and blocks[0]["type"] == "text":
        return _spoken(blocks[0]["text"])
    if all(block["type"] == "text" for block in blocks):
        return "\n".join(block["text"] for block in blocks)
    return list(blocks)


def _spoken(text: str) -> Json:
    """Parse text that is JSON, within the limits of a message: many tools serialize their results as text."""
    if text[:1] not in ("{", "["):
        return text
    try:
        return parse_message(text.encode())
    except InvalidResponse:
        return text


def _complaint(blocks: tuple[JsonObject, ...]) -> str:
    text = "\n".join(block["text"] for block in blocks if block["type"] == "text").strip()
    return shortened(text) or _NO_REASON


def shortened(text: str) -> str:
    """Truncate a server's message to the maximum length in an error."""
    return text if len(text) <= MAX_MESSAGE_CHARS else f"{text[: MAX_MESSAGE_CHARS - 1]}…"


def _broken(tool: Tool, how: str) -> Broken:
    return Broken("CONTRACT_VIOLATION", f"the answer of {tool.name} cannot be used: {how}")


def error_of(fault: ServerError, tool: Tool, redact: Callable[[str], str] = str) -> ToolcribError:
    """Map a transport or protocol error to the error of the call that it ended."""
    if isinstance(fault, ConnectionLost):
        return _cut(tool)
    said = f"{tool.source}: {shortened(redact(str(fault)))}"
    if isinstance(fault, JsonRpcError):
        return _refused(fault, redact)
    if isinstance(fault, NotSent):
        return Unavailable("NETWORK_ERROR", said)
    if isinstance(fault, HttpStatusError):
        return _status(fault.status, tool, said)
    if isinstance(fault, ResponseTooLarge):
        return Broken("RESULT_TOO_LARGE", said)
    return Broken("CONTRACT_VIOLATION", said)


def _refused(refusal: JsonRpcError, redact: Callable[[str], str]) -> Failed:
    """Preserve code, message and bounded data of a JSON-RPC error: an MCP client receives the same error."""
    message = shortened(redact(str(refusal))) or _NO_REASON
    details: dict[str, Any] = {"code": refusal.code, "message": message}
    data = _bounded(refusal.data, redact)
    if data is not None:
        details["data"] = data
    return Failed("TOOL_FAILED", message, tool_code=str(refusal.code), details=details)


def _bounded(data: Json, redact: Callable[[str], str]) -> Json:
    if data is None or len(orjson.dumps(data)) > _MAX_ERROR_DATA_BYTES:
        return None
    return redacted(data, redact)


def _cut(tool: Tool) -> Lost:
    if _is_safe(tool):
        return Lost("SOURCE_DOWN", f"{tool.source} stopped during the call; it is safe to try again")
    message = f"{tool.source} stopped during the call; it may have taken effect, so check before trying again"
    return Lost("OUTCOME_UNKNOWN", message)


def _status(status: int, tool: Tool, said: str) -> ToolcribError:
    if status < 500:
        return Unavailable("HTTP_ERROR", said, retryable=status == 429)
    # The request was sent, and the status may be a proxy's, which does not know the outcome.
    if _is_safe(tool):
        return Lost("HTTP_ERROR", f"{said}; it is safe to try again", retryable=True)
    advice = "it may have taken effect, so check before trying again"
    return Lost("HTTP_ERROR", f"{said}; {advice}", retryable=False)


def _is_safe(tool: Tool) -> bool:
    return tool.read_only or tool.idempotent
