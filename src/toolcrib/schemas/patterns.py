"""Regular expressions of a schema: linear time and bounded memory, or not executed at all."""

from collections.abc import Iterable
from copy import deepcopy
from typing import Any

import jsonschema_rs

from toolcrib.schemas.errors import InvalidSchema
from toolcrib.schemas.subschemas import Schema, Subschema, survey

MOST_PATTERNS = 256
PATTERN_BYTES = 4 * 1024 * 1024
"""Bytes that all compiled patterns of a schema may take together: some tenths of a second at worst."""


def pattern_options(places: Iterable[Subschema]) -> jsonschema_rs.RegexOptions:
    """Select the linear-time engine, and divide the memory among the patterns."""
    distinct = {pattern for place in places for pattern in (*_own(place), *_naming(place))}
    if len(distinct) > MOST_PATTERNS:
        raise InvalidSchema("#", f"it holds more than {MOST_PATTERNS} different patterns")
    return jsonschema_rs.RegexOptions(size_limit=PATTERN_BYTES // max(1, len(distinct)))


def without_unsafe(schema: Schema, options: jsonschema_rs.RegexOptions) -> tuple[Schema, tuple[str, ...]]:
    """Copy a schema without patterns the engine rejects, such as look-around; return their paths too."""
    copy = deepcopy(schema)
    dropped: list[str] = []
    for place in survey(copy).values():
        # Members with an unsupported pattern would become unknown, and perhaps rejected, so it is an error.
        if not all(_runs(pattern, options) for pattern in _naming(place)):
            raise InvalidSchema(
                f"{place.path}/patternProperties", "a pattern is wrong, too large or uses look-around"
            )
        if not all(_runs(pattern, options) for pattern in _own(place)):
            del place.schema["pattern"]
            dropped.append(f"{place.path}/pattern")
    return copy, tuple(sorted(dropped))


def _own(place: Subschema) -> tuple[str, ...]:
    pattern: Any = place.schema.get("pattern")
    return (pattern,) if isinstance(pattern, str) else ()


def _naming(place: Subschema) -> tuple[str, ...]:
    named: Any = place.schema.get("patternProperties")
    return tuple(named) if isinstance(named, dict) else ()  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


def _runs(pattern: str, options: jsonschema_rs.RegexOptions) -> bool:
    try:
        jsonschema_rs.validator_for({"pattern": pattern}, pattern_options=options)
    except ValueError:
        return False
    return True
