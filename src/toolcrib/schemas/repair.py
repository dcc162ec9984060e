"""Repairs values that violate a JSON Schema, where only one correction is possible."""

import re
from collections.abc import Collection, Iterator, Mapping
from difflib import SequenceMatcher
from typing import Any, cast

import orjson

from toolcrib.model import Json, JsonObject

# --- The nearest of several names: the same rule for messages and for repairs ---

_MIN_SIMILARITY = 0.6
_MIN_LEAD = 0.08
"""By how much the nearest name must be more similar than the next one, else there is none."""
_PART_SIMILARITY = 0.85
"""Similarity of names of which one has all the words of the other, such as `card` and `card_id`."""
_MAX_NAME_CHARACTERS = 96
_MAX_CANDIDATES = 64
_NOT_ALPHANUMERIC = re.compile(r"[\W_]+")
_WORD_STARTS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def nearest_name(name: str, candidates: Collection[str]) -> str | None:
    """Return the candidate that a misspelled name clearly means; None where there is none, or several.

    Case and separators are ignored: `deckId` is `deck_id`.
    """
    if len(name) > _MAX_NAME_CHARACTERS or len(candidates) > _MAX_CANDIDATES:
        return _only([each for each in candidates if each.lower() == name.lower()])
    scores = sorted(((_similarity(name, each), each) for each in candidates), reverse=True)
    if not scores or scores[0][0] < _MIN_SIMILARITY:
        return None
    if len(scores) > 1 and scores[0][0] - scores[1][0] < _MIN_LEAD:
        return None
    return scores[0][1]


def _similarity(one: str, other: str) -> float:
    words, other_words = _words(one), _words(other)
    folded, other_folded = "".join(words), "".join(other_words)
    if not folded or not other_folded:
        return 0.0
    if folded == other_folded:
        return 1.0
    if set(words) <= set(other_words) or set(other_words) <= set(words):
        return _PART_SIMILARITY
    matcher = SequenceMatcher(None, folded, other_folded, autojunk=False)
    return matcher.ratio() if matcher.quick_ratio() >= _MIN_SIMILARITY else 0.0


def _words(name: str) -> list[str]:
    return _NOT_ALPHANUMERIC.sub(" ", _WORD_STARTS.sub(" ", name)).lower().split()


def _only(found: Collection[Any]) -> Any:
    return next(iter(found)) if len(found) == 1 else None


# --- Conversions of a value to a JSON type, without any loss ---

_INTEGER = re.compile(r"-?(0|[1-9]\d{0,14})(\.0+)?")
_NUMBER = re.compile(r"-?(0|[1-9]\d{0,14})(\.\d{1,15})?([eE][+-]?\d{1,2})?")
_BOOLEANS = {"true": True, "false": False}
_MAX_EXACT = 2**53
_TYPES_IN_ORDER = ("integer", "number", "boolean", "object", "array", "string")
_UNCHANGED: Any = object()
"""Returned where a value has no exact counterpart in a type."""


def _is_of(value: Json, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    if isinstance(value, int | float):
        return kind == "number" or (kind == "integer" and float(value).is_integer())
    if value is None:
        return kind == "null"
    python_type = {"string": str, "array": list, "object": Mapping}.get(kind)
    return python_type is not None and isinstance(value, python_type)


def _converted(value: Json, kind: str) -> Json:
    """Return the same value in another type, such as 3 for "3"; `_UNCHANGED` if it has no exact one."""
    if isinstance(value, list) and kind in ("string", "integer", "number", "boolean"):
        inner: Json = _only(cast("list[Json]", value))
        return inner if inner is not None and _is_of(inner, kind) else _UNCHANGED
    if kind == "string":
        number = isinstance(value, int | float) and abs(value) <= _MAX_EXACT
        return orjson.dumps(value).decode() if number or isinstance(value, bool) else _UNCHANGED
    if isinstance(value, str):
        return _parsed(value, kind)
    return [value] if kind == "array" and value is not None else _UNCHANGED


def _parsed(text: str, kind: str) -> Json:
    if kind == "integer" and _INTEGER.fullmatch(text):
        return int(text.partition(".")[0])
    if kind == "number" and _NUMBER.fullmatch(text):
        return orjson.loads(text)
    if kind == "boolean":
        return _BOOLEANS.get(text.lower(), _UNCHANGED)
    if kind in ("array", "object"):
        parsed = _parsed_container(text, kind)
        # A text with commas may be one item or several.
        return [text] if parsed is _UNCHANGED and kind == "array" and "," not in text else parsed
    return _UNCHANGED


def _parsed_container(text: str, kind: str) -> Json:
    """Return the array or object that a text is the JSON of; models send some twice encoded."""
    if text[:1] != {"array": "[", "object": "{"}[kind]:
        return _UNCHANGED
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return _UNCHANGED


# --- The walk through value and schema ---

_MAX_DEPTH = 16
_MAX_COMPARISONS = 500
"""Names that one repair may compare, which takes some milliseconds at most: a caller chooses them."""
_LOOKUPS = 8
"""References that are followed for one value."""


def repaired(value: JsonObject, schema: JsonObject) -> JsonObject:
    """Return the value with every fault corrected that has exactly one correction.

    The result may still be invalid: it needs validation.
    """
    repair = _Repair(schema)
    return repair.of_object(value, repair.resolved(schema), 0)


class _Repair:
    """Walks a value beside its schema; `root` resolves references."""

    def __init__(self, root: JsonObject) -> None:
        self._root = root
        self._comparisons = 0

    def nearest(self, name: str, candidates: Collection[str]) -> str | None:
        """Return what `nearest_name` does, until the limit of comparisons is reached."""
        self._comparisons += len(candidates)
        return nearest_name(name, candidates) if self._comparisons <= _MAX_COMPARISONS else None

    def resolved(self, schema: Json) -> JsonObject:
        """Follow references, and unions with one alternative besides null; empty if none applies."""
        for _ in range(_LOOKUPS):
            if not isinstance(schema, Mapping):
                return {}
            found = cast("JsonObject", schema)
            target = self._target(found)
            if target is None:
                return found
            rest = {
                key: each for key, each in found.items() if key not in ("$ref", "anyOf", "oneOf", "allOf")
            }
            schema = {**target, **rest}
        return {}

    def _target(self, schema: JsonObject) -> JsonObject | None:
        reference = schema.get("$ref")
        if isinstance(reference, str):
            return self.definition(reference)
        for keyword in ("anyOf", "oneOf", "allOf"):
            alternatives = schema.get(keyword)
            if not isinstance(alternatives, list):
                continue
            branches = cast("list[Json]", alternatives)
            constants = [_mapping(each)["const"] for each in branches if "const" in _mapping(each)]
            if len(constants) == len(branches) > 1 and keyword != "allOf":
                return {"enum": constants}
            return cast("JsonObject | None", _only([each for each in branches if each != {"type": "null"}]))
        return None

    def definition(self, reference: str) -> JsonObject:
        """Return what a reference inside the schema points to; empty if there is nothing."""
        found: Json = self._root
        for step in reference.removeprefix("#").split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            found = cast("JsonObject", found).get(name) if isinstance(found, Mapping) else None
        return cast("JsonObject", found) if isinstance(found, Mapping) else {}

    def of(self, value: Json, schema: Json, depth: int) -> Json:
        """Return a value repaired as far as possible."""
        found = self.resolved(schema)
        if depth > _MAX_DEPTH or (value is None and _allows_null(schema)):
            return value
        options = _options(found)
        if options is not None:
            return self._option(value, options)
        kinds = _types(found)
        if kinds and not any(_is_of(value, kind) for kind in kinds):
            value = next(
                (each for kind in kinds if (each := _converted(value, kind)) is not _UNCHANGED), value
            )
        if isinstance(value, Mapping):
            return self.of_object(cast("JsonObject", value), found, depth)
        if isinstance(value, list) and isinstance(found.get("items"), Mapping):
            return [self.of(each, found["items"], depth + 1) for each in cast("list[Json]", value)]
        return cast("Json", value)

    def of_object(self, value: JsonObject, schema: JsonObject, depth: int) -> JsonObject:
        """Correct the names of members, drop unknown ones, repair values and add what is determined."""
        properties = _mapping(schema.get("properties"))
        required = cast("list[str]", schema.get("required") or [])
        members: dict[str, Json] = {}
        for name, each in self._renamed(value, schema, properties).items():
            if name not in properties:
                members[name] = each
            elif each is not None or name in required or _allows_null(self._referenced(properties[name])):
                members[name] = self.of(each, properties[name], depth + 1)
        members |= self._determined(members, properties, required)
        return members

    def _referenced(self, schema: Json) -> Json:
        """Follow a reference, and keep unions: they say whether null is allowed."""
        reference = _mapping(schema).get("$ref")
        return self.definition(reference) if isinstance(reference, str) else schema

    def _determined(
        self, members: JsonObject, properties: JsonObject, required: Collection[str]
    ) -> Iterator[tuple[str, Json]]:
        """Yield the missing required members that have one possible value, or a default."""
        for name in required:
            if name in members or name not in properties:
                continue
            found = self.resolved(properties[name])
            options = _options(found)
            if options is not None and len(options) == 1:
                yield name, options[0]
            elif "default" in found:
                yield name, found["default"]

    def _renamed(self, value: JsonObject, schema: JsonObject, properties: JsonObject) -> dict[str, Json]:
        """Give misspelled members the names they clearly mean, and drop unknown ones that are not allowed."""
        free = [name for name in properties if name not in value]
        closed = False in (schema.get("additionalProperties"), schema.get("unevaluatedProperties"))
        closed = closed and not schema.get("patternProperties")
        unknown = [name for name in value if name not in properties]
        meant = {name: self.nearest(name, free) for name in unknown}
        meant |= _last_pair(meant, cast("list[str]", schema.get("required") or []), value) if closed else {}
        # Two members that mean the same one are ambiguous: they stay, and the result is not valid.
        targets = [target for target in meant.values() if target is not None]
        names: dict[str, Json] = {}
        for name, each in value.items():
            target = meant.get(name)
            if name in properties or (target is not None and targets.count(target) > 1):
                names[name] = each
            elif target is not None:
                names[target] = each
            elif not closed or self._conflicts(name, each, value, properties):
                names[name] = each
        return names

    def _conflicts(self, name: str, each: Json, value: JsonObject, properties: JsonObject) -> bool:
        """Whether an unknown member means a known one that is present with another value."""
        twin = self.nearest(name, [known for known in properties if known in value])
        return twin is not None and value[twin] != each

    def _option(self, value: Json, options: list[Json]) -> Json:
        """Return the option that a value means, if that is clear, else the value."""
        if any(each == value and type(each) is type(value) for each in options):
            return value
        if isinstance(value, list):
            items = cast("list[Json]", value)
            return self._option(items[0], options) if len(items) == 1 else items
        texts = [each for each in options if isinstance(each, str)]
        near = self.nearest(value, texts) if isinstance(value, str) else None
        if near is not None:
            return near
        # "3" for 3, or 3 for "3".
        same = [each for each in options if _as_text(each) == _as_text(value)]
        return same[0] if len(same) == 1 else value


def holds_secret(value: JsonObject, schema: JsonObject) -> bool:
    """Whether a value has members that a schema marks as `writeOnly`, at any depth."""
    properties, rest = _mapping(schema.get("properties")), schema.get("additionalProperties")
    places = {id(place): place for place in (properties.get(name, rest) for name in value)}
    seen: set[str] = set()
    return any(_is_write_only(place, schema, seen) for place in places.values())


def _is_write_only(place: Json, root: JsonObject, seen: set[str]) -> bool:
    if isinstance(place, list):
        return any(_is_write_only(each, root, seen) for each in cast("list[Json]", place))
    found = _mapping(place)
    reference = found.get("$ref")
    if isinstance(reference, str) and reference not in seen:
        seen.add(reference)
        if _is_write_only(_Repair(root).definition(reference), root, seen):
            return True
    return found.get("writeOnly") is True or any(_is_write_only(each, root, seen) for each in found.values())


def _last_pair(
    meant: Mapping[str, str | None], required: Collection[str], value: JsonObject
) -> dict[str, str | None]:
    """Pair the only unknown member with the only missing required one, if one's name begins the other's."""
    taken = {target for target in meant.values() if target is not None}
    name: str | None = _only([each for each, target in meant.items() if target is None])
    missing: str | None = _only([each for each in required if each not in value and each not in taken])
    if name is None or missing is None or not name:
        return {}
    one, other = "".join(_words(name)), "".join(_words(missing))
    return {name: missing} if one and (other.startswith(one) or one.startswith(other)) else {}


def _options(schema: JsonObject) -> list[Json] | None:
    if "const" in schema:
        return [schema["const"]]
    options = schema.get("enum")
    return cast("list[Json]", options) if isinstance(options, list) else None


def _as_text(value: Json) -> str | None:
    if isinstance(value, bool | int | float) and abs(value) <= _MAX_EXACT:
        return orjson.dumps(
            int(value) if not isinstance(value, bool) and value == int(value) else value
        ).decode()
    return value.lower() if isinstance(value, str) else None


def _types(schema: JsonObject) -> list[str]:
    kinds = schema.get("type")
    named = [kinds] if isinstance(kinds, str) else cast("list[str]", kinds or [])
    return [kind for kind in _TYPES_IN_ORDER if kind in named]


def _allows_null(schema: Json) -> bool:
    found = _mapping(schema)
    kinds = found.get("type")
    if kinds == "null" or (isinstance(kinds, list) and "null" in kinds):
        return True
    alternatives = found.get("anyOf") or found.get("oneOf")
    if isinstance(alternatives, list):
        return {"type": "null"} in alternatives
    options = _options(found)
    return None in options if options is not None else not kinds and "$ref" not in found


def _mapping(value: Json) -> JsonObject:
    return cast("JsonObject", value) if isinstance(value, Mapping) else {}
