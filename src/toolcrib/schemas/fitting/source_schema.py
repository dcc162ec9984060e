"""The source schema of a conversion: resolves references, and knows the draft at each location."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import unquote

import orjson

from toolcrib.schemas.fitting.dialects import Origin
from toolcrib.schemas.subschemas import Schema, is_object

DRAFT_7, DRAFT_2019, DRAFT_2020 = 7, 2019, 2020

ANNOTATIONS = frozenset({
    *("$schema", "$id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$vocabulary", "$comment", "$defs"),
    *("definitions", "title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly"),
    *("format", "contentSchema"),
})  # fmt: skip
"""Keywords that never reject a value. `format` is among them, as it is not validated here."""
_VALUE_KEYWORDS = frozenset({"const", "enum", "default", "examples"})
"""Keywords that contain values, not schemas."""
_SINCE_2019 = frozenset({
    *("dependentRequired", "dependentSchemas", "unevaluatedProperties", "unevaluatedItems"),
    *("minContains", "maxContains"),
})  # fmt: skip
_IGNORED_KEYWORDS = {
    DRAFT_7: _SINCE_2019 | {"prefixItems", "$dynamicRef", "$recursiveRef"},
    DRAFT_2019: frozenset({"prefixItems", "$dynamicRef", "contentEncoding", "contentMediaType"}),
    DRAFT_2020: frozenset({"additionalItems", "$recursiveRef", "contentEncoding", "contentMediaType"}),
}
"""Keywords without effect in a draft: not yet or no longer part of it, or an annotation only."""
_LONG_VALUE_KEYWORDS = _VALUE_KEYWORDS | {"description", "title", "pattern", "required", "dependentRequired"}
"""Keywords with values that may be long, and are copied with every inlined reference."""
_BYTES_PER_STEP = 64
"""Bytes of such values that count as one step of work."""
_ARRAY_INDEX = re.compile(r"[0-9]{1,5}")
_REFERENCE_KEYWORDS = ("$ref", "$dynamicRef", "$recursiveRef")


@dataclass(frozen=True, slots=True)
class SchemaLocation:
    """A location in the original: its schema, path and draft."""

    schema: Any
    path: str
    draft: int

    def inside(self, schema: Any, *steps: str | int) -> "SchemaLocation":
        """Return a nested location."""
        path = "/".join([self.path, *(escape_pointer(str(step)) for step in steps)])
        return SchemaLocation(schema, path, draft_of(schema, self.draft))

    def words(self) -> Schema:
        """Return the keywords that have an effect in this draft; none for a boolean schema."""
        if not is_object(self.schema):
            return {}
        if self.draft == DRAFT_7 and "$ref" in self.schema:
            kept = ANNOTATIONS | {"$ref"}
            return {keyword: value for keyword, value in self.schema.items() if keyword in kept}
        ignored = _IGNORED_KEYWORDS[self.draft]
        return {keyword: value for keyword, value in self.schema.items() if keyword not in ignored}


class SourceSchema:
    """Index of the locations of one schema."""

    def __init__(self, schema: Schema) -> None:
        self.root = SchemaLocation(schema, "#", draft_of(schema, DRAFT_2020))
        self._anchors: dict[str, SchemaLocation] | None = None

    def references(self, words: Schema) -> Iterator[tuple[str, SchemaLocation]]:
        """Yield the references of a location: keyword and target."""
        for keyword in _REFERENCE_KEYWORDS:
            target = self.find(words[keyword]) if keyword in words else None
            if target is not None:
                yield keyword, target

    def find(self, reference: str) -> SchemaLocation | None:
        """Resolve a reference. Every reference of an admitted schema has a target."""
        pointer = unquote(reference[1:])
        if pointer and not pointer.startswith("/"):
            return self._named().get(pointer)
        at = self.root
        for step in pointer.split("/")[1:]:
            inner = _child_at(at.schema, step.replace("~1", "/").replace("~0", "~"))
            if inner is None:
                return None
            at = at.inside(*inner)
        return at

    def blame(self, path: str) -> Origin:
        """Return the origin of a loss that concerns a whole location: its own keyword, else the parent's."""
        spot = self.find(path)
        words = spot.schema if spot is not None and is_object(spot.schema) else {}
        telling = [keyword for keyword in words if keyword not in ANNOTATIONS]
        if telling or path == "#":
            return path, next(iter([*telling, *words]), "type")
        above, _, step = path.rpartition("/")
        return above, step.replace("~1", "/").replace("~0", "~")

    def _named(self) -> dict[str, SchemaLocation]:
        if self._anchors is None:
            self._anchors = dict(_anchors(self.root))
        return self._anchors


def copy_work(words: Schema) -> int:
    """Return the size of the location's long values, in steps of work."""
    return sum(
        len(orjson.dumps(words[keyword])) // _BYTES_PER_STEP
        for keyword in _LONG_VALUE_KEYWORDS & words.keys()
    )


def draft_of(schema: Any, inherited: int) -> int:
    """Return the draft of a schema; without a known `$schema` it is inherited."""
    said = str(schema.get("$schema") or "") if is_object(schema) else ""
    if "draft-07" in said:
        return DRAFT_7
    if "2019-09" in said:
        return DRAFT_2019
    return DRAFT_2020 if "2020-12" in said else inherited


def escape_pointer(step: str) -> str:
    """Escape one step of a JSON pointer."""
    return step.replace("~", "~0").replace("/", "~1")


def _child_at(at: Any, step: str) -> tuple[Any, str] | None:
    if is_object(at):
        return (at[step], step) if step in at else None
    listed = cast("list[Any]", at) if isinstance(at, list) else []
    return (listed[int(step)], step) if _ARRAY_INDEX.fullmatch(step) and int(step) < len(listed) else None


def _anchors(root: SchemaLocation) -> Iterator[tuple[str, SchemaLocation]]:
    waiting = [root]
    while waiting:
        spot = waiting.pop()
        if isinstance(spot.schema, list):
            waiting += [spot.inside(each, at) for at, each in enumerate(cast("list[Any]", spot.schema))]
        elif is_object(spot.schema):
            names = [spot.schema.get("$anchor"), spot.schema.get("$dynamicAnchor")]
            identity = spot.schema.get("$id")
            if isinstance(identity, str) and identity.startswith("#"):
                names.append(identity[1:])
            yield from ((name, spot) for name in names if isinstance(name, str))
            waiting += [spot.inside(*each) for each in _nested_schemas(spot.schema)]


def _nested_schemas(schema: Schema) -> Iterator[tuple[Any, str]]:
    return ((value, keyword) for keyword, value in schema.items() if keyword not in _VALUE_KEYWORDS)
