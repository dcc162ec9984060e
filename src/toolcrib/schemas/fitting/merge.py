"""Makes one schema of two that must both hold of an object, where that can be said exactly."""

from collections.abc import Callable
from typing import Any

from toolcrib.schemas.fitting.source_schema import ANNOTATIONS
from toolcrib.schemas.subschemas import Schema

_TOGETHER = frozenset({"properties", "patternProperties", "additionalProperties"})
_CONDITION = frozenset({"if", "then", "else"})
_UNSEEN = frozenset({"unevaluatedProperties", "unevaluatedItems"})
_OTHERS = frozenset({
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength"),
    *("pattern", "items", "prefixItems", "contains", "minContains", "maxContains", "minItems", "maxItems"),
    *("uniqueItems", "contentEncoding", "contentMediaType"),
})  # fmt: skip
"""Keywords that ask nothing of an object."""
_RULES: dict[str, Callable[[Any, Any], Any]] = {
    "required": lambda one, other: list(dict.fromkeys([*one, *other])),
    "minProperties": max,
    "maxProperties": min,
    "type": lambda one, _: one,
}
_FREE: tuple[Any, ...] = (True, {})


def merged(one: Schema, other: Schema) -> Schema | None:
    """Return what says of an object what both say; None where no single schema is known to."""
    members = _members(one, other)
    if members is None or (_CONDITION & one.keys() and _CONDITION & other.keys()) or _UNSEEN & other.keys():
        return None
    told = {keyword: value for keyword, value in one.items() if keyword not in _TOGETHER}
    for keyword, value in other.items():
        if keyword in _TOGETHER or keyword in _OTHERS:
            continue
        held = told.setdefault(keyword, value)
        if keyword in _RULES:
            told[keyword] = _RULES[keyword](held, value)
        elif held != value and keyword not in ANNOTATIONS:
            return None
    return {**told, **members}


def _members(one: Schema, other: Schema) -> Schema | None:
    """Put together what both say of members by their names."""
    mine, theirs = one.get("additionalProperties", True), other.get("additionalProperties", True)
    patterned = "patternProperties" in one or "patternProperties" in other
    if patterned and not (mine in _FREE and theirs in _FREE):
        return None
    found: Schema = {
        "properties": _named(one, other, "properties", mine, theirs),
        "patternProperties": _named(one, other, "patternProperties", True, True),
    }
    told = {keyword: value for keyword, value in found.items() if value}
    if "additionalProperties" in one or "additionalProperties" in other:
        # Even where it allows everything it is said: for `unevaluatedProperties` nothing else is left then.
        told["additionalProperties"] = _both(mine, theirs)
    return told


def _named(one: Schema, other: Schema, keyword: str, mine: Any, theirs: Any) -> Schema:
    ours, others = one.get(keyword, {}), other.get(keyword, {})
    names = dict.fromkeys([*ours, *others])
    return {name: _both(ours.get(name, mine), others.get(name, theirs)) for name in names}


def _both(one: Any, other: Any) -> Any:
    if one is True or one == other:
        return other
    if other is True:
        return one
    if False in (one, other):
        return False
    # What was put together before is not nested any deeper.
    held: list[Any] = one["allOf"] if one.keys() == {"allOf"} else [one]
    return {"allOf": [*held, other]}
