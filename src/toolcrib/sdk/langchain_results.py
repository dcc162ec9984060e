"""Converts the return value of a LangChain tool to a Result: a value, content blocks, or messages."""

from collections.abc import Mapping, Sequence
from typing import Any, cast
from urllib.parse import quote

import orjson
from pydantic_core import to_jsonable_python

from toolcrib.errors import Broken, problem
from toolcrib.model import Json, JsonObject, Result
from toolcrib.schemas.bounds import crowded, too_deep

LONGEST_MESSAGE = 2_000
"""Maximum characters of a tool's text in an error message."""

_SILENT = "the tool says that it failed, but not why"
_MEDIA = {"image": "image", "image_url": "image", "audio": "audio", "file": "file"}
_TYPES = {"image": "image/png", "audio": "audio/wav", "file": "application/octet-stream"}
_INNER = ("source", "image_url", "file")
_RAW, _MIME, _URL = ("base64", "data"), ("mime_type", "media_type"), ("url", "file_data")
_STRUCTURED = "structured_content"
"""The only key in an artifact of the MCP adapters: the server's structured content."""


def is_a(value: object, name: str) -> bool:
    """Whether a value is a class of this name or its instance, without importing LangChain."""
    kind = value if isinstance(value, type) else type(value)
    return any(each.__name__ == name for each in kind.__mro__)


def answer_of(given: object) -> Result:
    """Return the return value of a call as a Result."""
    listed = cast("Sequence[Any]", given) if isinstance(given, list | tuple) else (given,)
    if listed and all(is_a(each, "ToolMessage") for each in listed):
        return _said(listed)
    if isinstance(given, list) and listed and all(_known(each) for each in listed):
        return _spoken(_blocks(listed))
    data = to_jsonable_python(given, bytes_mode="base64", inf_nan_mode="null", fallback=str)
    # A tool without an output schema may return nothing; that is a valid, empty result.
    return Result(data="" if data is None else data)


def complaint(text: str) -> str:
    """Return a tool's error text, truncated for an error message."""
    text = text.strip().encode(errors="replace").decode()
    if len(text) > LONGEST_MESSAGE:
        return f"{text[: LONGEST_MESSAGE - 1]}…"
    return text or _SILENT


def _said(messages: Sequence[Any]) -> Result:
    parts = [
        part
        for message in messages
        for part in ([message.content] if isinstance(message.content, str) else message.content)
    ]
    blocks = _blocks(parts)
    if any(message.status == "error" for message in messages):
        return Result(problem=problem("TOOL_FAILED", complaint(_text(blocks))), content=blocks)
    data = _structure(messages[0].artifact) if len(messages) == 1 else None
    return _spoken(blocks) if data is None else Result(data=data, content=blocks)


def _structure(artifact: object) -> Json:
    """Return the artifact as JSON; None if it cannot be serialized."""
    if isinstance(artifact, Mapping) and list(cast("JsonObject", artifact)) == [_STRUCTURED]:
        artifact = cast("JsonObject", artifact)[_STRUCTURED]
    try:
        return to_jsonable_python(artifact, bytes_mode="base64", inf_nan_mode="null")
    except ValueError:
        return None


def _spoken(blocks: tuple[JsonObject, ...]) -> Result:
    """Return a result of content blocks, with data derived from their text."""
    if any(block["type"] != "text" for block in blocks):
        return Result(data=list(blocks), content=blocks, structured=False)
    text = _text(blocks)
    data = _read(text) if len(blocks) == 1 else text
    # LangChain serializes other values as JSON text; once parsed to data, the text is redundant.
    return Result(data=data, content=blocks if data is text else (), structured=False)


def _read(text: str) -> Json:
    """Parse JSON text, within the bounds of results; otherwise return the text."""
    if text[:1] not in ("{", "["):
        return text
    raw = text.encode(errors="replace")
    try:
        value = None if crowded(raw) else orjson.loads(raw)
    except orjson.JSONDecodeError:
        return text
    return text if value is None or too_deep(value) else value


def _text(blocks: tuple[JsonObject, ...]) -> str:
    return "\n".join(block["text"] for block in blocks if block["type"] == "text")


# --- blocks ---


def _blocks(parts: Sequence[Any]) -> tuple[JsonObject, ...]:
    """Convert content to MCP content blocks; empty text is dropped, as model providers refuse it."""
    try:
        blocks = tuple(block for block in map(_block, parts) if block.get("text") != "")
        orjson.dumps(blocks)
    except TypeError as error:  # a lone surrogate, which no frontend can send
        raise Broken("CONTRACT_VIOLATION", "the content is text that can be written as UTF-8") from error
    return blocks


def _block(part: Json) -> JsonObject:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    return _known(part) or {"type": "text", "text": _json(part)}


def _json(value: object) -> str:
    return orjson.dumps(to_jsonable_python(value, bytes_mode="base64", fallback=str)).decode()


def _known(part: object) -> JsonObject | None:
    """Return a part as an MCP content block; None if it is none or has an unknown vendor type."""
    if not isinstance(part, Mapping):
        return None
    fields = cast("JsonObject", part)
    kind, said = fields.get("type"), fields.get("text")
    if kind == "text":
        return {"type": "text", "text": said} if isinstance(said, str) else None
    medium = _MEDIA.get(kind) if isinstance(kind, str) else None
    return None if medium is None else _medium(medium, fields)


def _medium(kind: str, fields: JsonObject) -> JsonObject | None:
    """Convert an image, audio or file block from any vendor's format."""
    held: JsonObject = {**_inside(fields), **fields}
    raw, mime, url = (_first(held, *names) for names in (_RAW, _MIME, _URL))
    head, comma, tail = url.partition(",")
    if comma and head.startswith("data:") and head.endswith(";base64"):
        raw, mime = tail, mime or head.removeprefix("data:").partition(";")[0]
    if raw:
        return _held(kind, raw, mime or _TYPES[kind], _first(held, "filename", "name"))
    if not url:
        return None
    name = kind if url.startswith("data:") else url.rstrip("/").rpartition("/")[2]
    link = {"type": "resource_link", "uri": url, "name": name or url}
    return {**link, "mimeType": mime} if mime else link


def _inside(fields: JsonObject) -> JsonObject:
    """Return the nested object in which some vendors put the fields."""
    inner: Json = next((fields[key] for key in _INNER if fields.get(key)), None)
    if isinstance(inner, str):
        return {"url": inner}
    return cast("JsonObject", inner) if isinstance(inner, Mapping) else {}


def _first(fields: JsonObject, *names: str) -> str:
    found = (fields.get(name) for name in names)
    return next((each for each in found if isinstance(each, str) and each), "")


def _held(kind: str, raw: str, mime: str, name: str) -> JsonObject:
    if kind != "file":
        return {"type": kind, "data": raw, "mimeType": mime}
    blob = {"uri": f"attachment:{quote(name or kind)}", "mimeType": mime, "blob": raw}
    return {"type": "resource", "resource": blob}
