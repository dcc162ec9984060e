"""Validates each resource, template and prompt that a server lists: accepted, repaired or left out."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

import orjson

from toolcrib.errors import Refused
from toolcrib.model import Json, JsonObject
from toolcrib.names import canonical, hidden
from toolcrib.sources.mcp.sanitize import visible
from toolcrib.sources.mcp.tool_validation import LARGEST_DEFINITION, LONGEST_TEXT

LONGEST_URI = 2_048
"""Maximum characters of a URI or a URI template."""
LONGEST_NAME = 256
"""Maximum bytes of a resource's name; a longer one is cut."""

_ROLES = frozenset({"user", "assistant"})


class _Unfit(Exception):
    """An entry that cannot be offered; the message is the reason."""


def resources(raw: Sequence[Json]) -> tuple[list[JsonObject], list[str]]:
    """Return the valid resources, and the reasons why the others are not."""
    return _judged(raw, "uri", _address)


def templates(raw: Sequence[Json]) -> tuple[list[JsonObject], list[str]]:
    """Return the valid templates, and the reasons why the others are not."""
    return _judged(raw, "uriTemplate", _address)


def prompts(source: str, raw: Sequence[Json]) -> tuple[list[JsonObject], list[str]]:
    """Return the valid prompts of a source, and the reasons why the others are not."""

    def name(given: str) -> None:
        try:
            canonical(source, given)
        except Refused as error:
            raise _Unfit(str(error)) from None

    return _judged(raw, "name", name)


def _judged(
    raw: Sequence[Json], key: str, check: Callable[[str], None]
) -> tuple[list[JsonObject], list[str]]:
    fit: dict[str, JsonObject] = {}
    unfit: list[str] = []
    for place, each in enumerate(raw, 1):
        try:
            given = _given(each, key)
            check(given)
        except _Unfit as error:
            unfit.append(f"number {place}: {error}")
            continue
        if given in fit:
            unfit.append(f"number {place}: {given[:100]!r} is listed before")
        else:
            fit[given] = _mended(cast("JsonObject", each), key, given)
    return list(fit.values()), unfit


def _given(raw: Json, key: str) -> str:
    if not isinstance(raw, dict):
        raise _Unfit("it is not an object")
    given = cast("JsonObject", raw).get(key)
    if not isinstance(given, str) or not given:
        raise _Unfit(f"it has no {key}")
    size = len(orjson.dumps(raw))
    if size > LARGEST_DEFINITION:
        raise _Unfit(f"its definition takes {size:,} bytes, at most {LARGEST_DEFINITION:,} are allowed")
    return given


def _address(uri: str) -> None:
    if len(uri) > LONGEST_URI:
        raise _Unfit(f"its address has {len(uri):,} characters, at most {LONGEST_URI:,} are allowed")
    character = hidden(uri)
    if character is not None or uri != uri.strip():
        raise _Unfit(
            f"its address holds a character that cannot be seen ({character or 'a space at its edge'})"
        )


def _mended(raw: JsonObject, key: str, given: str) -> JsonObject:
    """Drop members that violate the protocol: one invalid member can make a client reject the whole list."""
    kept = _fit(raw, _FIELDS)
    name = raw.get("name")
    if key != "name":
        kept["name"] = (_text(name, LONGEST_NAME) if isinstance(name, str) else "") or given
    if "arguments" in kept:
        kept["arguments"] = [_fit(each, _OF_ARGUMENTS) for each in kept["arguments"]]
    return kept


def _fit(raw: JsonObject, fields: "_Fields") -> dict[str, Any]:
    kept = {key: value for key, value in raw.items() if key not in fields or fields[key](value)}
    return {**kept, **{key: _text(kept[key]) for key in ("title", "description") if key in kept}}


def _text(text: str, longest: int = LONGEST_TEXT) -> str:
    encoded = visible(text).encode()
    return encoded[:longest].decode(errors="ignore")


def _is_text(value: Json) -> bool:
    return type(value) is str


def _is_flag(value: Json) -> bool:
    return type(value) is bool


def _is_object(value: Json) -> bool:
    return type(value) is dict


def _is_size(value: Json) -> bool:
    return type(value) is int and value >= 0


def _is_annotations(value: Json) -> bool:
    if type(value) is not dict:
        return False
    said = cast("JsonObject", value)
    priority, audience = said.get("priority", 0), said.get("audience", [])
    if type(priority) not in (int, float) or not 0 <= priority <= 1 or type(audience) is not list:
        return False
    known = all(type(each) is str and each in _ROLES for each in cast("list[Any]", audience))
    return known and _is_text(said.get("lastModified", ""))


def _is_icons(value: Json) -> bool:
    return all(map(_is_icon, _entries(value)))


def _is_icon(icon: JsonObject) -> bool:
    if not _is_text(icon.get("src")) or not _is_text(icon.get("mimeType", "")):
        return False
    sizes = icon.get("sizes", [])
    known = type(sizes) is list and all(map(_is_text, cast("list[Any]", sizes)))
    return known and icon.get("theme", "light") in ("light", "dark")


def _is_arguments(value: Json) -> bool:
    return type(value) is list and all(type(each.get("name")) is str for each in _entries(value))


def _entries(value: Json) -> Iterable[JsonObject]:
    """Return the objects of a list; an empty object replaces anything else, and so fails the check."""
    entries = cast("list[Any]", value) if type(value) is list else [None]
    return [cast("JsonObject", each) if type(each) is dict else {} for each in entries]


_Fields = Mapping[str, Callable[[Json], bool]]
_OF_ARGUMENTS: _Fields = {"title": _is_text, "description": _is_text, "required": _is_flag}
_FIELDS: _Fields = {
    "title": _is_text,
    "description": _is_text,
    "mimeType": _is_text,
    "size": _is_size,
    "annotations": _is_annotations,
    "icons": _is_icons,
    "arguments": _is_arguments,
    "_meta": _is_object,
}
"""Checks that a member must pass to be forwarded; members without a check always are."""
