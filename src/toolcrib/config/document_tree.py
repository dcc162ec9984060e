"""Traversal of plain documents (nested mappings and lists) by path."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

from toolcrib.config.errors import Where
from toolcrib.model import JsonObject


def rewrite(value: Any, change: Callable[[Where, str], str], where: Where = ()) -> Any:
    """Copy a document with every string value mapped through `change`; keys are not changed."""
    if isinstance(value, str):
        return change(where, value)
    if isinstance(value, Mapping):
        entries = cast("Mapping[str, Any]", value)
        return {key: rewrite(inner, change, (*where, key)) for key, inner in entries.items()}
    if isinstance(value, Sequence):
        items = cast("Sequence[Any]", value)
        return [rewrite(inner, change, (*where, place)) for place, inner in enumerate(items)]
    return value


def texts(value: Any, where: Where = ()) -> Iterator[tuple[Where, str]]:
    """Yield every string value with its path."""
    if isinstance(value, str):
        yield where, value
    elif isinstance(value, Mapping):
        for key, inner in cast("Mapping[str, Any]", value).items():
            yield from texts(inner, (*where, key))
    elif isinstance(value, Sequence):
        for place, inner in enumerate(cast("Sequence[Any]", value)):
            yield from texts(inner, (*where, place))


def depth(value: Any, limit: int) -> int:
    """Return the nesting depth of a document, counted up to `limit`."""
    inner: Sequence[Any] = ()
    if isinstance(value, Mapping):
        inner = list(cast("Mapping[str, Any]", value).values())
    elif isinstance(value, Sequence) and not isinstance(value, str):
        inner = cast("Sequence[Any]", value)
    if not inner or limit <= 0:
        return 0
    return 1 + max(depth(each, limit - 1) for each in inner)


def present(document: Any, pattern: Sequence[str], where: Where = ()) -> Iterator[Where]:
    """Yield every path that matches a pattern of keys; `*` matches any key, and lists are traversed."""
    if not pattern:
        yield where
    elif isinstance(document, Mapping):
        entries = cast("JsonObject", document)
        for key in entries if pattern[0] == "*" else {pattern[0]} & entries.keys():
            yield from present(entries[key], pattern[1:], (*where, key))
    elif isinstance(document, Sequence) and not isinstance(document, str):
        for place, inner in enumerate(cast("Sequence[Any]", document)):
            yield from present(inner, pattern, (*where, place))


def holds(document: Any, where: Where) -> bool:
    """Whether a path exists in a document."""
    inner = document
    for part in where:
        if isinstance(inner, Mapping) and part in inner:
            inner = cast("Mapping[Any, Any]", inner)[part]
        elif (
            isinstance(part, int) and isinstance(inner, Sequence) and part < len(cast("Sequence[Any]", inner))
        ):
            inner = cast("Sequence[Any]", inner)[part]
        else:
            return False
    return True


def at(document: Any, keys: Sequence[str]) -> Any:
    """Return the value at a path of nested mappings; None if there is none."""
    inner = document
    for key in keys:
        inner = cast("JsonObject", inner).get(key) if isinstance(inner, Mapping) else None
    return inner
