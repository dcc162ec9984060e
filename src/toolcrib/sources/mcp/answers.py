"""What comes back from a server becomes a result, or an error that says what happened to the call."""

from collections.abc import Callable, Mapping
from typing import Any, cast

from toolcrib.errors import Broken, Failed, Lost, ToolcribError, Unavailable, problem
from toolcrib.model import Json, JsonObject, Result, Tool
from toolcrib.sources.mcp.envelope import RESERVED
from toolcrib.sources.mcp.faults import Cut, Fault, Garbled, Refusal, Status, TooLarge, Unsent
from toolcrib.sources.mcp.wire import parse

LONGEST_MESSAGE = 2_000
"""The most characters of a server's own words in an error."""

_BLANK = Result()
_SILENT = "the tool says that it failed, but not why"


def result_of(answer: JsonObject, tool: Tool) -> Result:
    """Read the answer to a call. The data is what the tool structured, else what its text says."""
    kind = answer.get("resultType")
    if kind is not None and kind != "complete":
        raise _unfinished(kind, tool)
    blocks = _blocks(answer, tool)
    passed = _passed(answer.get("_meta"))
    if answer.get("isError"):
        return _BLANK.but(problem=problem("TOOL_FAILED", _complaint(blocks)), content=blocks, meta=passed)
    data = answer.get("structuredContent")
    if data is not None:
        return _BLANK.but(data=data, content=blocks, meta=passed)
    return _BLANK.but(data=_data(blocks), content=blocks, meta=passed, structured=False)


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
    """Many tools write JSON as text: read it, where it is JSON and as bounded as a message must be."""
    if text[:1] not in ("{", "["):
        return text
    try:
        return parse(text.encode())
    except Garbled:
        return text


def _passed(meta: Json) -> JsonObject:
    """What a server adds for clients goes on; what it says to us, as the protocol demands, does not."""
    if not isinstance(meta, Mapping):
        return {}
    said = cast("JsonObject", meta)
    return {key: value for key, value in said.items() if not key.startswith(RESERVED)}


def _complaint(blocks: tuple[JsonObject, ...]) -> str:
    text = "\n".join(block["text"] for block in blocks if block["type"] == "text").strip()
    return shortened(text) or _SILENT


def shortened(text: str) -> str:
    """Cut a server's words to what fits into an error."""
    return text if len(text) <= LONGEST_MESSAGE else f"{text[: LONGEST_MESSAGE - 1]}…"


def _unfinished(kind: Json, tool: Tool) -> ToolcribError:
    if kind == "input_required":
        message = f"{tool.name} has to ask the user something first, which is not possible yet"
        return Failed("TOOL_FAILED", message)
    return _broken(tool, f"it is of a kind we did not ask for: {str(kind)[:40]!r}")


def _broken(tool: Tool, how: str) -> Broken:
    return Broken("CONTRACT_VIOLATION", f"the answer of {tool.name} cannot be used: {how}")


def error_of(fault: Fault, tool: Tool, redact: Callable[[str], str] = str) -> ToolcribError:
    """Say what a fault on the way means for the call it spoiled."""
    if isinstance(fault, Cut):
        return _cut(tool)
    said = f"{tool.source}: {shortened(redact(str(fault)))}"
    if isinstance(fault, Refusal):
        return Failed("TOOL_FAILED", shortened(redact(str(fault))) or _SILENT, tool_code=str(fault.code))
    if isinstance(fault, Unsent):
        return Unavailable("NETWORK_ERROR", said)
    if isinstance(fault, Status):
        return _status(fault.status, tool, said)
    if isinstance(fault, TooLarge):
        return Broken("RESULT_TOO_LARGE", said)
    return Broken("CONTRACT_VIOLATION", said)


def _cut(tool: Tool) -> Lost:
    if _is_safe(tool):
        return Lost("SOURCE_DOWN", f"{tool.source} stopped during the call; it is safe to try again")
    message = f"{tool.source} stopped during the call; it may have taken effect, so check before trying again"
    return Lost("OUTCOME_UNKNOWN", message)


def _status(status: int, tool: Tool, said: str) -> ToolcribError:
    if status < 500:
        return Unavailable("HTTP_ERROR", said, retryable=status == 429)
    # Something was sent, and who answers so may be a proxy that does not know what became of it.
    if _is_safe(tool):
        return Lost("HTTP_ERROR", f"{said}; it is safe to try again", retryable=True)
    advice = "it may have taken effect, so check before trying again"
    return Lost("HTTP_ERROR", f"{said}; {advice}", retryable=False)


def _is_safe(tool: Tool) -> bool:
    return tool.read_only or tool.idempotent
