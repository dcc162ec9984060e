"""Completeness of a result: the share of items present, and of their fields that are set."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import fields, is_dataclass
from itertools import islice
from typing import Any, cast

_LOOKED_AT = 16
"""Items sampled for the share of fields that are set."""


def count(items: object) -> int | None:
    """Return the number of items; None for a single object, a text, or anything without a length."""
    if items is None:
        return 0
    if isinstance(items, str | bytes | Mapping):
        return None if items else 0
    return len(cast("Collection[Any]", items)) if isinstance(items, Collection) else None


def fullness(items: object, total: int | None) -> float:
    """Return the completeness, from 0 to 1."""
    size = count(items)
    if size is None:
        return _filled(items)
    looked_at = [_filled(each) for each in islice(cast("Iterable[Any]", items), _LOOKED_AT)]
    filled = sum(looked_at) / max(1, len(looked_at))
    return filled * min(1.0, size / total) if total else filled


def _filled(thing: object) -> float:
    values = _values(thing)
    return sum(value is not None for value in values) / len(values) if values else 1.0


def _values(thing: object) -> list[object]:
    """Return the values of a mapping, or the field values of an object."""
    if isinstance(thing, Mapping):
        return list(cast("Mapping[Any, object]", thing).values())
    if is_dataclass(thing):
        return [getattr(thing, each.name) for each in fields(thing)]
    own: dict[str, object] = getattr(thing, "__dict__", {})
    return [value for name, value in own.items() if not name.startswith("_")]
