"""A schema taken apart: the kinds of value it accepts, each with what a value must be like."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

from toolcrib.schemas.fitting.losses import Origin

KINDS = ("string", "number", "boolean", "object", "array", "null")
"""Every value is of exactly one of these; an integer is a number."""


@dataclass(frozen=True, slots=True)
class Constraint:
    """One thing that is asked of a value, and where the original asks it."""

    value: Any
    path: str
    keyword: str

    @property
    def origin(self) -> Origin:
        """Where it was said."""
        return self.path, self.keyword


@dataclass(frozen=True, slots=True)
class Branch:
    """Values of one kind that have all of what is said."""

    kind: str
    said: Mapping[str, Constraint] = field(default_factory=dict[str, Constraint])
    notes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What refuses nothing: a description, say."""
    signed: Any = field(default=None, init=False, repr=False, compare=False)
    """Its signature, once somebody has asked for it."""

    def get(self, keyword: str) -> Any:
        """What is said under a keyword, None where nothing is."""
        said = self.said.get(keyword)
        return None if said is None else said.value

    @property
    def members(self) -> "dict[str, UnionShape]":
        """What the properties of an object are, by name."""
        return self.get("properties") or {}

    @property
    def required(self) -> tuple[str, ...]:
        """The properties that an object must have."""
        return self.get("required") or ()

    @property
    def others(self) -> "UnionShape | None":
        """What all other properties are; None where nothing is said of them."""
        return self.get("additionalProperties")

    @property
    def places(self) -> "tuple[UnionShape, ...]":
        """What the first items of an array are, one by one."""
        return self.get("prefixItems") or ()

    @property
    def item(self) -> "UnionShape | None":
        """What all other items are; None where nothing is said of them."""
        return self.get("items")


@dataclass(frozen=True, slots=True)
class UnionShape:
    """Values that are of any of these branches; of none where there are none."""

    path: str
    """The place of the original it was read from."""
    branches: tuple[Branch, ...]
    notes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    unions: tuple[Origin, ...] = ()
    """What made it branch."""
    signed: Any = field(default=None, init=False, repr=False, compare=False)
    """Its signature, once somebody has asked for it."""

    @property
    def is_nothing(self) -> bool:
        """Whether no value will do."""
        return not self.branches

    @property
    def is_anything(self) -> bool:
        """Whether every value will do."""
        return {each.kind for each in self.branches if not each.said} == set(KINDS)


_ALL = tuple(Branch(kind) for kind in KINDS)


def anything(path: str) -> UnionShape:
    """Every value."""
    return UnionShape(path, _ALL)


def nothing(path: str) -> UnionShape:
    """No value."""
    return UnionShape(path, ())


def union(path: str, shapes: Iterable[UnionShape], *origins: Origin) -> UnionShape:
    """Values of any of some shapes; what is noted of a shape is noted of its branches."""
    shapes = tuple(shapes)
    branches = [
        replace(branch, notes={**branch.notes, **shape.notes})
        for shape in shapes
        for branch in shape.branches
    ]
    inner = tuple(each for shape in shapes for each in shape.unions)
    return UnionShape(path, simplified(branches), unions=(*origins, *inner))


def simplified(branches: Iterable[Branch]) -> tuple[Branch, ...]:
    """Leave out what is said twice, and put plain lists of values together."""
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
        alike = lists.setdefault(each.kind, []) if _is_list(each) else []
        alike.append(each)
        if len(alike) == 1:
            kept.append(each)
    return tuple(_as_one(lists[each.kind]) if _is_list(each) else each for each in kept)


def _is_list(branch: Branch) -> bool:
    return set(branch.said) == {"enum"} and not branch.notes


def _as_one(lists: list[Branch]) -> Branch:
    first = lists[0]
    if len(lists) == 1:
        return first
    values = distinct(value for each in lists for value in each.get("enum"))
    return replace(first, said={"enum": replace(first.said["enum"], value=values)})


def distinct(values: Iterable[Any]) -> list[Any]:
    """Leave out values that are equal as JSON."""
    found: dict[Any, Any] = {}
    for value in values:
        found.setdefault(mark(value), value)
    return list(found.values())


def mark(value: Any) -> Any:
    """Something to compare JSON values by: true is not 1, but 1.0 is."""
    if isinstance(value, dict):
        return "object", frozenset((key, mark(each)) for key, each in cast("dict[str, Any]", value).items())
    if isinstance(value, list):
        return "array", tuple(mark(each) for each in cast("list[Any]", value))
    return isinstance(value, bool), value


def signature(given: Branch | UnionShape) -> Any:
    """Something to compare branches and shapes by, whatever is noted of them. It is made once for each."""
    if given.signed is None:
        object.__setattr__(given, "signed", _made_of(given))
    return given.signed


def _made_of(given: Branch | UnionShape) -> Any:
    if isinstance(given, UnionShape):
        return frozenset(signature(each) for each in given.branches)
    return given.kind, frozenset((keyword, _signed(said.value)) for keyword, said in given.said.items())


def _signed(value: Any) -> Any:
    if isinstance(value, UnionShape):
        return signature(value)
    if isinstance(value, dict):
        return frozenset((name, _signed(each)) for name, each in cast("dict[str, Any]", value).items())
    if isinstance(value, tuple):
        return tuple(_signed(each) for each in cast("tuple[Any, ...]", value))
    return mark(value)
