"""Arguments that an MCP server requires as HTTP headers too, so that a proxy can route on them."""

import re
from base64 import b64encode
from collections.abc import Iterator, Mapping
from typing import Any, cast

import orjson

from toolcrib.model import Json, JsonObject

KEYWORD = "x-mcp-header"

Mirrors = tuple[tuple[tuple[str, ...], str], ...]
"""Path of each argument, and the header that repeats it."""

_QUOTED_KEYWORD = f'"{KEYWORD}"'.encode()
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_SAFE_VALUE = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")
_LOOKS_ENCODED = re.compile(r"=\?base64\?.*\?=")
_SCALAR_TYPES = ("string", "integer", "boolean")
_VALUE_KEYWORDS = ("const", "default", "enum", "examples")
_BY_NAME_KEYWORDS = ("$defs", "definitions", "dependentSchemas", "patternProperties")

_PathAndSchema = tuple[tuple[str, ...] | None, Json]


class InvalidMirroredHeader(ValueError):
    """A schema requires a header in a form the protocol does not allow; the message explains it."""


def mirrors_of(schema: JsonObject) -> Mirrors:
    """Return the headers that a schema requires; raise InvalidMirroredHeader for an invalid one."""
    if _QUOTED_KEYWORD not in orjson.dumps(schema):
        return ()
    found: list[tuple[tuple[str, ...], str]] = []
    taken: set[str] = set()
    places: list[_PathAndSchema] = [((), schema)]
    while places:
        path, place = places.pop()
        if not isinstance(place, Mapping):
            continue
        here = cast("JsonObject", place)
        if KEYWORD in here:
            header = _header(path, here)
            if header.lower() in taken:
                raise InvalidMirroredHeader(f"two arguments want the header {header}")
            taken.add(header.lower())
            found.append((path or (), f"Mcp-Param-{header}"))
        places += _nested_schemas(path, here)
    return tuple(found)


def _header(path: tuple[str, ...] | None, schema: JsonObject) -> str:
    if not path:
        raise InvalidMirroredHeader(
            f"{KEYWORD} may only stand on a property that is always at the same place"
        )
    where, header = ".".join(path), schema[KEYWORD]
    if not isinstance(header, str) or not _TOKEN.fullmatch(header):
        raise InvalidMirroredHeader(f"{KEYWORD} of {where} is no name a header can have")
    if schema.get("type") not in _SCALAR_TYPES:
        raise InvalidMirroredHeader(f"{KEYWORD} of {where} needs the type string, integer or boolean")
    return header


def _nested_schemas(path: tuple[str, ...] | None, schema: JsonObject) -> Iterator[_PathAndSchema]:
    for keyword, value in schema.items():
        if keyword in _VALUE_KEYWORDS:
            continue
        if isinstance(value, Mapping):
            inner = cast("JsonObject", value)
            if keyword == "properties":
                yield from ((None if path is None else (*path, name), each) for name, each in inner.items())
            elif keyword in _BY_NAME_KEYWORDS:
                yield from ((None, each) for each in inner.values())
            else:
                yield None, inner
        elif isinstance(value, list):
            yield from ((None, each) for each in cast("list[Json]", value))


def mirrored_headers(mirrors: Mirrors, arguments: JsonObject) -> dict[str, str]:
    """Return the headers of one call; missing arguments are skipped."""
    headers: dict[str, str] = {}
    for path, header in mirrors:
        value: Any = arguments
        for name in path:
            value = cast("JsonObject", value).get(name) if isinstance(value, Mapping) else None
        if isinstance(value, bool):
            headers[header] = "true" if value else "false"
        elif isinstance(value, str | int | float):
            headers[header] = header_value(str(value))
    return headers


def header_value(text: str) -> str:
    """Encode text for an HTTP header: unchanged if it is safe, else in base64."""
    if not text or (_SAFE_VALUE.fullmatch(text) and not _LOOKS_ENCODED.fullmatch(text)):
        return text
    return f"=?base64?{b64encode(text.encode()).decode()}?="
