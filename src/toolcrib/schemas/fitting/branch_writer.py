"""Writes one branch of a union in a provider's dialect."""

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from typing import Any

from toolcrib.schemas.fitting.dialect import Dialect
from toolcrib.schemas.fitting.intersect import EXACT
from toolcrib.schemas.fitting.losses import FittingLosses
from toolcrib.schemas.fitting.shapes import Branch, Constraint, UnionShape, anything
from toolcrib.schemas.fitting.simplify import highest, lowest
from toolcrib.schemas.fitting.source_schema import SourceSchema, escape
from toolcrib.schemas.fitting.widen import any_item
from toolcrib.schemas.subschemas import Schema

_Inside = Callable[[UnionShape, int], Schema]
_LOOKS_AROUND = re.compile(r"\(\?[=!<]")
_MOST_TOLD = 20
"""Values that a description lists at most, if `enum` cannot express them."""


class BranchWriter:
    """Writes the branches of one schema; `inside` writes nested shapes."""

    def __init__(
        self, dialect: Dialect, original: SourceSchema, ledger: FittingLosses, inside: _Inside
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
        return self._dialect.strict and keyword == "pattern" and _LOOKS_AROUND.search(value) is not None

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
        if kind == "integer" and bound is not None and abs(bound) <= EXACT:
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
        if len(held.value) <= _MOST_TOLD:
            told["description"] = f"One of {', '.join(_spelled(value) for value in held.value)}."

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
        whole = all(float(value).is_integer() and abs(value) <= EXACT for value in held.value)
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
        members = {**members, **dict(_missing(wanted, members, rest, path))}
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
        above = shape.path.removesuffix(f"/{escape(name)}")
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


def _missing(
    required: tuple[str, ...], members: dict[str, UnionShape], rest: Constraint | None, path: str
) -> Iterator[tuple[str, UnionShape]]:
    """Yield the required properties without a schema; the one for additional properties applies."""
    for name in required:
        if name not in members:
            yield name, anything(path) if rest is None else rest.value


def _spelled(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
