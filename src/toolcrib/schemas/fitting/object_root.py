"""Makes the root of a schema a plain object: references, `allOf` and unions are merged into it."""

from collections.abc import Callable, Collection, Iterator
from typing import Any

import orjson

from toolcrib.schemas.fitting.losses import FittingLosses
from toolcrib.schemas.fitting.merge import merged
from toolcrib.schemas.fitting.shapes import distinct
from toolcrib.schemas.fitting.source_schema import SchemaLocation, SourceSchema
from toolcrib.schemas.subschemas import Schema, is_object

_Write = Callable[[SchemaLocation, Collection[str]], Schema]
_UNIONS = ("anyOf", "oneOf")
_REFUSED = ("not", "enum", "const")
_MOVED = frozenset({"$ref", "$dynamicRef", "$recursiveRef", "allOf", *_UNIONS, *_REFUSED})
_UNSEEN = "unevaluatedProperties"
_STEP = 64
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
        if not _may_be_object(words.get("type")):
            return None
        told = {**self._write(spot, _MOVED), "type": "object"}
        whole = True
        choices = {keyword: self._choices(spot, words, keyword) for keyword in _UNIONS if keyword in words}
        for keyword, part in self._parts(spot, words, choices):
            self._ledger.work(2 + _members_of(told, part) // 8)
            more = None if part is None else merged(told, part)
            whole = whole and more is not None
            told = self._lost(spot, keyword, told) if more is None else more
        for keyword, members in choices.items():
            if len(members) > 1:
                self._ledger.work(_members_of(*members) // 8)
                whole = False
                told = self._lost(spot, keyword, _folded(told, members))
        for keyword in _REFUSED:
            if keyword in words and not (keyword == "not" and words[keyword] is False):
                whole = False
                told = self._lost(spot, keyword, told)
        if not whole and _UNSEEN in told:
            told = {key: value for key, value in told.items() if key != _UNSEEN}
            self._ledger.lose((spot.path, _UNSEEN), "what other properties there may be is not said")
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
        self._ledger.work(sum(len(orjson.dumps(each)) for each in members) // _STEP)
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


def _may_be_object(kinds: Any) -> bool:
    return kinds is None or "object" in ([kinds] if isinstance(kinds, str) else kinds)


def _members_of(*schemas: Schema | None) -> int:
    """Return the number of properties to process."""
    return sum(len(each.get("properties", ())) for each in schemas if each is not None)


def _folded(told: Schema, members: list[Schema]) -> Schema:
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
