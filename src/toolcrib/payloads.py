"""What a model is told of a result, cut to what its provider takes; and what a model says it wants, read."""

from typing import Any, TypedDict, Unpack, cast

import orjson

from toolcrib.errors import Refused, problem, spell
from toolcrib.interfaces import ProviderCall
from toolcrib.model import Json, JsonObject, Problem, Result, Tool

SHORT = 800
"""So many characters a message is cut to, where not even it fits."""
CONTROL = ("will_hangup", "transferred", "transfer_mode", "extension", "destination")
"""What telephones look for in an answer, whatever else is left out of it."""
SILENCE = "suppress_voice_response"
"""What says that nobody is to speak of an answer."""
LONGEST = 16_384
"""So many characters the id or the name of a call may have."""
_CUT = "…"
_WORTH_SAYING = 200
"""With fewer bytes left for data, none of it is told."""


class _Text(TypedDict, total=False):
    """What is asked of a text."""

    needed: bool
    most: int


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
        said[SILENCE] = True
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
    """Cut what is told to so many bytes of JSON: first the data is cut short, then the message."""
    if most is None or len(orjson.dumps(said)) <= most:
        return said
    kept = {name: value for name, value in said.items() if name not in ("data", "error")}
    room = most - len(orjson.dumps({**kept, "data": "", "truncated": True}))
    if "data" in said and room >= _WORTH_SAYING:
        text = _fitting(_as_read(said["data"]), room - len(_CUT.encode()))
        return {**kept, "data": f"{text}{_CUT}", "truncated": True}
    return kept if len(orjson.dumps(kept)) <= most else _shortest(kept, most)


def _as_read(data: Json) -> str:
    """Spell data as text of which a beginning is worth something; texts of a server are not quoted again."""
    if isinstance(data, str):
        return data
    blocks = cast("list[Json]", data) if isinstance(data, list) else []
    texts = [cast("JsonObject", each).get("text") for each in blocks if isinstance(each, dict)]
    if texts and len(texts) == len(blocks) and all(isinstance(each, str) for each in texts):
        return "\n".join(cast("list[str]", texts))
    return orjson.dumps(data).decode()


def _shortest(said: JsonObject, most: int) -> JsonObject:
    """Status and message alone, the message as long as it fits and 800 characters at most."""
    bare = {"status": said["status"], "message": ""}
    text = cast("str", said["message"])[:SHORT]
    return {**bare, "message": _fitting(text, most - len(orjson.dumps(bare)))}


def _fitting(text: str, room: int) -> str:
    """Return the beginning of a text that has so many bytes where it stands in JSON."""
    text = text[: max(room, 0)]
    while text and (size := len(orjson.dumps(text)) - len('""')) > room:
        text = text[: min(len(text) * room // size, len(text) - 1)]
    return text


def as_text(said: JsonObject) -> str:
    """Spell what is told as one text."""
    return orjson.dumps(said).decode()


def read_call(
    call: JsonObject, path: str, *, id: str = "id", name: str = "name", arguments: str, **more: Unpack[_Text]
) -> ProviderCall:
    """Read a call, whose fields are named as given here; `more` says of its id whether it is needed."""
    given, problem = arguments_of(call.get(arguments))
    known = a_text(call, id, path, **more)
    most = more.get("most", LONGEST)
    return ProviderCall(id=known, name=a_text(call, name, path, most=most), arguments=given, problem=problem)


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


def either(holder: JsonObject, wire: str, python: str) -> Json:
    """Look for a field as it is on the wire, and as an SDK for Python calls it."""
    return holder.get(wire, holder.get(python))


def a_text(holder: JsonObject, key: str, path: str, *, needed: bool = True, most: int = LONGEST) -> str:
    """Read a text; one that need not be there is empty where it is not.

    It is said again in the reply, so it must be one that can be written, and no endless one.
    """
    found = holder.get(key)
    if not needed and found is None:
        return ""
    if not isinstance(found, str) or (needed and not found) or not is_written(found):
        raise _no_message(f"{path}.{key}", "a text")
    if len(found) > most:
        raise _no_message(f"{path}.{key}", f"a text of at most {most:,} characters")
    return found


def is_written(text: str) -> bool:
    """Whether a text can be written down: one made in Python may hold half a character."""
    return text.isascii() or not any("\ud800" <= each <= "\udfff" for each in text)


def _no_message(path: str, what: str) -> Refused:
    return Refused("INVALID_REQUEST", f"{path} must be {what}", path=path)
