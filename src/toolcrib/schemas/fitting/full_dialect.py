"""Converts a schema for providers that support nearly all of JSON Schema: its form is preserved."""

import re
from collections.abc import Collection, Iterator
from typing import Any, cast

from toolcrib.schemas.fitting.dialect import Dialect
from toolcrib.schemas.fitting.losses import FittingLosses
from toolcrib.schemas.fitting.object_root import ObjectRoot
from toolcrib.schemas.fitting.shape_reader import DEEPEST
from toolcrib.schemas.fitting.source_schema import (
    ANNOTATIONS,
    DRAFT_7,
    DRAFT_2020,
    SchemaLocation,
    SourceSchema,
    weight,
)
from toolcrib.schemas.subschemas import Schema, is_object

_PLUMBING = frozenset({
    *("$schema", "$id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$vocabulary", "$comment"),
    *("$defs", "definitions", "$ref", "$dynamicRef", "$recursiveRef"),
})  # fmt: skip
"""Keywords for identifiers, definitions and references; they are rewritten."""
_NAMED = frozenset({"properties", "patternProperties", "dependentSchemas"})
_LISTED = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_SINGLE = frozenset({
    *("additionalProperties", "unevaluatedProperties", "propertyNames", "items", "unevaluatedItems"),
    *("contains", "not", "if", "then", "else"),
})  # fmt: skip
_DEFINED = "#/$defs/"
_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]+")


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
                name = str(at.get("$ref")).removeprefix(_DEFINED)
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
        self._ledger.work(3 + weight(words))
        told: Schema = {}
        for keyword, value in words.items():
            if keyword in _PLUMBING or keyword in ("dependencies", "additionalItems"):
                continue
            if self._dialect.knows(keyword):
                told[keyword] = self._inside(spot, keyword, value)
            elif keyword not in ANNOTATIONS:
                self._ledger.lose((spot.path, keyword), f"{keyword} is not known there and left out")
        self._modernise(spot, words, told)
        told = _without_empty(told)
        for keyword, target in self._original.references(words):
            told = _beside(self._referred(spot, keyword, target), told)
        return self._completed(told)

    def _inside(self, spot: SchemaLocation, keyword: str, value: Any) -> Any:
        if keyword in _NAMED and is_object(value):
            kept = dict(self._allowed(spot, keyword, value))
            return {name: self.write(spot.inside(each, keyword, name)) for name, each in kept.items()}
        if keyword in _LISTED or (keyword == "items" and isinstance(value, list)):
            listed = cast("list[Any]", value)
            return [self.write(spot.inside(each, keyword, at)) for at, each in enumerate(listed)]
        return self.write(spot.inside(value, keyword)) if keyword in _SINGLE else value

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
        if id(target.schema) in self._open or len(self._open) >= DEEPEST or not self._ledger.spend():
            self._ledger.lose((spot.path, keyword), "it refers to itself or too far: the rest is not said")
            words = target.words()
            return {key: words[key] for key in ("type", "description") if key in words}
        return self.write(target)

    def _name(self, spot: SchemaLocation) -> str:
        if spot.path == "#":
            return "#"
        if spot.path not in self._names:
            last = _UNSAFE.sub("_", spot.path.rpartition("/")[2]) or "definition"
            name = last
            while name in self._places:
                self._counts[last] = self._counts.get(last, 1) + 1
                name = f"{last}_{self._counts[last]}"
            self._names[spot.path] = name
            self._places[name] = spot
        return f"{_DEFINED}{self._names[spot.path]}"

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


def _beside(referred: Any, told: Schema) -> Schema:
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
