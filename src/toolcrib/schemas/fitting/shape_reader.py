"""Parses a schema into shapes: resolves references, expands unions, drops what has no shape."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations
from typing import Any

from toolcrib.schemas.fitting.dialects import MAX_CONVERSION_STEPS, FittingLosses, Origin
from toolcrib.schemas.fitting.intersect import MAX_EXACT_INTEGER, are_disjoint, intersect, normalized
from toolcrib.schemas.fitting.shapes import (
    KINDS,
    Branch,
    Constraint,
    UnionShape,
    anything,
    distinct,
    nothing,
    union,
)
from toolcrib.schemas.fitting.source_schema import (
    ANNOTATIONS,
    DRAFT_7,
    DRAFT_2020,
    SchemaLocation,
    SourceSchema,
    copy_work,
)
from toolcrib.schemas.subschemas import Schema, is_object

MAX_INLINED_DEPTH = 32
"""Nesting of locations, with references followed."""
_MAX_COMPARED_PAIRS = 2_000
"""Pairs of alternatives that are compared to find overlaps."""
_MAX_COMPARISON_STEPS = MAX_CONVERSION_STEPS // 5
"""Work for these comparisons at one location."""

_KIND_OF_BOUND = {
    "minimum": "number",
    "maximum": "number",
    "exclusiveMinimum": "number",
    "exclusiveMaximum": "number",
    "multipleOf": "number",
    "minLength": "string",
    "maxLength": "string",
    "pattern": "string",
    "minItems": "array",
    "maxItems": "array",
    "uniqueItems": "array",
    "minProperties": "object",
    "maxProperties": "object",
    "required": "object",
}
_IS_WITHOUT_EFFECT: dict[str, Callable[[Any], bool]] = {
    "minLength": lambda bound: bound <= 0,
    "minItems": lambda bound: bound <= 0,
    "minProperties": lambda bound: bound <= 0,
    "uniqueItems": lambda wanted: not wanted,
    "required": lambda names: not names,
}
_SHAPE_KEYWORDS = frozenset({
    *("type", "enum", "const", "format", "properties", "additionalProperties", "items", "prefixItems"),
    *("additionalItems", *_KIND_OF_BOUND),
})  # fmt: skip
"""Keywords of a location that define a shape."""
_ANNOTATIONS_TO_KEEP = ("description", "title", "default", "examples")
_KEYWORDS_WITHOUT_SHAPE: dict[str, tuple[str, str]] = {
    "not": ("", "what it must not be is not said"),
    "if": ("", "conditions are not said"),
    "then": ("", "conditions are not said"),
    "else": ("", "conditions are not said"),
    "dependentRequired": ("object", "what one property asks of others is not said"),
    "dependentSchemas": ("object", "what one property asks of others is not said"),
    "dependencies": ("object", "what one property asks of others is not said"),
    "patternProperties": ("object", "what properties with such names must be is not said"),
    "propertyNames": ("object", "what names of properties must be like is not said"),
    "unevaluatedProperties": ("object", "what other properties must be is not said"),
    "unevaluatedItems": ("array", "what other items must be is not said"),
    "contains": ("array", "what some item must be is not said"),
    "minContains": ("array", "how many such items there must be is not said"),
    "maxContains": ("array", "how many such items there may be is not said"),
    "contentEncoding": ("string", "how the text is encoded is not said"),
    "contentMediaType": ("string", "what the text holds is not said"),
}
"""Keywords without a shape: the kind of value they constrain, and the message of the loss."""


class ShapeReader:
    """Parses one schema."""

    def __init__(self, original: SourceSchema, ledger: FittingLosses) -> None:
        self._original = original
        self._ledger = ledger
        self._open: list[int] = []
        """Stack of the locations being parsed, by identity, which detects cycles."""

    def arguments(self) -> UnionShape:
        """Parse the whole schema; only its object branches remain, as arguments are an object."""
        root = self.read(self._original.root)
        return replace(root, branches=tuple(each for each in root.branches if each.kind == "object"))

    def read(self, spot: SchemaLocation) -> UnionShape:
        """Parse one location."""
        if spot.schema is False:
            return nothing(spot.path)
        if not is_object(spot.schema):
            return anything(spot.path)
        if not self._ledger.spend():
            self._ledger.lose(self._original.blame(spot.path), "it is left out: the schema is too large")
            return anything(spot.path)
        self._open.append(id(spot.schema))
        words = spot.words()
        self._ledger.work(copy_work(words))
        shape = self._together(spot, words)
        self._open.pop()
        return shape

    def _together(self, spot: SchemaLocation, words: Schema) -> UnionShape:
        shape = self._own(spot, words)
        for keyword, target in self._original.references(words):
            shape = intersect(
                shape, self._referred(spot, keyword, target), (spot.path, keyword), self._ledger
            )
        for at, each in enumerate(words.get("allOf", ())):
            inner = self.read(spot.inside(each, "allOf", at))
            shape = intersect(shape, inner, (spot.path, "allOf"), self._ledger)
        for keyword in ("anyOf", "oneOf"):
            if keyword in words:
                inner = self._union(spot, keyword, words[keyword])
                shape = intersect(shape, inner, (spot.path, keyword), self._ledger)
        shape = _without_excluded(shape, words.get("not"))
        for keyword in _lost_keywords(words, spot.draft, {each.kind for each in shape.branches}):
            self._ledger.lose((spot.path, keyword), _KEYWORDS_WITHOUT_SHAPE[keyword][1])
        notes = {keyword: words[keyword] for keyword in _ANNOTATIONS_TO_KEEP if keyword in words}
        return replace(shape, notes={**shape.notes, **notes})

    def _referred(self, spot: SchemaLocation, keyword: str, target: SchemaLocation) -> UnionShape:
        if id(target.schema) in self._open:
            reason = "it refers to itself: what is further in is not said"
        elif len(self._open) >= MAX_INLINED_DEPTH:
            reason = "it is too deep within others: what is further in is not said"
        else:
            return self.read(target)
        self._ledger.lose((spot.path, keyword), reason)
        words = target.words()
        kept = {each: words[each] for each in ("type", "description") if each in words}
        bare = self._own(target, kept)
        return replace(bare, path=spot.path, notes={key: kept[key] for key in kept if key != "type"})

    def _union(self, spot: SchemaLocation, keyword: str, members: list[Any]) -> UnionShape:
        shapes = [self.read(spot.inside(each, keyword, at)) for at, each in enumerate(members)]
        if keyword == "oneOf" and not self._are_all_apart(shapes):
            self._ledger.lose((spot.path, keyword), "it may be several of these at once: anyOf is said")
        return union(spot.path, shapes, (spot.path, keyword))

    def _are_all_apart(self, shapes: list[UnionShape]) -> bool:
        """Return whether the shapes are provably disjoint within a small budget."""
        if len(shapes) * (len(shapes) - 1) // 2 > _MAX_COMPARED_PAIRS:
            return False
        left = self._ledger.left
        for one, other in combinations(shapes, 2):
            if left - self._ledger.left > _MAX_COMPARISON_STEPS or not are_disjoint(
                one, other, 200, self._ledger
            ):
                return False
        return True

    # --- keywords of the location itself

    def _own(self, spot: SchemaLocation, words: Schema) -> UnionShape:
        if not _SHAPE_KEYWORDS & words.keys():
            return anything(spot.path)
        branches = [Branch(kind, said) for kind, said in _kinds_of_type(spot, words)]
        self._ledger.work(2 * len(branches))
        kinds = {branch.kind for branch in branches}
        asked = [*_bounds_of(spot, words), *self._parts(spot, words, kinds)]
        found: list[Branch] = []
        for branch in branches:
            said = {**branch.said, **{key: each for kind, key, each in asked if kind == branch.kind}}
            notes = {"format": words["format"]} if _has_format(branch.kind, words) else {}
            plain = normalized(Branch(branch.kind, said, notes))
            if plain is not None:
                found.append(plain)
        shape = UnionShape(spot.path, tuple(found), unions=_union_origins(spot, words))
        for keyword in ("enum", "const"):
            if keyword in words:
                values = words["enum"] if keyword == "enum" else [words["const"]]
                listed = UnionShape(
                    spot.path, tuple(_enum_branches(spot, keyword, values)), unions=shape.unions
                )
                shape = intersect(listed, shape, (spot.path, keyword), self._ledger)
        return shape

    def _parts(
        self, spot: SchemaLocation, words: Schema, kinds: set[str]
    ) -> Iterator[tuple[str, str, Constraint]]:
        """Parse the nested schemas: members and items."""
        if "object" in kinds:
            yield from self._members(spot, words)
        if "array" in kinds:
            yield from self._items(spot, words)

    def _members(self, spot: SchemaLocation, words: Schema) -> Iterator[tuple[str, str, Constraint]]:
        if words.get("properties"):
            members = {
                name: self.read(spot.inside(each, "properties", name))
                for name, each in words["properties"].items()
            }
            yield "object", "properties", Constraint(members, spot.path, "properties")
        yield from self._rest(spot, words, "object", "additionalProperties", "additionalProperties")

    def _items(self, spot: SchemaLocation, words: Schema) -> Iterator[tuple[str, str, Constraint]]:
        listed = "prefixItems" if spot.draft == DRAFT_2020 else "items"
        if isinstance(words.get(listed), list):
            places = tuple(self.read(spot.inside(each, listed, at)) for at, each in enumerate(words[listed]))
            yield "array", "prefixItems", Constraint(places, spot.path, listed)
        rest = "items" if not isinstance(words.get("items"), list) else "additionalItems"
        yield from self._rest(spot, words, "array", "items", rest)

    def _rest(
        self, spot: SchemaLocation, words: Schema, kind: str, key: str, keyword: str
    ) -> Iterator[tuple[str, str, Constraint]]:
        if keyword not in words:
            return
        if key == "additionalProperties" and words.get("patternProperties"):
            if words[keyword] not in (True, {}):
                self._ledger.lose((spot.path, keyword), "what other properties must be is not said")
            return
        shape = self.read(spot.inside(words[keyword], keyword))
        if not shape.is_anything or shape.notes:
            yield kind, key, Constraint(shape, spot.path, keyword)


def _kinds_of_type(spot: SchemaLocation, words: Schema) -> Iterator[tuple[str, dict[str, Constraint]]]:
    """Yield the kinds of value that `type` allows."""
    given: Any = words.get("type")
    listed: list[str] = list(KINDS) if given is None else [given] if isinstance(given, str) else given
    for kind in listed:
        if kind == "integer" and "number" not in listed:
            yield "number", {"integer": Constraint(True, spot.path, "type")}
        elif kind != "integer":
            yield kind, {}


def _union_origins(spot: SchemaLocation, words: Schema) -> tuple[Origin, ...]:
    return tuple((spot.path, each) for each in ("type", "enum") if isinstance(words.get(each), list))


def _bounds_of(spot: SchemaLocation, words: Schema) -> Iterator[tuple[str, str, Constraint]]:
    for keyword, kind in _KIND_OF_BOUND.items():
        if keyword not in words:
            continue
        value = words[keyword]
        if keyword == "required":
            value = tuple(value)
        elif isinstance(value, float) and value.is_integer() and abs(value) <= MAX_EXACT_INTEGER:
            value = int(value)
        if not _IS_WITHOUT_EFFECT.get(keyword, bool)(value) or keyword not in _IS_WITHOUT_EFFECT:
            yield kind, keyword, Constraint(value, spot.path, keyword)


def _has_format(kind: str, words: Schema) -> bool:
    return kind in ("string", "number") and isinstance(words.get("format"), str)


def _enum_branches(spot: SchemaLocation, keyword: str, values: list[Any]) -> Iterator[Branch]:
    kinds: dict[str, list[Any]] = {}
    for value in distinct(values):
        kinds.setdefault(kind_of(value), []).append(value)
    for kind, found in kinds.items():
        said = {} if kind == "null" else {"enum": Constraint(found, spot.path, keyword)}
        plain = normalized(Branch(kind, said))
        if plain is not None:
            yield plain


def kind_of(value: Any) -> str:
    """Return the kind of a JSON value."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, (int, float)):
        return "number"
    if isinstance(value, str):
        return "string"
    return "object" if isinstance(value, dict) else "array"


# --- keywords without a shape


def _lost_keywords(words: Schema, draft: int, kinds: set[str]) -> Iterator[str]:
    for keyword, value in words.items():
        kind, _ = _KEYWORDS_WITHOUT_SHAPE.get(keyword, (None, ""))
        if kind in ("", *kinds) and kinds and not _has_no_effect(keyword, value, words, draft):
            yield keyword


def _has_no_effect(keyword: str, value: Any, words: Schema, draft: int) -> bool:
    """Return whether a keyword has no effect here, or only on keywords that are reported anyway."""
    if keyword in ("if", "then", "else"):
        return "if" not in words or not ("then" in words or "else" in words)
    if keyword in ("contains", "minContains", "maxContains"):
        free = draft != DRAFT_7 and words.get("minContains") == 0 and "maxContains" not in words
        return free or "contains" not in words
    if keyword == "not":
        return _excluded_kinds(value) is not None
    if keyword == "propertyNames":
        return value in (True, {}, {"type": "string"})
    if keyword in ("unevaluatedProperties", "unevaluatedItems"):
        return value in (True, {})
    return not value


def _without_excluded(shape: UnionShape, refused: Any) -> UnionShape:
    """Remove the kinds that `not` excludes, if it has no other constraint."""
    kinds = frozenset[str]() if refused is None else _excluded_kinds(refused)
    if not kinds:
        return shape
    return replace(shape, branches=tuple(each for each in shape.branches if each.kind not in kinds))


def _excluded_kinds(refused: Any) -> frozenset[str] | None:
    """Return the kinds that `not` excludes; None if it excludes anything else."""
    if refused is False:
        return frozenset()
    if refused is True or not refused:
        return frozenset(KINDS)
    said = {keyword: value for keyword, value in refused.items() if keyword not in ANNOTATIONS}
    kinds: Any = said.get("type")
    named = frozenset([kinds] if isinstance(kinds, str) else kinds or ())
    return named if set(said) == {"type"} and "integer" not in named else None
