"""Types of field values in hints: a predicate, an error text and a JSON Schema for each."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeGuard, cast

from toolcrib.model import JsonObject

MAX_ITEMS = 64
"""Items in a list."""
MAX_TEXT_CHARACTERS = 2_000
"""Characters in a text."""
MAX_NUMBER = 1e15
"""Upper bound of numbers: below 2^53, so that every JSON parser represents integers exactly."""
MAX_DATA_SIZE = 4_000
"""Budget for the data of one action: every value costs one, every text its characters too."""
MAX_DATA_DEPTH = 16
TUPLE_DESCRIPTION = f"a tuple of at most {MAX_ITEMS}"
NAME_PATTERN = re.compile(r"[^\W_][\w.:/-]{0,319}")
"""A tool name in any style, or kebab-case."""
_NUMBERS = frozenset({int, float})


@dataclass(frozen=True, slots=True)
class ValueType:
    """A predicate for values, and a description of those it accepts."""

    fits: Callable[[Any], bool]
    description: str
    schema: JsonObject
    """The same constraint as JSON Schema."""
    each: "ValueType | None" = None
    """The type of the items, for a list."""


def is_number(value: Any) -> TypeGuard[float]:
    """Return whether a value is a number; booleans are not."""
    return value.__class__ in _NUMBERS or (isinstance(value, int | float) and value.__class__ is not bool)


def is_share(value: Any) -> bool:
    """Return whether a value is a number from 0 to 1; NaN is not."""
    return (value.__class__ in _NUMBERS or is_number(value)) and 0 <= value <= 1


def is_text(value: Any) -> bool:
    """Return whether a value is a string that can be encoded, not empty and within the limit."""
    return (
        isinstance(value, str)
        and 0 < len(value) <= MAX_TEXT_CHARACTERS
        and (value.isascii() or _is_encodable(value))
    )


def is_name(value: Any) -> bool:
    """Return whether a value is a valid action name."""
    return isinstance(value, str) and NAME_PATTERN.fullmatch(value) is not None


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_timestamp(value: Any) -> bool:
    if not isinstance(value, str) or value[10:11] not in ("", "T"):
        return False
    try:
        datetime.fromisoformat(value)
    except ValueError:
        return False
    return True


def _budget_after(value: Any, budget: int, depth: int) -> int:
    """Subtract the cost of a JSON value from the budget; below zero if it is too large or not JSON."""
    budget -= 1
    if isinstance(value, str):
        return budget - len(value) if value.isascii() or _is_encodable(value) else -1
    if value is None or isinstance(value, bool):
        return budget
    if is_number(value):
        return budget if abs(value) <= MAX_NUMBER else -1
    if depth == 0:
        return -1
    return _budget_after_items(value, budget, depth)


def _budget_after_items(value: Any, budget: int, depth: int) -> int:
    """Subtract the cost of a mapping's keys and values, or of a list's items."""
    if isinstance(value, Mapping):
        members = cast("Mapping[Any, Any]", value)
        items = (*members, *members.values()) if all(isinstance(key, str) for key in members) else None
    else:
        items = cast("Sequence[Any]", value) if isinstance(value, list | tuple) else None
    for each in items or ():
        budget = _budget_after(each, budget, depth - 1)
        if budget < 0:
            break
    return -1 if items is None else budget


def one_of(words: Collection[str]) -> ValueType:
    """Return the type of an enumeration."""
    allowed = frozenset(words)
    description = f"one of {', '.join(words)}"
    return ValueType(
        lambda value: isinstance(value, str) and value in allowed, description, {"enum": list(words)}
    )


def word_or_share(words: Collection[str]) -> ValueType:
    """Return the type of an enumeration word, or a number from 0 to 1."""
    word = one_of(words)
    return ValueType(
        lambda value: word.fits(value) or is_share(value),
        f"{word.description}, or {SHARE.description}",
        {"anyOf": [word.schema, SHARE.schema]},
    )


def tuple_of(each: ValueType) -> ValueType:
    """Return the type of a tuple of limited length with items of this type."""

    def fits(value: Any) -> bool:
        return is_tuple(value) and (not value or all(map(each.fits, value)))

    return ValueType(
        fits, TUPLE_DESCRIPTION, {"type": "array", "items": each.schema, "maxItems": MAX_ITEMS}, each
    )


def is_tuple(value: Any) -> TypeGuard[tuple[Any, ...]]:
    """Return whether a value is a tuple within the length limit."""
    return isinstance(value, tuple) and len(value) <= MAX_ITEMS  # pyright: ignore[reportUnknownArgumentType]


TEXT = ValueType(
    is_text,
    f"a text of 1 to {MAX_TEXT_CHARACTERS} characters",
    {"type": "string", "minLength": 1, "maxLength": MAX_TEXT_CHARACTERS},
)
ACTION_NAME = ValueType(is_name, "a name in kebab-case, or a tool's", {"type": "string", "minLength": 1})
SHARE = ValueType(is_share, "a number from 0 to 1", {"type": "number", "minimum": 0, "maximum": 1})
SCORE = ValueType(
    lambda value: is_number(value) and -1 <= value <= 1,
    "a number from -1 to 1",
    {"type": "number", "minimum": -1, "maximum": 1},
)
AMOUNT = ValueType(
    lambda value: is_number(value) and 0 <= value <= MAX_NUMBER,
    "a number that is not negative",
    {"type": "number", "minimum": 0},
)
COUNT = ValueType(
    lambda value: isinstance(value, int) and value.__class__ is not bool and 0 <= value <= MAX_NUMBER,
    "a whole number that is not negative",
    {"type": "integer", "minimum": 0},
)
FLAG = ValueType(lambda value: value is True or value is False, "true or false", {"type": "boolean"})
TIMESTAMP = ValueType(
    _is_timestamp, "a moment as ISO 8601 spells it, such as 2030-01-31T12:00:00Z", {"type": "string"}
)
OBJECT = ValueType(
    lambda value: isinstance(value, Mapping) and _budget_after(value, MAX_DATA_SIZE, MAX_DATA_DEPTH) >= 0,
    f"an object of JSON with at most {MAX_DATA_SIZE} characters and values",
    {"type": "object"},
)
TEXTS = tuple_of(TEXT)
ACTION_NAMES = tuple_of(ACTION_NAME)


def value_description(value: Any) -> str:
    """Describe a value for an error message: numbers and short texts literally, others by type and size."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return repr(str(value)) if len(value) <= 40 else f"a text of {len(value)} characters"
    if is_number(value):
        return f"{value:g}" if value.__class__ is float or -MAX_NUMBER <= value <= MAX_NUMBER else "too large"
    if isinstance(value, list | tuple):
        return f"a list of {len(cast('Sequence[Any]', value))}"
    return "an object" if isinstance(value, Mapping) else f"of the kind {type(value).__name__}"
