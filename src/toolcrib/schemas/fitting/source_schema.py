"""The schema that is fitted: what its references lead to, and which draft holds at a place of it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import unquote

import orjson

from toolcrib.schemas.fitting.losses import Origin
from toolcrib.schemas.subschemas import Schema, is_object

DRAFT_7, DRAFT_2019, DRAFT_2020 = 7, 2019, 2020

ANNOTATIONS = frozenset({
    *("$schema", "$id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$vocabulary", "$comment", "$defs"),
    *("definitions", "title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly"),
    *("format", "contentSchema"),
})  # fmt: skip
"""Keywords that say something and refuse nothing. Formats are among them: nobody here checks them."""
_VALUES = frozenset({"const", "enum", "default", "examples"})
"""Keywords that hold values, where no schema stands."""
_SINCE_2019 = frozenset({
    *("dependentRequired", "dependentSchemas", "unevaluatedProperties", "unevaluatedItems"),
    *("minContains", "maxContains"),
})  # fmt: skip
_IGNORED = {
    DRAFT_7: _SINCE_2019 | {"prefixItems", "$dynamicRef", "$recursiveRef"},
    DRAFT_2019: frozenset({"prefixItems", "$dynamicRef", "contentEncoding", "contentMediaType"}),
    DRAFT_2020: frozenset({"additionalItems", "$recursiveRef", "contentEncoding", "contentMediaType"}),
}
"""Keywords that refuse nothing in a draft: it does not know them yet, or any more, or only as a note."""
_LONG = _VALUES | {"description", "title", "pattern", "required", "dependentRequired"}
"""Keywords that may hold a lot; what is put in place many times is written as often."""
_STEP = 64
"""So many bytes of them are a step of work."""
_INDEX = re.compile(r"[0-9]{1,5}")
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")


@dataclass(frozen=True, slots=True)
class SchemaLocation:
    """A place of the original: what stands there, where that is, and which draft it is written in."""

    schema: Any
    path: str
    draft: int

    def inside(self, schema: Any, *steps: str | int) -> "SchemaLocation":
        """A place further in."""
        path = "/".join([self.path, *(escape(str(step)) for step in steps)])
        return SchemaLocation(schema, path, draft_of(schema, self.draft))

    def words(self) -> Schema:
        """The keywords that mean something here; none where the schema is only true or false."""
        if not is_object(self.schema):
            return {}
        if self.draft == DRAFT_7 and "$ref" in self.schema:
            kept = ANNOTATIONS | {"$ref"}
            return {keyword: value for keyword, value in self.schema.items() if keyword in kept}
        ignored = _IGNORED[self.draft]
        return {keyword: value for keyword, value in self.schema.items() if keyword not in ignored}


class SourceSchema:
    """One schema, asked for its places."""

    def __init__(self, schema: Schema) -> None:
        self.root = SchemaLocation(schema, "#", draft_of(schema, DRAFT_2020))
        self._anchors: dict[str, SchemaLocation] | None = None

    def references(self, words: Schema) -> Iterator[tuple[str, SchemaLocation]]:
        """List the references of a place, by keyword, and where each leads."""
        for keyword in _REFERENCES:
            target = self.find(words[keyword]) if keyword in words else None
            if target is not None:
                yield keyword, target

    def find(self, reference: str) -> SchemaLocation | None:
        """Follow a reference; a schema that was let in has none that lead nowhere."""
        pointer = unquote(reference[1:])
        if pointer and not pointer.startswith("/"):
            return self._named().get(pointer)
        at = self.root
        for step in pointer.split("/")[1:]:
            inner = _step(at.schema, step.replace("~1", "/").replace("~0", "~"))
            if inner is None:
                return None
            at = at.inside(*inner)
        return at

    def blame(self, path: str) -> Origin:
        """Name a keyword for what is said at a place as a whole: one of its own, else that it is there."""
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


def weight(words: Schema) -> int:
    """How much is said at a place itself, in steps of work: texts and values may be long."""
    return sum(len(orjson.dumps(words[keyword])) // _STEP for keyword in _LONG & words.keys())


def draft_of(schema: Any, inherited: int) -> int:
    """Tell the draft a schema is written in; what does not say so is as what it stands in."""
    said = str(schema.get("$schema") or "") if is_object(schema) else ""
    if "draft-07" in said:
        return DRAFT_7
    if "2019-09" in said:
        return DRAFT_2019
    return DRAFT_2020 if "2020-12" in said else inherited


def escape(step: str) -> str:
    """Write one step of a pointer."""
    return step.replace("~", "~0").replace("/", "~1")


def _step(at: Any, step: str) -> tuple[Any, str] | None:
    if is_object(at):
        return (at[step], step) if step in at else None
    listed = cast("list[Any]", at) if isinstance(at, list) else []
    return (listed[int(step)], step) if _INDEX.fullmatch(step) and int(step) < len(listed) else None


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
            waiting += [spot.inside(*each) for each in _within(spot.schema)]


def _within(schema: Schema) -> Iterator[tuple[Any, str]]:
    return ((value, keyword) for keyword, value in schema.items() if keyword not in _VALUES)
