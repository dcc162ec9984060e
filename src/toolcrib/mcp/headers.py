"""HTTP headers of MCP: their names, and those that mirror a request so that a proxy can route on it."""

import re
from base64 import b64decode, b64encode
from binascii import Error as InvalidBase64
from collections.abc import Iterator, Mapping
from typing import Any, cast

import orjson

from toolcrib.model import Json, JsonObject

SESSION_HEADER, REVISION_HEADER = "Mcp-Session-Id", "MCP-Protocol-Version"
METHOD_HEADER, NAME_HEADER = "Mcp-Method", "Mcp-Name"

_SAFE_VALUE = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")
_ENCODED_VALUE = re.compile(r"=\?base64\?.*\?=")
_ENCODED_START, _ENCODED_END = b"=?base64?", b"?="


def header_value(text: str) -> str:
    """Encode text for an HTTP header: unchanged if it is safe, else in base64."""
    if not text or (_SAFE_VALUE.fullmatch(text) and not _ENCODED_VALUE.fullmatch(text)):
        return text
    return f"=?base64?{b64encode(text.encode()).decode()}?="


def decoded_value(value: bytes | None) -> str | None:
    """Decode a header value; None where it is missing, or is invalid base64."""
    if value is None:
        return None
    min_bytes = len(_ENCODED_START + _ENCODED_END)
    if not (value.startswith(_ENCODED_START) and value.endswith(_ENCODED_END) and len(value) >= min_bytes):
        return value.decode("latin-1")
    payload = value[len(_ENCODED_START) : -len(_ENCODED_END)]
    try:
        text = b64decode(payload, validate=True)
        # Canonical base64 only: other encodings of the same bytes are refused.
        return text.decode() if b64encode(text) == payload else None
    except (InvalidBase64, UnicodeDecodeError):
        return None


# --- Arguments that a tool's schema requires as headers, too ---

MIRROR_KEYWORD = "x-mcp-header"

Mirrors = tuple[tuple[tuple[str, ...], str], ...]
"""Path of each argument, and the header that repeats it."""

_ENCODED_KEYWORD = f'"{MIRROR_KEYWORD}"'.encode()
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_MIRRORED_TYPES = ("string", "integer", "boolean")
_DATA_KEYWORDS = ("const", "default", "enum", "examples")
_SUBSCHEMA_MAPS = ("$defs", "definitions", "dependentSchemas", "patternProperties")

_Location = tuple[tuple[str, ...] | None, Json]
"""The path of a property that is always at the same place, or None; and its schema."""


class InvalidMirroredHeader(ValueError):
    """A schema requires a header in a form the protocol does not allow; the message explains it."""


def mirrors_of(schema: JsonObject) -> Mirrors:
    """Return the headers that a schema requires; raise InvalidMirroredHeader for an invalid one."""
    if _ENCODED_KEYWORD not in orjson.dumps(schema):
        return ()
    mirrors: list[tuple[tuple[str, ...], str]] = []
    taken: set[str] = set()
    locations: list[_Location] = [((), schema)]
    while locations:
        path, value = locations.pop()
        if not isinstance(value, Mapping):
            continue
        subschema = cast("JsonObject", value)
        if MIRROR_KEYWORD in subschema:
            header = _header(path, subschema)
            if header.lower() in taken:
                raise InvalidMirroredHeader(f"two arguments require the same header {header}")
            taken.add(header.lower())
            mirrors.append((path or (), f"Mcp-Param-{header}"))
        locations += _children(path, subschema)
    return tuple(mirrors)


def _header(path: tuple[str, ...] | None, schema: JsonObject) -> str:
    if not path:
        raise InvalidMirroredHeader(
            f"{MIRROR_KEYWORD} is allowed only on a property whose location is always the same"
        )
    where, header = ".".join(path), schema[MIRROR_KEYWORD]
    if not isinstance(header, str) or not _HEADER_NAME.fullmatch(header):
        raise InvalidMirroredHeader(f"{MIRROR_KEYWORD} of {where} is not a valid header name")
    if schema.get("type") not in _MIRRORED_TYPES:
        raise InvalidMirroredHeader(
            f"{MIRROR_KEYWORD} of {where} requires the type string, integer or boolean"
        )
    return header


def _children(path: tuple[str, ...] | None, schema: JsonObject) -> Iterator[_Location]:
    for keyword, value in schema.items():
        if keyword in _DATA_KEYWORDS:
            continue
        if isinstance(value, Mapping):
            inner = cast("JsonObject", value)
            if keyword == "properties":
                yield from ((None if path is None else (*path, name), each) for name, each in inner.items())
            elif keyword in _SUBSCHEMA_MAPS:
                yield from ((None, each) for each in inner.values())
            else:
                yield None, inner
        elif isinstance(value, list):
            yield from ((None, each) for each in cast("list[Json]", value))


def mirrored_headers(mirrors: Mirrors, arguments: JsonObject) -> dict[str, str]:
    """Return the headers of one call; missing arguments are skipped."""
    headers: dict[str, str] = {}
    for path, header in mirrors:
        value = mirrored_argument(path, arguments)
        if isinstance(value, bool):
            headers[header] = "true" if value else "false"
        elif isinstance(value, str | int | float):
            headers[header] = header_value(str(value))
    return headers


def mirrored_argument(path: tuple[str, ...], arguments: JsonObject) -> Any:
    """Return the argument at a path; None where it is missing."""
    value: Any = arguments
    for name in path:
        value = cast("JsonObject", value).get(name) if isinstance(value, Mapping) else None
    return value
