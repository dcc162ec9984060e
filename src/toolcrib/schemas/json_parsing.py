"""Parses JSON strictly: position of errors, no duplicate keys."""

import json
import re
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from contextlib import suppress
from typing import Any, cast

import orjson

from toolcrib.schemas.subschemas import MAX_JSON_DEPTH, MAX_JSON_VALUES, has_too_many_values, too_deep

# --- Finds duplicate keys in JSON objects, which parsers resolve differently ---

MAX_PATH_CHARACTERS = 200
_ESCAPED_COLON = b"\\u003"


def duplicate_key(text: bytes, value: Any, unchecked_keys: AbstractSet[str] = frozenset()) -> str | None:
    """Return the path of a duplicate key; None if there is none.

    `value` is the parsed text. Values of the keys in `free` are not searched.
    """
    # Fast path: a duplicate key is lost by parsing, so the reserialized value has fewer colons.
    if text.count(b":") == orjson.dumps(value).count(b":") and _ESCAPED_COLON not in text:
        return None
    return _find_duplicate(text, unchecked_keys)


def case_variant(fields: Iterable[str]) -> str | None:
    """Return a key that differs from an earlier key of the object only in case."""
    seen_keys: set[str] = set()
    for key in fields:
        lowered = key.lower()
        if lowered in seen_keys:
            return key[:MAX_PATH_CHARACTERS]
        seen_keys.add(lowered)
    return None


class _ObjectPairs(list[tuple[str, Any]]):
    """An object as written: all key-value pairs, duplicates included."""


def _find_duplicate(text: bytes, unchecked_keys: AbstractSet[str]) -> str | None:
    repeats = False

    def keep(pairs: list[tuple[str, Any]]) -> _ObjectPairs:
        nonlocal repeats
        repeats = repeats or len({key for key, _ in pairs}) < len(pairs)
        return _ObjectPairs(pairs)

    # Numbers stay text: their value is irrelevant, and converting a long one is slow.
    written = json.loads(text, object_pairs_hook=keep, parse_int=str, parse_float=str)
    return _first_duplicate(written, unchecked_keys) if repeats else None


def _first_duplicate(value: Any, unchecked_keys: AbstractSet[str]) -> str | None:
    """Return the path of the first duplicate key inside a value.

    The path is built on return from the recursion: on the way down, every member would copy its prefix.
    """
    if isinstance(value, _ObjectPairs):
        repeated = _duplicate_in(value)
        if repeated is not None:
            return repeated[:MAX_PATH_CHARACTERS]
        members: Iterable[tuple[str | int, Any]] = value
    elif isinstance(value, list):
        members = enumerate(cast("list[Any]", value))
    else:
        return None
    for key, member in members:
        inner_path = None if key in unchecked_keys else _first_duplicate(member, unchecked_keys)
        if inner_path is not None:
            return f"{str(key)[:MAX_PATH_CHARACTERS]}.{inner_path}"[:MAX_PATH_CHARACTERS]
    return None


def _duplicate_in(pairs: _ObjectPairs) -> str | None:
    seen_keys: set[str] = set()
    for key, _ in pairs:
        if key in seen_keys:
            return key
        seen_keys.add(key)
    return None


# --- Parses untrusted JSON: depth and size are bounded, lone surrogates are replaced ---

_MAX_REPAIRED_BYTES = 256 << 10
"""Bytes up to which lone surrogates are replaced. For escapes alone, a few million bytes take a second."""
_ESCAPE = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<half>\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\.",
    re.DOTALL,
)


class InvalidJson(ValueError):
    """Invalid JSON or an exceeded bound; the message continues a sentence that starts with the subject."""


def parse(data: bytes) -> Any:
    """Return the value of a message, within the bounds that recursion needs; else raise InvalidJson."""
    # Counting bytes gives cheap upper bounds, which most messages meet; then nothing else is measured.
    openings = data.count(b"{") + data.count(b"[")
    bounded = openings <= MAX_JSON_DEPTH and openings + data.count(b",") <= MAX_JSON_VALUES
    if not bounded and has_too_many_values(data):
        raise InvalidJson(f"has more than {MAX_JSON_VALUES:,} values")
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError as fault:
        value = _parsed_with_repair(data, fault)
    found = None if bounded else too_deep(value)
    if found is not None:
        raise InvalidJson(found)
    return value


def _parsed_with_repair(data: bytes, fault: orjson.JSONDecodeError) -> Any:
    """Parse a message with lone surrogates replaced: many servers truncate text inside a surrogate pair."""
    if "surrogate" in fault.msg and len(data) <= _MAX_REPAIRED_BYTES:
        with suppress(orjson.JSONDecodeError):
            return orjson.loads(_ESCAPE.sub(lambda found: rb"\ufffd" if found["half"] else found[0], data))
    raise InvalidJson(f"is not JSON: {fault.msg.partition(':')[0] or 'malformed'}") from None
