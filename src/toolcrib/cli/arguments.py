"""A tool's arguments as people type them: a JSON object, or `key=value` pairs read as its schema says."""

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import click
import orjson

from toolcrib.model import Json, JsonObject

_PAIR = re.compile(r"([^=\s{\[\"][^=\s]*)=(.*)", re.DOTALL)
_WRITTEN = "write them as one JSON object, or as key=value"
_DEEPEST = 8
_KINDS: dict[str, type | tuple[type, ...]] = {
    "null": type(None),
    "boolean": bool,
    "integer": int,
    "number": (int, float),
    "object": dict,
    "array": list,
}

Pair = tuple[str, str]


def read(given: Sequence[str]) -> JsonObject | tuple[Pair, ...]:
    """Return the object that was given, or the pairs; `-` reads the object from standard input."""
    if not given:
        return {}
    text = sys.stdin.read() if list(given) == ["-"] else given[0]
    if len(given) == 1 and (given[0] == "-" or text.lstrip().startswith(("{", "["))):
        return _object(text)
    pairs = [_PAIR.fullmatch(each) for each in given]
    for each, pair in zip(given, pairs, strict=True):
        if pair is None:
            raise click.UsageError(f"{each[:80]!r} is no argument: {_WRITTEN}")
    return tuple((pair[1], pair[2]) for pair in pairs if pair is not None)


def _object(text: str) -> JsonObject:
    try:
        value = orjson.loads(text)
    except ValueError as error:
        raise click.UsageError(f"the arguments are not JSON ({error}); {_WRITTEN}") from None
    if not isinstance(value, dict):
        raise click.UsageError(f"the arguments are not a JSON object; {_WRITTEN}")
    return cast("JsonObject", value)


def fitted(pairs: Sequence[Pair], schema: JsonObject) -> JsonObject:
    """Give every text the type its schema wants; what does not fit stays text, for the tool to refuse."""
    properties = _mapping(schema.get("properties"))
    arguments: dict[str, Any] = {}
    for name, text in pairs:
        wanted = tuple(_alternatives(_mapping(properties.get(name)), schema))
        if name not in arguments:
            arguments[name] = _first(text, wanted, schema)
        elif _takes(wanted, "array") and isinstance(arguments[name], list):
            arguments[name] += _items(text, wanted, schema)
        else:
            raise click.UsageError(f"{name} is given twice")
    return arguments


def _first(text: str, wanted: Sequence[JsonObject], root: JsonObject) -> Json:
    if not _takes(wanted, "array") or _takes(wanted, "string"):
        return _value(text, wanted)
    return _items(text, wanted, root)


def _items(text: str, wanted: Sequence[JsonObject], root: JsonObject) -> list[Json]:
    """Read a whole list, or one thing that is to be in it."""
    whole = _json(text)
    if isinstance(whole, list):
        return cast("list[Json]", whole)
    lists = (_mapping(each.get("items")) for each in wanted if "array" in _types(each))
    return [_value(text, [each for items in lists for each in _alternatives(items, root)])]


def _value(text: str, wanted: Sequence[JsonObject]) -> Json:
    for chosen in (value for each in wanted for value in _choices(each)):
        if text == (chosen if isinstance(chosen, str) else orjson.dumps(chosen).decode()):
            return chosen
    if _takes(wanted, "string"):
        return text
    kinds = {kind for each in wanted for kind in _types(each)} or set(_KINDS)
    value = _json(text)
    fits = any(isinstance(value, _KINDS[kind]) for kind in kinds if kind in _KINDS)
    # Python counts True as a number; JSON does not.
    if isinstance(value, bool) and "boolean" not in kinds:
        fits = False
    return value if fits else text


def _json(text: str) -> Json:
    try:
        return orjson.loads(text)
    except ValueError:
        return text


def _takes(wanted: Sequence[JsonObject], kind: str) -> bool:
    return any(kind in _types(each) for each in wanted)


def _types(schema: JsonObject) -> tuple[str, ...]:
    said = schema.get("type", ())
    return (said,) if isinstance(said, str) else tuple(said)


def _choices(schema: JsonObject) -> tuple[Json, ...]:
    return (*schema.get("enum", ()), *((schema["const"],) if "const" in schema else ()))


def _alternatives(schema: JsonObject, root: JsonObject, depth: int = 0) -> Iterator[JsonObject]:
    """Walk through every schema a value may satisfy: references followed, unions taken apart."""
    yield schema
    if depth >= _DEEPEST:
        return
    nested = [each for key in ("anyOf", "oneOf", "allOf") for each in schema.get(key, ())]
    if "$ref" in schema:
        nested.append(_referred(str(schema["$ref"]), root))
    for each in nested:
        yield from _alternatives(_mapping(each), root, depth + 1)


def _referred(pointer: str, root: JsonObject) -> Json:
    found: Json = root
    for part in pointer.removeprefix("#").strip("/").split("/"):
        found = _mapping(found).get(part.replace("~1", "/").replace("~0", "~"))
    return found


def _mapping(value: Json) -> JsonObject:
    return cast("JsonObject", value) if isinstance(value, Mapping) else {}
