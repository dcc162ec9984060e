"""Writes shapes in a provider's dialect, and records what it cannot express."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson

from toolcrib.schemas.fitting.branch_writer import BranchWriter
from toolcrib.schemas.fitting.dialect import Dialect
from toolcrib.schemas.fitting.losses import FittingLosses, Origin
from toolcrib.schemas.fitting.shapes import Branch, UnionShape, distinct, mark, simplified
from toolcrib.schemas.fitting.source_schema import SourceSchema
from toolcrib.schemas.fitting.widen import folded
from toolcrib.schemas.subschemas import Schema, is_object

_SHOWN = ("title", "description", "default", "examples")
_NOTED = (*_SHOWN, "format")
_TYPES = frozenset({"type", "enum"})
_STEP = 64
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
        if one.keys() == _TYPES:
            for at, other in enumerate(told):
                if other.keys() == _TYPES and other["type"] == one["type"]:
                    told[at] = {**other, "enum": distinct([*other["enum"], *one["enum"]])}
                    return
        self._ledger.work(len(orjson.dumps(one)) // _STEP)
        said = mark(bare(one))
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
        merged = _listed([*told, {"type": "null"}] if null else told) if dialect.type_lists else None
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
        self._ledger.work(len(told) * len(described) // _STEP)
        return [each if each == {"type": "null"} else {"description": described, **each} for each in told]

    def _is_listed(self, branches: Sequence[Branch]) -> bool:
        """Return whether a list of types is equivalent to the union."""
        kinds = {each.kind for each in branches}
        return self._dialect.type_lists and len(kinds) == len(branches) and not any(b.said for b in branches)

    def _folded(self, shape: UnionShape, branches: Sequence[Branch], message: str) -> Branch:
        self._lose_union(shape, message)
        self._ledger.work(len(branches) * sum(2 + len(each.members) for each in branches) // 16)
        return folded(branches) if len(branches) > 1 else branches[0]

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
        known = {key: notes[key] for key in _SHOWN if key in notes and self._dialect.knows(key)}
        given = {key: value for key, value in told.items() if key not in known or key == "description"}
        if "description" in told and "description" in known:
            known["description"] = _added(known["description"], told["description"])
        return {**given, **known}


def _added(described: str, more: str) -> str:
    return described if more in described else f"{described} {more}"


def bare(told: Schema) -> Schema:
    """Return a written schema without annotations."""
    return {keyword: _bare_value(keyword, value) for keyword, value in told.items() if keyword not in _NOTED}


def _bare_value(keyword: str, value: Any) -> Any:
    if keyword == "properties":
        return {name: bare(each) for name, each in value.items()}
    if keyword in ("items", "additionalProperties") and is_object(value):
        return bare(value)
    return [bare(each) for each in value] if keyword == "anyOf" else value


def _listed(told: list[Schema]) -> Schema | None:
    """Merge schemas into one with a list of types; None if that changes the meaning."""
    kinds = [str(each["type"]) for each in told]
    words = [key for each in told for key in each if key not in _TYPES]
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
