"""Merges two object schemas that must both hold into one, if that is exact."""

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
"""Keywords that do not constrain objects."""
_RULES: dict[str, Callable[[Any, Any], Any]] = {
    "required": lambda one, other: list(dict.fromkeys([*one, *other])),
    "minProperties": max,
    "maxProperties": min,
    "type": lambda one, _: one,
}
_FREE: tuple[Any, ...] = (True, {})


def merged(one: Schema, other: Schema) -> Schema | None:
    """Return a schema for objects valid under both; None if no exact one is known."""
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
    """Merge the constraints on members by name."""
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
        # Written even if it allows everything: it marks all properties as evaluated for
        # `unevaluatedProperties`.
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
    # Extend an existing `allOf` instead of nesting it.
    held: list[Any] = one["allOf"] if one.keys() == {"allOf"} else [one]
    return {"allOf": [*held, other]}
