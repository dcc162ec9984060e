"""Shapes: schemas as values, and their widening to what a provider can express."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from toolcrib.schemas.fitting.dialects import Origin

# --- Shapes: a schema as a union of branches, one kind of value each, with constraints ---

KINDS = ("string", "number", "boolean", "object", "array", "null")
"""Every value is of exactly one of these kinds; integers are numbers."""


@dataclass(frozen=True, slots=True)
class Constraint:
    """A constraint, and its location in the original."""

    value: Any
    path: str
    keyword: str

    @property
    def origin(self) -> Origin:
        """Path and keyword in the original."""
        return self.path, self.keyword


@dataclass(frozen=True, slots=True)
class Branch:
    """Values of one kind that satisfy all constraints."""

    kind: str
    said: Mapping[str, Constraint] = field(default_factory=dict[str, Constraint])
    notes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Annotations, such as a description, which reject nothing."""
    signed: Any = field(default=None, init=False, repr=False, compare=False)
    """Cached signature."""

    def get(self, keyword: str) -> Any:
        """Return the value of a constraint; None if it is missing."""
        said = self.said.get(keyword)
        return None if said is None else said.value

    @property
    def members(self) -> "dict[str, UnionShape]":
        """Shapes of an object's properties, by name."""
        return self.get("properties") or {}

    @property
    def required(self) -> tuple[str, ...]:
        """Required properties of an object."""
        return self.get("required") or ()

    @property
    def others(self) -> "UnionShape | None":
        """Shape of additional properties; None if unconstrained."""
        return self.get("additionalProperties")

    @property
    def places(self) -> "tuple[UnionShape, ...]":
        """Shapes of an array's first items, by position."""
        return self.get("prefixItems") or ()

    @property
    def item(self) -> "UnionShape | None":
        """Shape of all other items; None if unconstrained."""
        return self.get("items")


@dataclass(frozen=True, slots=True)
class UnionShape:
    """The union of some branches; without branches it accepts nothing."""

    path: str
    """Path in the original."""
    branches: tuple[Branch, ...]
    notes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    unions: tuple[Origin, ...] = ()
    """Locations in the original that created the alternatives."""
    signed: Any = field(default=None, init=False, repr=False, compare=False)
    """Cached signature."""

    @property
    def is_nothing(self) -> bool:
        """Whether no value is valid."""
        return not self.branches

    @property
    def is_anything(self) -> bool:
        """Whether every value is valid."""
        return {each.kind for each in self.branches if not each.said} == set(KINDS)


_ALL_BRANCHES = tuple(Branch(kind) for kind in KINDS)


def anything(path: str) -> UnionShape:
    """Return a shape that accepts every value."""
    return UnionShape(path, _ALL_BRANCHES)


def nothing(path: str) -> UnionShape:
    """Return a shape that accepts no value."""
    return UnionShape(path, ())


def union(path: str, shapes: Iterable[UnionShape], *origins: Origin) -> UnionShape:
    """Return the union of some shapes; annotations of a shape are copied to its branches."""
    shapes = tuple(shapes)
    branches = [
        replace(branch, notes={**branch.notes, **shape.notes})
        for shape in shapes
        for branch in shape.branches
    ]
    inner = tuple(each for shape in shapes for each in shape.unions)
    return UnionShape(path, simplified(branches), unions=(*origins, *inner))


def simplified(branches: Iterable[Branch]) -> tuple[Branch, ...]:
    """Remove duplicate branches, and merge plain enums."""
    branches = tuple(branches)
    if len({each.kind for each in branches}) == len(branches):
        return branches
    kept: list[Branch] = []
    lists: dict[str, list[Branch]] = {}
    seen: set[Any] = set()
    for each in branches:
        mark = each.kind if not each.said else signature(each)
        if mark in seen:
            continue
        seen.add(mark)
        alike = lists.setdefault(each.kind, []) if _is_plain_enum(each) else []
        alike.append(each)
        if len(alike) == 1:
            kept.append(each)
    return tuple(_merged_enums(lists[each.kind]) if _is_plain_enum(each) else each for each in kept)


def _is_plain_enum(branch: Branch) -> bool:
    return set(branch.said) == {"enum"} and not branch.notes


def _merged_enums(lists: list[Branch]) -> Branch:
    first = lists[0]
    if len(lists) == 1:
        return first
    values = distinct(value for each in lists for value in each.get("enum"))
    return replace(first, said={"enum": replace(first.said["enum"], value=values)})


def distinct(values: Iterable[Any]) -> list[Any]:
    """Return the values without duplicates, compared as JSON."""
    found: dict[Any, Any] = {}
    for value in values:
        found.setdefault(json_key(value), value)
    return list(found.values())


def json_key(value: Any) -> Any:
    """Return a hashable key for JSON equality: true is not 1, but 1.0 is."""
    if isinstance(value, dict):
        return "object", frozenset(
            (key, json_key(each)) for key, each in cast("dict[str, Any]", value).items()
        )
    if isinstance(value, list):
        return "array", tuple(json_key(each) for each in cast("list[Any]", value))
    return isinstance(value, bool), value


def signature(given: Branch | UnionShape) -> Any:
    """Return a hashable key of a branch or shape without annotations. It is cached on the object."""
    if given.signed is None:
        object.__setattr__(given, "signed", _computed_signature(given))
    return given.signed


def _computed_signature(given: Branch | UnionShape) -> Any:
    if isinstance(given, UnionShape):
        return frozenset(signature(each) for each in given.branches)
    return given.kind, frozenset(
        (keyword, _value_signature(said.value)) for keyword, said in given.said.items()
    )


def _value_signature(value: Any) -> Any:
    if isinstance(value, UnionShape):
        return signature(value)
    if isinstance(value, dict):
        return frozenset(
            (name, _value_signature(each)) for name, each in cast("dict[str, Any]", value).items()
        )
    if isinstance(value, tuple):
        return tuple(_value_signature(each) for each in cast("tuple[Any, ...]", value))
    return json_key(value)


# --- Widens several branches of one kind to the narrowest single one that covers them, approximately ---

_WIDER_BOUND: dict[str, Callable[[list[Any]], Any]] = {
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
_KEPT_IF_EQUAL = ("integer", "multipleOf", "pattern", "uniqueItems")


def widened(branches: Sequence[Branch]) -> Branch:
    """Merge several branches of the same kind into one.

    Only constraints that all of them have remain. A property is the union over the branches that define it.
    Strictly, a branch that leaves it open would allow any value, but such a schema has no information for a
    model.
    """
    first = branches[0]
    said: dict[str, Constraint] = {}
    for keyword, widest in _WIDER_BOUND.items():
        held = _constraints_of(branches, keyword)
        if len(held) == len(branches):
            said[keyword] = Constraint(widest([each.value for each in held]), *held[0].origin)
    for keyword in _KEPT_IF_EQUAL:
        held = _constraints_of(branches, keyword)
        if len(held) == len(branches) and all(each.value == held[0].value for each in held):
            said[keyword] = held[0]
    if first.kind == "object":
        _widen_members(branches, said)
    elif first.kind == "array":
        _widen_items(branches, said)
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


def _constraints_of(branches: Iterable[Branch], keyword: str) -> list[Constraint]:
    return [each.said[keyword] for each in branches if keyword in each.said]


def _widen_members(branches: Sequence[Branch], said: dict[str, Constraint]) -> None:
    required = _constraints_of(branches, "required")
    if len(required) == len(branches):
        others = [frozenset(other.value) for other in required]
        names = [each for each in required[0].value if all(each in other for other in others)]
        if names:
            said["required"] = Constraint(tuple(names), *required[0].origin)
    named = _constraints_of(branches, "properties")
    if named:
        names = dict.fromkeys(name for each in named for name in each.value)
        members = {name: _widened_member(name, branches) for name in names}
        said["properties"] = Constraint(members, *named[0].origin)
    rest = _constraints_of(branches, "additionalProperties")
    if len(rest) == len(branches):
        said["additionalProperties"] = Constraint(_union_of([each.value for each in rest]), *rest[0].origin)


def _widened_member(name: str, branches: Sequence[Branch]) -> UnionShape:
    shapes = [each.members.get(name, each.others) for each in branches]
    return _union_of([shape for shape in shapes if shape is not None])


def _widen_items(branches: Sequence[Branch], said: dict[str, Constraint]) -> None:
    shapes = [any_item(each) for each in branches]
    told = [shape for shape in shapes if shape is not None]
    if len(told) == len(branches):
        held = [*_constraints_of(branches, "items"), *_constraints_of(branches, "prefixItems")]
        said["items"] = Constraint(_union_of(told), *held[0].origin)


def _union_of(shapes: Sequence[UnionShape]) -> UnionShape:
    if len(shapes) == 1:
        return shapes[0]
    notes = next((shape.notes for shape in shapes if shape.notes), shapes[0].notes)
    return replace(union(shapes[0].path, shapes), notes=notes)
