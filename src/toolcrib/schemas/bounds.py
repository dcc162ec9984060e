"""Bounds of a JSON value, nesting depth and number of values, measured without recursion."""

from typing import Any

DEPTH = 64
"""Nesting levels of a request or a response. It must stay within what the serializer can write."""
NODES = 100_000
"""Values in one JSON document."""

_HOLDERS = (dict, list, tuple)


def measure(value: Any, depth: int = DEPTH, nodes: int = NODES) -> tuple[int, int]:
    """Count nesting levels and values; stop at the first bound exceeded, one above it."""
    level: list[Any] = [value] if isinstance(value, _HOLDERS) else []
    levels, count = 0, 1
    while level and levels <= depth:
        levels += 1
        deeper: list[Any] = []
        for holder in level:
            count += len(holder)
            if count > nodes:
                return levels, count
            members: Any = holder.values() if isinstance(holder, dict) else holder  # pyright: ignore[reportUnknownVariableType]
            for each in members:
                if isinstance(each, _HOLDERS):
                    deeper.append(each)  # noqa: PERF401 - a comprehension doubles the time of a small body
        level = deeper
    return levels, count


def too_deep(value: Any, depth: int = DEPTH, nodes: int = NODES) -> str | None:
    """Describe which bound a value exceeds; None if it is within both."""
    levels, count = measure(value, depth, nodes)
    if count > nodes:
        return f"holds more than {nodes:,} values"
    if levels > depth:
        return f"nests more than {depth} levels deep"
    return None


def crowded(text: bytes) -> bool:
    """Return whether JSON text certainly has too many values, before a parse that may take a second.

    Punctuation inside strings does not count, so strings are removed. That needs no parser: without escapes,
    every second piece between quotes is a string. Each value has at most two strings, its key and its value,
    so the number of pieces is bounded too.
    """
    plain = text.replace(rb"\\", b"").replace(rb"\"", b"")
    if plain.count(b'"') > 4 * NODES:
        return True
    outside = b"".join(plain.split(b'"')[::2])
    return max(outside.count(b","), outside.count(b"{") + outside.count(b"[")) > NODES
