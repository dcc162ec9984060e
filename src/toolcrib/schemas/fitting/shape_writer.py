"""Writes a shape as JSON Schema in a provider's dialect."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson

from toolcrib.schemas.fitting.dialects import Dialect, FittingLosses, Origin
from toolcrib.schemas.fitting.intersect import MAX_EXACT_INTEGER, highest, lowest
from toolcrib.schemas.fitting.shapes import (
    Branch,
    Constraint,
    UnionShape,
    any_item,
    anything,
    distinct,
    json_key,
    simplified,
    widened,
)
from toolcrib.schemas.fitting.source_schema import SourceSchema, escape_pointer
from toolcrib.schemas.subschemas import Schema, is_object

# --- Writes one branch of a union in a provider's dialect ---

_WriteNested = Callable[[UnionShape, int], Schema]
_LOOK_AROUND = re.compile(r"\(\?[=!<]")
_MAX_DESCRIBED_VALUES = 20
"""Values that a description lists at most, if `enum` cannot express them."""


class BranchWriter:
    """Writes the branches of one schema; `inside` writes nested shapes."""

    def __init__(
        self, dialect: Dialect, original: SourceSchema, ledger: FittingLosses, inside: _WriteNested
    ) -> None:
        self._dialect = dialect
        self._original = original
        self._ledger = ledger
        self._inside = inside
        self._parameter = None if dialect.parameter is None else re.compile(dialect.parameter)

    def write(self, branch: Branch, path: str, level: int) -> Schema:
        """Write one branch of the shape at a path."""
        self._ledger.work(4)
        said = dict(branch.said)
        told: Schema = {"type": branch.kind}
        if branch.kind == "number":
            self._number(said, told)
        elif branch.kind == "object":
            self._object(said, told, path, level)
        elif branch.kind == "array":
            self._array(branch, said, told, path, level)
        self._enum(said, told)
        for keyword, each in said.items():
            if self._dialect.knows(keyword) and not self._looks_around(keyword, each.value):
                told[keyword] = each.value
            else:
                self._ledger.lose(each.origin, f"{keyword} is not known there and left out")
        self._note(branch, told)
        return told

    def _looks_around(self, keyword: str, value: Any) -> bool:
        return self._dialect.strict and keyword == "pattern" and _LOOK_AROUND.search(value) is not None

    def _note(self, branch: Branch, told: Schema) -> None:
        form, formats = branch.notes.get("format"), self._dialect.formats
        taken = formats is None or (told["type"], form) in formats
        if form is not None and taken and self._dialect.knows("format"):
            told["format"] = form
        described = branch.notes.get("description")
        if described and self._dialect.knows("description"):
            more = told.get("description")
            told["description"] = described if more is None or more in described else f"{described} {more}"

    # --- numbers and lists of values

    def _number(self, said: dict[str, Constraint], told: Schema) -> None:
        if said.pop("integer", None) is not None:
            told["type"] = "integer"
        elif said.get("multipleOf") is not None and said["multipleOf"].value == 1:
            del said["multipleOf"]
            told["type"] = "integer"
        for keyword, plain, bound in (
            ("exclusiveMinimum", "minimum", lowest),
            ("exclusiveMaximum", "maximum", highest),
        ):
            if keyword in said and not self._dialect.knows(keyword) and self._dialect.knows(plain):
                self._bound(said, told["type"], keyword, plain, bound(said))

    def _bound(
        self, said: dict[str, Constraint], kind: str, keyword: str, plain: str, bound: int | None
    ) -> None:
        """Replace an exclusive bound by an inclusive one: the next integer, else the bound itself."""
        held = said[keyword]
        if kind == "integer" and bound is not None and abs(bound) <= MAX_EXACT_INTEGER:
            said[plain] = replace(held, value=bound)
        else:
            self._ledger.lose(held.origin, f"the bound itself is not excluded: {plain} is said")
            inner = said.get(plain)
            tighter = max if plain == "minimum" else min
            value = held.value if inner is None else tighter(inner.value, held.value)
            said[plain] = replace(held, value=value)
        del said[keyword]

    def _enum(self, said: dict[str, Constraint], told: Schema) -> None:
        held = said.get("enum")
        if held is None or (self._dialect.knows("enum") and not self._dialect.text_enums):
            return
        if self._dialect.knows("enum") and told["type"] == "string":
            self._texts(held, said)
            return
        del said["enum"]
        if told["type"] in ("number", "integer") and self._ranged(held, said, told):
            return
        self._ledger.lose(held.origin, "values that are no texts are told in the description alone")
        if len(held.value) <= _MAX_DESCRIBED_VALUES:
            told["description"] = f"One of {', '.join(_value_text(value) for value in held.value)}."

    def _texts(self, held: Constraint, said: dict[str, Constraint]) -> None:
        """Restrict an enum to non-empty strings; an empty one alone is expressed by its length."""
        texts = [text for text in held.value if text]
        if len(texts) == len(held.value):
            return
        del said["enum"]
        if texts:
            said["enum"] = replace(held, value=texts)
        elif self._dialect.knows("maxLength"):
            said["maxLength"] = replace(held, value=0)
            return
        self._ledger.lose(held.origin, "that the text may be empty is not said")

    def _ranged(self, held: Constraint, said: dict[str, Constraint], told: Schema) -> bool:
        """Replace a numeric enum by bounds; return whether the bounds accept exactly its values."""
        least, most = min(held.value), max(held.value)
        whole = all(float(value).is_integer() and abs(value) <= MAX_EXACT_INTEGER for value in held.value)
        if whole:
            told["type"], least, most = "integer", int(least), int(most)
        if self._dialect.knows("minimum") and self._dialect.knows("maximum"):
            told["minimum"], told["maximum"] = least, most
            return whole and "multipleOf" not in said and most - least + 1 == len(held.value)
        return False

    # --- objects and arrays

    def _object(self, said: dict[str, Constraint], told: Schema, path: str, level: int) -> None:
        named, rest, required = (
            said.pop(each, None) for each in ("properties", "additionalProperties", "required")
        )
        members: dict[str, UnionShape] = {} if named is None else named.value
        wanted: tuple[str, ...] = () if required is None else required.value
        members = {**members, **dict(_undeclared_required(wanted, members, rest, path))}
        if self._is_too_deep(level, members, named or required):
            members, wanted = {}, ()
        properties = dict(self._properties(members, frozenset(wanted), level))
        if properties or self._dialect.properties_said:
            told["properties"] = properties
        listed = list(properties) if self._dialect.strict else [each for each in wanted if each in properties]
        if listed:
            told["required"] = listed
        self._close(rest, told, path, level)

    def _is_too_deep(self, level: int, members: Any, said: Constraint | None) -> bool:
        deepest = self._dialect.deepest
        if deepest is None or level <= deepest or not members or said is None:
            return False
        self._ledger.lose(said.origin, f"it is more than {deepest} levels deep: what is within is not said")
        return True

    def _properties(
        self, members: dict[str, UnionShape], required: Collection[str], level: int
    ) -> Iterator[tuple[str, Schema]]:
        for name, shape in members.items():
            if self._parameter is not None and not self._parameter.fullmatch(name):
                self._ledger.lose(
                    self._named(shape, name), "a property may not have this name: it is left out"
                )
            elif shape.is_nothing:
                self._ledger.lose(self._named(shape, name), "that it must not be there is not said")
            else:
                if self._dialect.strict and name not in required:
                    self._ledger.lose(self._named(shape, name), "that it may be left out cannot be said")
                told = self._inside(shape, level + 1)
                yield name, self._described(told, name) if self._dialect.described else told

    def _named(self, shape: UnionShape, name: str) -> tuple[str, str]:
        """Return the origin of a property: its own name, if it has a path of its own in the original."""
        above = shape.path.removesuffix(f"/{escape_pointer(name)}")
        own = above != shape.path and above.endswith("/properties")
        return (above, name) if own else self._original.blame(shape.path)

    def _described(self, told: Schema, name: str) -> Schema:
        words = re.sub(r"[_\W]+|(?<=[a-z])(?=[A-Z])", " ", name).strip().lower()
        return told if told.get("description") else {**told, "description": f"The {words or 'value'}."}

    def _close(self, rest: Constraint | None, told: Schema, path: str, level: int) -> None:
        """Write the constraint on additional properties."""
        closed = rest is not None and rest.value.is_nothing
        if self._dialect.strict:
            told["additionalProperties"] = False
            if not closed:
                origin = self._original.blame(path) if rest is None else rest.origin
                self._ledger.lose(origin, "other properties are allowed, which is not said")
        elif rest is None:
            return
        elif not self._dialect.knows("additionalProperties"):
            if not rest.value.is_anything:
                self._ledger.lose(rest.origin, "what other properties there may be is not said")
        else:
            told["additionalProperties"] = False if closed else self._inside(rest.value, level + 1)

    def _array(
        self, branch: Branch, said: dict[str, Constraint], told: Schema, path: str, level: int
    ) -> None:
        places, rest = said.pop("prefixItems", None), said.pop("items", None)
        item: UnionShape | None = None if rest is None else rest.value
        if places is not None:
            self._ledger.lose(places.origin, "which item is which is not said, only what all of them may be")
            item = any_item(branch)
        if self._is_too_deep(level, item, places or rest):
            item = None
        if item is not None:
            told["items"] = self._inside(item, level + 1)
        elif self._dialect.items_said:
            told["items"] = self._unsaid(branch, path, level)
        if self._dialect.described and "items" in told:
            told["items"] = self._described(told["items"], "item")

    def _unsaid(self, branch: Branch, path: str, level: int) -> Schema:
        """Write a schema for unconstrained items, or a dummy if there can be none."""
        if not self._dialect.typed:
            return {}
        if branch.get("maxItems") == 0:
            return {"type": "string"}
        return self._inside(anything(path), level + 1)


def _undeclared_required(
    required: tuple[str, ...], members: dict[str, UnionShape], rest: Constraint | None, path: str
) -> Iterator[tuple[str, UnionShape]]:
    """Yield the required properties without a schema; the one for additional properties applies."""
    for name in required:
        if name not in members:
            yield name, anything(path) if rest is None else rest.value


def _value_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


# --- Writes shapes in a provider's dialect, and records what it cannot express ---

_ANNOTATIONS = ("title", "description", "default", "examples")
_IGNORED_IN_COMPARISON = (*_ANNOTATIONS, "format")
_TYPE_AND_ENUM = frozenset({"type", "enum"})
_BYTES_PER_STEP = 64
"""Bytes compared or copied that count as one step of work."""


class ShapeWriter:
    """Writes one schema."""

    def __init__(self, dialect: Dialect, original: SourceSchema, ledger: FittingLosses) -> None:
        self._dialect = dialect
        self._original = original
        self._ledger = ledger
        self._branches = BranchWriter(dialect, original, ledger, self.write)

    def arguments(self, shape: UnionShape) -> Schema:
        """Write the whole schema, with an object as its root."""
        branches: Sequence[Branch] = simplified(shape.branches)
        if not branches:
            self._ledger.lose(self._original.blame(shape.path), "no value will do, which is not said")
            branches = [Branch("object")]
        if len(branches) > 1 and not (self._dialect.root_unions and self._dialect.knows("anyOf")):
            branches = [self._folded(shape, branches, "arguments are not a union of several")]
        told = [self._branches.write(each, shape.path, 1) for each in branches]
        whole = told[0] if len(told) == 1 else {"type": "object", "anyOf": told}
        return self._noted(whole, shape.notes)

    def write(self, shape: UnionShape, level: int) -> Schema:
        """Write one shape at this nesting level of objects and arrays."""
        if shape.is_anything:
            return self._any(shape, level)
        return self._chosen(shape, simplified(shape.branches), level)

    def _chosen(self, shape: UnionShape, branches: Sequence[Branch], level: int) -> Schema:
        rest = [each for each in branches if each.kind != "null"]
        null = len(rest) < len(branches)
        if null and not self._dialect.nulls:
            self._lose_union(shape, "null is not said")
            null = False
            rest = rest or [Branch("string")]
        if len(rest) > 1 and not self._is_listed(rest) and not self._dialect.knows("anyOf"):
            same = [each for each in rest if each.kind == rest[0].kind]
            rest = [self._folded(shape, same, "one of several types is said, and no union")]
        notes = {**(rest[0].notes if len(rest) == 1 else {}), **shape.notes}
        told: list[Schema] = []
        seen: set[Any] = set()
        for each in rest:
            self._put(self._branches.write(each, shape.path, level), told, seen)
        return self._joined(told, notes, null=null)

    # --- unions

    def _put(self, one: Schema, told: list[Schema], seen: set[Any]) -> None:
        """Append an alternative unless it is a duplicate; plain enums of one type are merged."""
        if one.keys() == _TYPE_AND_ENUM:
            for at, other in enumerate(told):
                if other.keys() == _TYPE_AND_ENUM and other["type"] == one["type"]:
                    told[at] = {**other, "enum": distinct([*other["enum"], *one["enum"]])}
                    return
        self._ledger.work(len(orjson.dumps(one)) // _BYTES_PER_STEP)
        said = json_key(without_annotations(one))
        if said not in seen:
            seen.add(said)
            told.append(one)

    def _joined(self, told: list[Schema], notes: Mapping[str, Any], *, null: bool) -> Schema:
        dialect = self._dialect
        if not told:
            return self._noted({"type": "null"}, notes)
        if len(told) == 1 and not null:
            return self._noted(told[0], notes)
        if len(told) == 1 and dialect.nullable:
            return self._noted({**told[0], "nullable": True}, notes)
        merged = _merged_types([*told, {"type": "null"}] if null else told) if dialect.type_lists else None
        if merged is not None:
            return self._noted(merged, notes)
        if null and dialect.nullable:
            told = [{**each, "nullable": True} for each in told]
        elif null:
            told = [*told, {"type": "null"}]
        if not dialect.lone_unions:
            return self._noted({"anyOf": told}, notes)
        return {"anyOf": self._told_of(told, notes)}

    def _told_of(self, told: list[Schema], notes: Mapping[str, Any]) -> list[Schema]:
        """Move the description of a union into its members, as it may not accompany `anyOf`."""
        described = notes.get("description")
        if not described or not self._dialect.knows("description"):
            return told
        if all("description" in each for each in told if each != {"type": "null"}):
            first = told[0]
            if first["description"].startswith(described):
                return told
            return [{**first, "description": f"{described} {first['description']}"}, *told[1:]]
        self._ledger.work(len(told) * len(described) // _BYTES_PER_STEP)
        return [each if each == {"type": "null"} else {"description": described, **each} for each in told]

    def _is_listed(self, branches: Sequence[Branch]) -> bool:
        """Return whether a list of types is equivalent to the union."""
        kinds = {each.kind for each in branches}
        return self._dialect.type_lists and len(kinds) == len(branches) and not any(b.said for b in branches)

    def _folded(self, shape: UnionShape, branches: Sequence[Branch], message: str) -> Branch:
        self._lose_union(shape, message)
        self._ledger.work(len(branches) * sum(2 + len(each.members) for each in branches) // 16)
        return widened(branches) if len(branches) > 1 else branches[0]

    def _lose_union(self, shape: UnionShape, message: str) -> None:
        for origin in shape.unions or (self._original.blame(shape.path),):
            self._ledger.lose(origin, message)

    # --- anything, and notes

    def _any(self, shape: UnionShape, level: int) -> Schema:
        """Write a schema for any value; if types are required, a string or a union of some types."""
        if not self._dialect.typed:
            return self._noted({}, shape.notes)
        self._ledger.work(4)
        origin: Origin = self._original.blame(shape.path)
        self._ledger.lose(origin, "it may be anything, which is not said in full")
        kinds = ("string", "number", "boolean", "object") if self._dialect.knows("anyOf") else ("string",)
        some = replace(shape, branches=tuple(Branch(kind) for kind in kinds))
        return self._chosen(some, some.branches, level)

    def _noted(self, told: Schema, notes: Mapping[str, Any]) -> Schema:
        """Add the annotations of a shape; its description precedes the generated one."""
        known = {key: notes[key] for key in _ANNOTATIONS if key in notes and self._dialect.knows(key)}
        given = {key: value for key, value in told.items() if key not in known or key == "description"}
        if "description" in told and "description" in known:
            known["description"] = _joined_descriptions(known["description"], told["description"])
        return {**given, **known}


def _joined_descriptions(described: str, more: str) -> str:
    return described if more in described else f"{described} {more}"


def without_annotations(told: Schema) -> Schema:
    """Return a written schema without annotations."""
    return {
        keyword: _value_without_annotations(keyword, value)
        for keyword, value in told.items()
        if keyword not in _IGNORED_IN_COMPARISON
    }


def _value_without_annotations(keyword: str, value: Any) -> Any:
    if keyword == "properties":
        return {name: without_annotations(each) for name, each in value.items()}
    if keyword in ("items", "additionalProperties") and is_object(value):
        return without_annotations(value)
    return [without_annotations(each) for each in value] if keyword == "anyOf" else value


def _merged_types(told: list[Schema]) -> Schema | None:
    """Merge schemas into one with a list of types; None if that changes the meaning."""
    kinds = [str(each["type"]) for each in told]
    words = [key for each in told for key in each if key not in _TYPE_AND_ENUM]
    if len(set(words)) < len(words) or len({kind.replace("integer", "number") for kind in kinds}) < len(
        kinds
    ):
        return None
    merged: Schema = {key: value for each in told for key, value in each.items()}
    listing = [each for each in told if "enum" in each]
    if listing and any("enum" not in each and each["type"] != "null" for each in told):
        return None
    merged["type"] = kinds
    if listing:
        nulls = [None] if "null" in kinds else []
        merged["enum"] = [*(value for each in listing for value in each["enum"]), *nulls]
    return merged
