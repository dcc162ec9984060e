"""What a model is told of a result, cut to what its provider takes; and what a model says it wants, read."""

from typing import Any, cast

import orjson

from toolcrib.errors import Refused, problem, spell
from toolcrib.model import Json, JsonObject, Problem, Result, Tool

SHORT = 800
"""So many characters a message is cut to, where not even it fits."""
CONTROL = ("will_hangup", "transferred", "transfer_mode", "extension", "destination")
"""What telephones look for in an answer, whatever else is left out of it."""
_CUT = "…"


def described(tool: Tool, most: int | None = None) -> str:
    """The description a model reads; tools of MCP servers say which server they are of."""
    said = f"[MCP:{tool.source}] {tool.description}" if tool.family == "mcp" else tool.description
    return said if most is None or len(said) <= most else said[: most - len(_CUT)] + _CUT


def arguments_of(given: Json) -> tuple[JsonObject, Problem | None]:
    """Read arguments as a model gives them: an object, a JSON text of one, or nothing at all."""
    if given is None or given == "":
        return {}, None
    if isinstance(given, str):
        try:
            given = orjson.loads(given)
        except orjson.JSONDecodeError as error:
            where = f"line {error.lineno} column {error.colno}"
            return {}, _unread(f"the arguments are not JSON: {error.msg} at {where}")
    if not isinstance(given, dict):
        return {}, _unread("the arguments must be an object, or a JSON text of one")
    return cast("JsonObject", given), None


def _unread(message: str) -> Problem:
    return problem("INVALID_ARGUMENTS", message, path="arguments")


def told(result: Result, *, data: bool = True) -> JsonObject:
    """Say how a call ended: status, the sentence to speak, data or error, and what phones look for."""
    fault = result.problem
    said: dict[str, Any] = {
        "status": "success" if fault is None else "error",
        "message": result.message or (fault.message if fault is not None else ""),
    }
    if fault is not None and data:
        said["error"] = spell(fault)
    elif data and result.ask is None:
        blocks = [_without_bytes(each) for each in result.content]
        said["data"] = result.data if result.data is not None or not blocks else blocks
    if isinstance(result.data, dict):
        fields = cast("JsonObject", result.data)
        said |= {name: fields[name] for name in CONTROL if name in fields}
    if result.voice.suppress:
        said["suppress_voice_response"] = True
    return said


def _without_bytes(block: JsonObject) -> JsonObject:
    """What is no text is named and not shown: a model would read its bytes letter by letter."""
    if block.get("type") in ("image", "audio"):
        return {key: value for key, value in block.items() if key != "data"}
    resource = block.get("resource")
    if not isinstance(resource, dict) or "blob" not in resource:
        return block
    kept = {key: value for key, value in cast("JsonObject", resource).items() if key != "blob"}
    return {**block, "resource": kept}


def capped(said: JsonObject, most: int | None) -> JsonObject:
    """Cut what is told to so many bytes of JSON: first the data goes, then the message is shortened."""
    if most is None or len(orjson.dumps(said)) <= most:
        return said
    kept = {name: value for name, value in said.items() if name not in ("data", "error")}
    if len(orjson.dumps(kept)) <= most:
        return kept
    return _shortest(kept, most)


def _shortest(said: JsonObject, most: int) -> JsonObject:
    """Status and message alone, the message as long as it fits and 800 characters at most."""
    bare = {"status": said["status"], "message": ""}
    room = most - len(orjson.dumps(bare))
    text = cast("str", said["message"])[:SHORT]
    while text and len(orjson.dumps(text)) - 2 > room:
        text = text[: len(text) * 9 // 10]
    return {**bare, "message": text}


def cut(text: str, most: int | None) -> str:
    """Cut a text to so many bytes of UTF-8, never within a character; one that was cut says so."""
    raw = text.encode("utf-8", "replace")
    if most is None or len(raw) <= most:
        return text
    return raw[: max(most - len(_CUT.encode()), 0)].decode("utf-8", "ignore") + _CUT


def as_text(said: JsonObject) -> str:
    """Spell what is told as one text."""
    return orjson.dumps(said).decode()


def an_object(given: Json, path: str) -> JsonObject:
    """Read an object of a provider's message, or say that there is none at this path."""
    if not isinstance(given, dict):
        raise _no_message(path, "an object")
    return cast("JsonObject", given)


def objects(given: Json, path: str) -> list[tuple[str, JsonObject]]:
    """Read a list of objects, each with the path it has."""
    if not isinstance(given, list):
        raise _no_message(path, "a list")
    return [
        (f"{path}[{place}]", an_object(each, f"{path}[{place}]"))
        for place, each in enumerate(cast("list[Json]", given))
    ]


def a_text(holder: JsonObject, key: str, path: str, *, needed: bool = True) -> str:
    """Read a text; one that need not be there is empty where it is not."""
    found = holder.get(key)
    if not needed and found is None:
        return ""
    if not isinstance(found, str) or (needed and not found):
        raise _no_message(f"{path}.{key}", "a text")
    return found


def _no_message(path: str, what: str) -> Refused:
    return Refused("INVALID_REQUEST", f"{path} must be {what}", path=path)
