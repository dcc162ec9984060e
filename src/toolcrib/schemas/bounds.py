"""How large a JSON value is: nesting depth and number of values, found without recursion."""

from typing import Any

DEPTH = 64
"""How deep a request or an answer may nest. What we can take in, we must be able to write out again."""
NODES = 100_000
"""How many values one may hold."""

_HOLDERS = (dict, list, tuple)


def measure(value: Any, depth: int = DEPTH, nodes: int = NODES) -> tuple[int, int]:
    """Count levels of nesting and values; stop, one over the bound, where one is passed."""
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
    """Say how a value passes the bounds, or None where it keeps within them."""
    levels, count = measure(value, depth, nodes)
    if count > nodes:
        return f"holds more than {nodes:,} values"
    if levels > depth:
        return f"nests more than {depth} levels deep"
    return None


def crowded(text: bytes) -> bool:
    """Whether JSON surely holds too many values. Found before they are made: they can take a second.

    What stands in strings does not count, so those are cut out. That needs no parser: once the escapes are
    gone, every second piece between quotes is a string. Each value has two strings at most, its key and
    itself, so that the pieces are bounded too.
    """
    plain = text.replace(rb"\\", b"").replace(rb"\"", b"")
    if plain.count(b'"') > 4 * NODES:
        return True
    outside = b"".join(plain.split(b'"')[::2])
    return max(outside.count(b","), outside.count(b"{") + outside.count(b"[")) > NODES
