"""Renders results for models, truncated to a provider's limit, and parses the calls of models."""

from typing import Any, TypedDict, Unpack, cast

import orjson

from toolcrib.errors import Refused, problem, problem_json
from toolcrib.interfaces import ProviderCall, ProviderResult
from toolcrib.model import Json, JsonObject, Problem, Tool

MAX_SHORT_MESSAGE_CHARS = 800
"""Characters of a message that is truncated because even status and message exceed the limit."""
TELEPHONY_FIELDS = ("will_hangup", "transferred", "transfer_mode", "extension", "destination")
"""Telephony fields that are copied from the data, also where the data itself is omitted."""
SUPPRESS_VOICE_FIELD = "suppress_voice_response"
"""Field that suppresses speech about a result."""
HINTS_FIELD = "hints"
"""Field with the hints for the model."""
MAX_TEXT_CHARS = 16_384
"""Characters of a call's id or name."""
_ELLIPSIS = "…"
_MIN_DATA_BYTES = 200
"""Minimum bytes left for data; below that it is omitted."""


class _TextOptions(TypedDict, total=False):
    """Options of `text_field`."""

    required: bool
    max_chars: int


def model_description(tool: Tool, max_chars: int | None = None) -> str:
    """Return the description for a model, with the server's id for tools of MCP servers."""
    text = f"[MCP:{tool.source}] {tool.description}" if tool.family == "mcp" else tool.description
    if max_chars is None or len(text) <= max_chars:
        return text
    return text[: max_chars - len(_ELLIPSIS)] + _ELLIPSIS


def parse_arguments(given: Json) -> tuple[JsonObject, Problem | None]:
    """Parse the arguments of a call: an object, JSON text of one, or nothing."""
    if given is None or given == "":
        return {}, None
    if isinstance(given, str):
        try:
            given = orjson.loads(given)
        except orjson.JSONDecodeError as error:
            where = f"line {error.lineno} column {error.colno}"
            return {}, _invalid_arguments(f"the arguments are not JSON: {error.msg} at {where}")
    if not isinstance(given, dict):
        return {}, _invalid_arguments("the arguments must be an object, or a JSON string of one")
    return cast("JsonObject", given), None


def _invalid_arguments(message: str) -> Problem:
    return problem("INVALID_ARGUMENTS", message, path="arguments")


def result_payload(outcome: ProviderResult, *, data: bool = True) -> JsonObject:
    """Return the payload of a result: status, message, data or error, telephony fields, hints."""
    result = outcome.result
    fault = result.problem
    payload: dict[str, Any] = {
        "status": "success" if fault is None else "error",
        "message": result.message or (fault.message if fault is not None else ""),
    }
    if fault is not None and data:
        payload["error"] = problem_json(fault)
    elif data and result.ask is None:
        blocks = [_without_bytes(each) for each in result.content]
        payload["data"] = result.data if result.data is not None or not blocks else blocks
    if isinstance(result.data, dict):
        fields = cast("JsonObject", result.data)
        payload |= {name: fields[name] for name in TELEPHONY_FIELDS if name in fields}
    if result.voice.suppress:
        payload[SUPPRESS_VOICE_FIELD] = True
    if outcome.hints:
        payload[HINTS_FIELD] = outcome.hints
    return payload


def _without_bytes(block: JsonObject) -> JsonObject:
    """Strip binary data from a block: a model would read it as text."""
    if block.get("type") in ("image", "audio"):
        return {key: value for key, value in block.items() if key != "data"}
    resource = block.get("resource")
    if not isinstance(resource, dict) or "blob" not in resource:
        return block
    stripped = {key: value for key, value in cast("JsonObject", resource).items() if key != "blob"}
    return {**block, "resource": stripped}


def truncate_payload(payload: JsonObject, max_bytes: int | None) -> JsonObject:
    """Truncate a payload to a number of JSON bytes: hints are left out, then data and message are cut."""
    if max_bytes is None or len(orjson.dumps(payload)) <= max_bytes:
        return payload
    if HINTS_FIELD in payload:
        rest = {name: value for name, value in payload.items() if name != HINTS_FIELD}
        return truncate_payload(rest, max_bytes)
    rest = {name: value for name, value in payload.items() if name not in ("data", "error")}
    free_bytes = max_bytes - len(orjson.dumps({**rest, "data": "", "truncated": True}))
    if "data" in payload and free_bytes >= _MIN_DATA_BYTES:
        text = _json_prefix(_readable_text(payload["data"]), free_bytes - len(_ELLIPSIS.encode()))
        return {**rest, "data": f"{text}{_ELLIPSIS}", "truncated": True}
    return rest if len(orjson.dumps(rest)) <= max_bytes else _status_and_message(rest, max_bytes)


def _readable_text(data: Json) -> str:
    """Return data as text that stays readable when truncated; text blocks are joined without quoting."""
    if isinstance(data, str):
        return data
    blocks = cast("list[Json]", data) if isinstance(data, list) else []
    texts = [cast("JsonObject", each).get("text") for each in blocks if isinstance(each, dict)]
    if texts and len(texts) == len(blocks) and all(isinstance(each, str) for each in texts):
        return "\n".join(cast("list[str]", texts))
    return orjson.dumps(data).decode()


def _status_and_message(payload: JsonObject, max_bytes: int) -> JsonObject:
    """Return status and message only, the message limited to what fits and to 800 characters."""
    empty = {"status": payload["status"], "message": ""}
    text = cast("str", payload["message"])[:MAX_SHORT_MESSAGE_CHARS]
    return {**empty, "message": _json_prefix(text, max_bytes - len(orjson.dumps(empty)))}


def _json_prefix(text: str, free_bytes: int) -> str:
    """Return the longest prefix that fits the given bytes as a JSON string."""
    text = text[: max(free_bytes, 0)]
    while text and (size := len(orjson.dumps(text)) - len('""')) > free_bytes:
        text = text[: min(len(text) * free_bytes // size, len(text) - 1)]
    return text


def payload_json(payload: JsonObject) -> str:
    """Return a payload as JSON text."""
    return orjson.dumps(payload).decode()


def parse_call(
    call: JsonObject,
    path: str,
    *,
    id: str = "id",
    name: str = "name",
    arguments: str,
    **more: Unpack[_TextOptions],
) -> ProviderCall:
    """Parse a call with the given field names; `more` has the options of its id."""
    given, problem = parse_arguments(call.get(arguments))
    known = text_field(call, id, path, **more)
    max_chars = more.get("max_chars", MAX_TEXT_CHARS)
    return ProviderCall(
        id=known, name=text_field(call, name, path, max_chars=max_chars), arguments=given, problem=problem
    )


def object_at(given: Json, path: str) -> JsonObject:
    """Return an object of a provider's message; refuse any other type, with its path."""
    if not isinstance(given, dict):
        raise _wrong_type(path, "an object")
    return cast("JsonObject", given)


def objects_at(given: Json, path: str) -> list[tuple[str, JsonObject]]:
    """Return a list of objects, each with its path."""
    if not isinstance(given, list):
        raise _wrong_type(path, "an array")
    return [
        (f"{path}[{index}]", object_at(each, f"{path}[{index}]"))
        for index, each in enumerate(cast("list[Json]", given))
    ]


def wire_field(holder: JsonObject, wire: str, python: str) -> Json:
    """Return a field by its wire name, else by the name in the Python SDK."""
    return holder.get(wire, holder.get(python))


def text_field(
    holder: JsonObject, key: str, path: str, *, required: bool = True, max_chars: int = MAX_TEXT_CHARS
) -> str:
    """Return a text field; an optional one that is missing is empty.

    It is echoed in the reply, so it must be encodable and of limited length.
    """
    found = holder.get(key)
    if not required and found is None:
        return ""
    if not isinstance(found, str) or (required and not found) or not is_encodable(found):
        raise _wrong_type(f"{path}.{key}", "a string")
    if len(found) > max_chars:
        raise _wrong_type(f"{path}.{key}", f"a string of at most {max_chars:,} characters")
    return found


def is_encodable(text: str) -> bool:
    """Return whether text can be encoded: a Python string may contain lone surrogates."""
    return text.isascii() or not any("\ud800" <= each <= "\udfff" for each in text)


def _wrong_type(path: str, what: str) -> Refused:
    return Refused("INVALID_REQUEST", f"{path} must be {what}", path=path)
