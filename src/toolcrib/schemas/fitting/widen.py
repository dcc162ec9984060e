"""Widens several branches of one kind to the narrowest single one that covers them, approximately."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from toolcrib.schemas.fitting.shapes import Branch, Constraint, UnionShape, distinct, union

_WIDER: dict[str, Callable[[list[Any]], Any]] = {
    "minimum": min,
    "exclusiveMinimum": min,
    "minLength": min,
    "minItems": min,
    "minProperties": min,
    "maximum": max,
    "exclusiveMaximum": max,
    "maxLength": max,
    "maxItems": max,
    "maxProperties": max,
    "enum": lambda lists: distinct(value for values in lists for value in values),
}
_ALIKE = ("integer", "multipleOf", "pattern", "uniqueItems")


def folded(branches: Sequence[Branch]) -> Branch:
    """Merge several branches of the same kind into one.

    Only constraints that all of them have remain. A property is the union over the branches that define it.
    Strictly, a branch that leaves it open would allow any value, but such a schema has no information for a
    model.
    """
    first = branches[0]
    said: dict[str, Constraint] = {}
    for keyword, widest in _WIDER.items():
        held = _held(branches, keyword)
        if len(held) == len(branches):
            said[keyword] = Constraint(widest([each.value for each in held]), *held[0].origin)
    for keyword in _ALIKE:
        held = _held(branches, keyword)
        if len(held) == len(branches) and all(each.value == held[0].value for each in held):
            said[keyword] = held[0]
    if first.kind == "object":
        _members(branches, said)
    elif first.kind == "array":
        _items(branches, said)
    notes = next((each.notes for each in branches if "description" in each.notes), first.notes)
    return Branch(first.kind, said, notes)


def any_item(branch: Branch) -> UnionShape | None:
    """Return the shape of an item at any position; None if it is unconstrained."""
    rest, places = branch.item, branch.places
    if not places:
        return rest
    origin = branch.said["prefixItems"].origin
    most = branch.get("maxItems")
    if most is not None and most <= len(places):
        return union(places[0].path, places, origin)
    return None if rest is None else union(places[0].path, (*places, rest), origin)


def _held(branches: Iterable[Branch], keyword: str) -> list[Constraint]:
    return [each.said[keyword] for each in branches if keyword in each.said]


def _members(branches: Sequence[Branch], said: dict[str, Constraint]) -> None:
    required = _held(branches, "required")
    if len(required) == len(branches):
        others = [frozenset(other.value) for other in required]
        names = [each for each in required[0].value if all(each in other for other in others)]
        if names:
            said["required"] = Constraint(tuple(names), *required[0].origin)
    named = _held(branches, "properties")
    if named:
        names = dict.fromkeys(name for each in named for name in each.value)
        members = {name: _member(name, branches) for name in names}
        said["properties"] = Constraint(members, *named[0].origin)
    rest = _held(branches, "additionalProperties")
    if len(rest) == len(branches):
        said["additionalProperties"] = Constraint(_joined([each.value for each in rest]), *rest[0].origin)


def _member(name: str, branches: Sequence[Branch]) -> UnionShape:
    shapes = [each.members.get(name, each.others) for each in branches]
    return _joined([shape for shape in shapes if shape is not None])


def _items(branches: Sequence[Branch], said: dict[str, Constraint]) -> None:
    shapes = [any_item(each) for each in branches]
    told = [shape for shape in shapes if shape is not None]
    if len(told) == len(branches):
        held = [*_held(branches, "items"), *_held(branches, "prefixItems")]
        said["items"] = Constraint(_joined(told), *held[0].origin)


def _joined(shapes: Sequence[UnionShape]) -> UnionShape:
    if len(shapes) == 1:
        return shapes[0]
    notes = next((shape.notes for shape in shapes if shape.notes), shapes[0].notes)
    return replace(union(shapes[0].path, shapes), notes=notes)
