"""Schemas for providers that accept nearly all of JSON Schema: an object as root, merged alternatives."""

import re
from collections.abc import Callable, Collection, Iterator
from typing import Any, cast

import orjson

from toolcrib.schemas.fitting.dialects import Dialect, FittingLosses
from toolcrib.schemas.fitting.shape_reader import MAX_INLINED_DEPTH
from toolcrib.schemas.fitting.shapes import distinct
from toolcrib.schemas.fitting.source_schema import (
    ANNOTATIONS,
    DRAFT_7,
    DRAFT_2020,
    SchemaLocation,
    SourceSchema,
    copy_work,
)
from toolcrib.schemas.subschemas import Schema, is_object

# --- Merges two object schemas that must both hold into one, if that is exact ---

_MEMBER_KEYWORDS = frozenset({"properties", "patternProperties", "additionalProperties"})
_CONDITION_KEYWORDS = frozenset({"if", "then", "else"})
_UNEVALUATED_KEYWORDS = frozenset({"unevaluatedProperties", "unevaluatedItems"})
_NON_OBJECT_KEYWORDS = frozenset({
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength"),
    *("pattern", "items", "prefixItems", "contains", "minContains", "maxContains", "minItems", "maxItems"),
    *("uniqueItems", "contentEncoding", "contentMediaType"),
})  # fmt: skip
"""Keywords that do not constrain objects."""
_MERGE_KEYWORD: dict[str, Callable[[Any, Any], Any]] = {
    "required": lambda one, other: list(dict.fromkeys([*one, *other])),
    "minProperties": max,
    "maxProperties": min,
    "type": lambda one, _: one,
}
_UNCONSTRAINED: tuple[Any, ...] = (True, {})


def merge_objects(one: Schema, other: Schema) -> Schema | None:
    """Return a schema for objects valid under both; None if no exact one is known."""
    members = _merge_members(one, other)
    if (
        members is None
        or (_CONDITION_KEYWORDS & one.keys() and _CONDITION_KEYWORDS & other.keys())
        or _UNEVALUATED_KEYWORDS & other.keys()
    ):
        return None
    told = {keyword: value for keyword, value in one.items() if keyword not in _MEMBER_KEYWORDS}
    for keyword, value in other.items():
        if keyword in _MEMBER_KEYWORDS or keyword in _NON_OBJECT_KEYWORDS:
            continue
        held = told.setdefault(keyword, value)
        if keyword in _MERGE_KEYWORD:
            told[keyword] = _MERGE_KEYWORD[keyword](held, value)
        elif held != value and keyword not in ANNOTATIONS:
            return None
    return {**told, **members}


def _merge_members(one: Schema, other: Schema) -> Schema | None:
    """Merge the constraints on members by name."""
    mine, theirs = one.get("additionalProperties", True), other.get("additionalProperties", True)
    patterned = "patternProperties" in one or "patternProperties" in other
    if patterned and not (mine in _UNCONSTRAINED and theirs in _UNCONSTRAINED):
        return None
    found: Schema = {
        "properties": _merge_named(one, other, "properties", mine, theirs),
        "patternProperties": _merge_named(one, other, "patternProperties", True, True),
    }
    told = {keyword: value for keyword, value in found.items() if value}
    if "additionalProperties" in one or "additionalProperties" in other:
        # Written even if it allows everything: it marks all properties as evaluated for
        # `unevaluatedProperties`.
        told["additionalProperties"] = _all_of(mine, theirs)
    return told


def _merge_named(one: Schema, other: Schema, keyword: str, mine: Any, theirs: Any) -> Schema:
    ours, others = one.get(keyword, {}), other.get(keyword, {})
    names = dict.fromkeys([*ours, *others])
    return {name: _all_of(ours.get(name, mine), others.get(name, theirs)) for name in names}


def _all_of(one: Any, other: Any) -> Any:
    if one is True or one == other:
        return other
    if other is True:
        return one
    if False in (one, other):
        return False
    # Extend an existing `allOf` instead of nesting it.
    held: list[Any] = one["allOf"] if one.keys() == {"allOf"} else [one]
    return {"allOf": [*held, other]}


# --- Makes the root of a schema a plain object: references, `allOf` and unions are merged into it ---

_Write = Callable[[SchemaLocation, Collection[str]], Schema]
_UNION_KEYWORDS = ("anyOf", "oneOf")
_NOT_AT_ROOT_KEYWORDS = ("not", "enum", "const")
_MERGED_KEYWORDS = frozenset(
    {"$ref", "$dynamicRef", "$recursiveRef", "allOf", *_UNION_KEYWORDS, *_NOT_AT_ROOT_KEYWORDS}
)
_UNEVALUATED_PROPERTIES = "unevaluatedProperties"
_BYTES_PER_STEP = 64
"""Bytes compared that count as one step of work."""


class ObjectRoot:
    """Flattens a root. `write` writes a location without the given keywords."""

    def __init__(self, original: SourceSchema, ledger: FittingLosses, write: _Write) -> None:
        self._original = original
        self._ledger = ledger
        self._write = write

    def alone(self, spot: SchemaLocation) -> Schema | None:
        """Return a location as an object without unions and references; None if it accepts no object."""
        words = spot.words()
        if not _allows_object(words.get("type")):
            return None
        told = {**self._write(spot, _MERGED_KEYWORDS), "type": "object"}
        whole = True
        choices = {
            keyword: self._choices(spot, words, keyword) for keyword in _UNION_KEYWORDS if keyword in words
        }
        for keyword, part in self._parts(spot, words, choices):
            self._ledger.work(2 + _count_members(told, part) // 8)
            more = None if part is None else merge_objects(told, part)
            whole = whole and more is not None
            told = self._lost(spot, keyword, told) if more is None else more
        for keyword, members in choices.items():
            if len(members) > 1:
                self._ledger.work(_count_members(*members) // 8)
                whole = False
                told = self._lost(spot, keyword, _widened_root(told, members))
        for keyword in _NOT_AT_ROOT_KEYWORDS:
            if keyword in words and not (keyword == "not" and words[keyword] is False):
                whole = False
                told = self._lost(spot, keyword, told)
        if not whole and _UNEVALUATED_PROPERTIES in told:
            told = {key: value for key, value in told.items() if key != _UNEVALUATED_PROPERTIES}
            self._ledger.lose(
                (spot.path, _UNEVALUATED_PROPERTIES), "what other properties there may be is not said"
            )
        return told

    def _parts(
        self, spot: SchemaLocation, words: Schema, choices: dict[str, list[Schema]]
    ) -> Iterator[tuple[str, Schema | None]]:
        """Yield the schemas that must hold besides the location's own keywords, each with its keyword."""
        for keyword, target in self._original.references(words):
            yield keyword, self._opened(target)
        for each in self._members(spot, words, "allOf"):
            yield "allOf", each
        for keyword, members in choices.items():
            if len(members) <= 1:
                yield keyword, members[0] if members else None

    def _choices(self, spot: SchemaLocation, words: Schema, keyword: str) -> list[Schema]:
        """Return the object members of a union, deduplicated unless `oneOf` requires exactly one."""
        members = [each for each in self._members(spot, words, keyword) if each is not None]
        if keyword == "oneOf":
            return members
        self._ledger.work(sum(len(orjson.dumps(each)) for each in members) // _BYTES_PER_STEP)
        return distinct(members)

    def _members(self, spot: SchemaLocation, words: Schema, keyword: str) -> list[Schema | None]:
        return [
            self._opened(spot.inside(each, keyword, at)) for at, each in enumerate(words.get(keyword, ()))
        ]

    def _opened(self, spot: SchemaLocation) -> Schema | None:
        if is_object(spot.schema):
            return self.alone(spot)
        return {} if spot.schema is True else None

    def _lost(self, spot: SchemaLocation, keyword: str, told: Schema) -> Schema:
        self._ledger.lose((spot.path, keyword), f"{keyword} may not stand at the root: not all of it is said")
        return told


def _allows_object(kinds: Any) -> bool:
    return kinds is None or "object" in ([kinds] if isinstance(kinds, str) else kinds)


def _count_members(*schemas: Schema | None) -> int:
    """Return the number of properties to process."""
    return sum(len(each.get("properties", ())) for each in schemas if each is not None)


def _widened_root(told: Schema, members: list[Schema]) -> Schema:
    """Add the properties of all members; require only those that every member requires."""
    known: Schema = told.get("properties", {})
    closed = told.get("additionalProperties") is False
    found: dict[str, list[Any]] = {}
    for member in members:
        for name, each in member.get("properties", {}).items():
            found.setdefault(name, []).append(each)
    found = {name: distinct(kinds) for name, kinds in found.items()}
    more = {
        name: kinds[0] if len(kinds) == 1 else {"anyOf": kinds}
        for name, kinds in found.items()
        if name not in known and not closed
    }
    others = [frozenset(each.get("required", ())) for each in members]
    needed = [name for name in members[0].get("required", ()) if all(name in each for each in others)]
    required = list(dict.fromkeys([*told.get("required", ()), *needed]))
    whole = {**told, "properties": {**known, **more}, "required": required}
    return {key: value for key, value in whole.items() if value or key not in ("properties", "required")}


# --- Converts a schema for providers that support nearly all of JSON Schema: its form is preserved ---

_REWRITTEN_KEYWORDS = frozenset({
    *("$schema", "$id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$vocabulary", "$comment"),
    *("$defs", "definitions", "$ref", "$dynamicRef", "$recursiveRef"),
})  # fmt: skip
"""Keywords for identifiers, definitions and references; they are rewritten."""
_BY_NAME_KEYWORDS = frozenset({"properties", "patternProperties", "dependentSchemas"})
_LIST_KEYWORDS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_SINGLE_KEYWORDS = frozenset({
    *("additionalProperties", "unevaluatedProperties", "propertyNames", "items", "unevaluatedItems"),
    *("contains", "not", "if", "then", "else"),
})  # fmt: skip
_DEFINITION_PREFIX = "#/$defs/"
_UNSAFE_CHARACTERS = re.compile(r"[^A-Za-z0-9_.-]+")


class FullDialectWriter:
    """Converts one schema to draft 2020-12, with all definitions in `$defs` and an object at the root."""

    def __init__(self, dialect: Dialect, original: SourceSchema, ledger: FittingLosses) -> None:
        self._dialect = dialect
        self._original = original
        self._ledger = ledger
        self._parameter = None if dialect.parameter is None else re.compile(dialect.parameter)
        self._names: dict[str, str] = {}
        """New name of each referenced location, by its path."""
        self._places: dict[str, SchemaLocation] = {}
        """The same locations, by new name."""
        self._counts: dict[str, int] = {}
        """Locations with the same preferred name, counted to make the names unique."""
        self._open: list[int] = [id(original.root.schema)]
        """Stack of the locations being written, by identity, which detects cycles."""

    def arguments(self) -> Schema:
        """Write the whole schema, with an object as its root."""
        root = self._original.root
        told = self._told(root) if self._dialect.root_unions else self._alone(root)
        told = self._completed({**told, "type": "object"})
        definitions: Schema = {}
        waiting = list(self._referring(told))
        while waiting:
            name = waiting.pop()
            if name not in definitions:
                definitions[name] = self.write(self._places[name])
                waiting += self._referring(definitions[name])
        return {**told, "$defs": definitions} if definitions else told

    def _referring(self, told: Any) -> Iterator[str]:
        """Yield the names of the definitions that a schema references."""
        waiting = [told]
        while waiting:
            at: Any = waiting.pop()
            if is_object(at):
                name = str(at.get("$ref")).removeprefix(_DEFINITION_PREFIX)
                if name in self._places:
                    yield name
                waiting += at.values()
            elif isinstance(at, list):
                waiting += cast("list[Any]", at)

    def write(self, spot: SchemaLocation) -> Any:
        """Write one location."""
        if not is_object(spot.schema):
            return spot.schema
        self._open.append(id(spot.schema))
        told = self._told(spot)
        self._open.pop()
        return told

    def _alone(self, root: SchemaLocation) -> Schema:
        told = ObjectRoot(self._original, self._ledger, self._told).alone(root)
        if told is None:
            self._ledger.lose((root.path, "type"), "arguments are an object")
        return told or {}

    def _told(self, spot: SchemaLocation, without: Collection[str] = ()) -> Schema:
        words = {keyword: value for keyword, value in spot.words().items() if keyword not in without}
        self._ledger.work(3 + copy_work(words))
        told: Schema = {}
        for keyword, value in words.items():
            if keyword in _REWRITTEN_KEYWORDS or keyword in ("dependencies", "additionalItems"):
                continue
            if self._dialect.knows(keyword):
                told[keyword] = self._inside(spot, keyword, value)
            elif keyword not in ANNOTATIONS:
                self._ledger.lose((spot.path, keyword), f"{keyword} is not known there and left out")
        self._modernise(spot, words, told)
        told = _without_empty(told)
        for keyword, target in self._original.references(words):
            told = _with_reference(self._referred(spot, keyword, target), told)
        return self._completed(told)

    def _inside(self, spot: SchemaLocation, keyword: str, value: Any) -> Any:
        if keyword in _BY_NAME_KEYWORDS and is_object(value):
            kept = dict(self._allowed(spot, keyword, value))
            return {name: self.write(spot.inside(each, keyword, name)) for name, each in kept.items()}
        if keyword in _LIST_KEYWORDS or (keyword == "items" and isinstance(value, list)):
            listed = cast("list[Any]", value)
            return [self.write(spot.inside(each, keyword, at)) for at, each in enumerate(listed)]
        return self.write(spot.inside(value, keyword)) if keyword in _SINGLE_KEYWORDS else value

    def _allowed(self, spot: SchemaLocation, keyword: str, members: Schema) -> Iterator[tuple[str, Any]]:
        """Drop properties with names that the provider rejects."""
        for name, each in members.items():
            if (
                keyword == "properties"
                and self._parameter is not None
                and not self._parameter.fullmatch(name)
            ):
                path = f"{spot.path}/properties"
                self._ledger.lose((path, name), "a property may not have this name: it is left out")
            else:
                yield name, each

    def _referred(self, spot: SchemaLocation, keyword: str, target: SchemaLocation) -> Any:
        """Write a reference, or inline its target."""
        if self._dialect.references:
            return {"$ref": self._name(target)}
        if (
            id(target.schema) in self._open
            or len(self._open) >= MAX_INLINED_DEPTH
            or not self._ledger.spend()
        ):
            self._ledger.lose((spot.path, keyword), "it refers to itself or too far: the rest is not said")
            words = target.words()
            return {key: words[key] for key in ("type", "description") if key in words}
        return self.write(target)

    def _name(self, spot: SchemaLocation) -> str:
        if spot.path == "#":
            return "#"
        if spot.path not in self._names:
            last = _UNSAFE_CHARACTERS.sub("_", spot.path.rpartition("/")[2]) or "definition"
            name = last
            while name in self._places:
                self._counts[last] = self._counts.get(last, 1) + 1
                name = f"{last}_{self._counts[last]}"
            self._names[spot.path] = name
            self._places[name] = spot
        return f"{_DEFINITION_PREFIX}{self._names[spot.path]}"

    # --- keywords of older drafts

    def _modernise(self, spot: SchemaLocation, words: Schema, told: Schema) -> None:
        if spot.draft != DRAFT_2020 and isinstance(told.get("items"), list):
            told["prefixItems"] = told.pop("items")
            if "additionalItems" in words:
                told["items"] = self.write(spot.inside(words["additionalItems"], "additionalItems"))
        if spot.draft == DRAFT_7:
            for keyword in ("contentEncoding", "contentMediaType"):
                if keyword in words:
                    self._ledger.lose((spot.path, keyword), f"{keyword} is only a note there")
        for name, asked in words.get("dependencies", {}).items():
            self._depend(spot, told, name, asked)

    def _depend(self, spot: SchemaLocation, told: Schema, name: str, asked: Any) -> None:
        """Write a draft-07 dependency as `dependentRequired` or `dependentSchemas`."""
        if isinstance(asked, list):
            held = told.get("dependentRequired", {})
            names = dict.fromkeys([*held.get(name, ()), *cast("list[str]", asked)])
            told["dependentRequired"] = {**held, name: list(names)}
        else:
            held = told.get("dependentSchemas", {})
            inner = self.write(spot.inside(asked, "dependencies", name))
            both = {"allOf": [held[name], inner]} if name in held else inner
            told["dependentSchemas"] = {**held, name: both}

    def _completed(self, told: Schema) -> Schema:
        """Add `items` and `properties` where the provider requires them."""
        kinds: Any = told.get("type")
        listed: list[Any] = [kinds] if isinstance(kinds, str) else kinds or []
        if self._dialect.items_said and "array" in listed and "items" not in told:
            told = {**told, "items": {}}
        if self._dialect.properties_said and "object" in listed and "properties" not in told:
            told = {**told, "properties": {}}
        return told


def _with_reference(referred: Any, told: Schema) -> Schema:
    """Combine a resolved reference with the keywords beside it."""
    if referred is True or referred == {}:
        return told
    if not is_object(referred):
        return {**told, "allOf": [*told.get("allOf", []), referred]}
    notes = {keyword: value for keyword, value in told.items() if keyword in ANNOTATIONS}
    if len(notes) == len(told) or (set(referred) == {"$ref"} and "$ref" not in told):
        return {**referred, **told}
    return {**told, "allOf": [*told.get("allOf", []), referred]}


def _without_empty(told: Schema) -> Schema:
    return {
        keyword: value
        for keyword, value in told.items()
        if not (keyword in ("required", "properties") and not value)
    }
