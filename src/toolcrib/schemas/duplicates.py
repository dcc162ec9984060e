"""Finds duplicate keys in JSON objects, which parsers resolve differently."""

import json
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from typing import Any, cast

import orjson

MAX_PATH_CHARACTERS = 200
_ESCAPED_COLON = b"\\u003"


def duplicate_key(text: bytes, value: Any, free: AbstractSet[str] = frozenset()) -> str | None:
    """Return the path of a duplicate key; None if there is none.

    `value` is the parsed text. Values of the keys in `free` are not searched.
    """
    # Fast path: a duplicate key is lost by parsing, so the reserialized value has fewer colons.
    if text.count(b":") == orjson.dumps(value).count(b":") and _ESCAPED_COLON not in text:
        return None
    return _search(text, free)


def case_variant(fields: Iterable[str]) -> str | None:
    """Return a key that differs from an earlier key of the object only in case."""
    seen: set[str] = set()
    for key in fields:
        lowered = key.lower()
        if lowered in seen:
            return key[:MAX_PATH_CHARACTERS]
        seen.add(lowered)
    return None


class _Pairs(list[tuple[str, Any]]):
    """An object as written: all key-value pairs, duplicates included."""


def _search(text: bytes, free: AbstractSet[str]) -> str | None:
    repeats = False

    def keep(pairs: list[tuple[str, Any]]) -> _Pairs:
        nonlocal repeats
        repeats = repeats or len({key for key, _ in pairs}) < len(pairs)
        return _Pairs(pairs)

    # Numbers stay text: their value is irrelevant, and converting a long one is slow.
    written = json.loads(text, object_pairs_hook=keep, parse_int=str, parse_float=str)
    return _first(written, free) if repeats else None


def _first(value: Any, free: AbstractSet[str]) -> str | None:
    """Return the path of the first duplicate key inside a value.

    The path is built on return from the recursion: on the way down, every member would copy its prefix.
    """
    if isinstance(value, _Pairs):
        repeated = _repeated(value)
        if repeated is not None:
            return repeated[:MAX_PATH_CHARACTERS]
        members: Iterable[tuple[str | int, Any]] = value
    elif isinstance(value, list):
        members = enumerate(cast("list[Any]", value))
    else:
        return None
    for key, each in members:
        below = None if key in free else _first(each, free)
        if below is not None:
            return f"{str(key)[:MAX_PATH_CHARACTERS]}.{below}"[:MAX_PATH_CHARACTERS]
    return None


def _repeated(pairs: _Pairs) -> str | None:
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            return key
        seen.add(key)
    return None
