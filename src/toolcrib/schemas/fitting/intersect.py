"""Intersects two shapes; what cannot be expressed in full is reported as a loss."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from toolcrib.schemas.fitting.losses import FittingLosses, Origin
from toolcrib.schemas.fitting.shapes import Branch, Constraint, UnionShape, mark
from toolcrib.schemas.fitting.simplify import tidied

MOST_BRANCHES = 64
"""Branches of one shape: intersecting unions multiplies them."""


def meet(one: UnionShape, other: UnionShape, why: Origin, ledger: FittingLosses) -> UnionShape:
    """Return the intersection of two shapes; if it is too large, the first one, with a loss."""
    notes, unions = {**other.notes, **one.notes}, one.unions + other.unions
    if one.is_anything:
        return UnionShape(one.path, other.branches, notes, unions)
    if other.is_anything:
        return UnionShape(one.path, one.branches, notes, unions)
    found: list[Branch] = []
    pairs = ((mine, theirs) for mine in one.branches for theirs in other.branches if mine.kind == theirs.kind)
    for mine, theirs in pairs:
        steps = 6 + (_parts(mine) + _parts(theirs)) // 8
        if len(found) == MOST_BRANCHES or not ledger.spend(steps):
            ledger.lose(why, "it is left out: together with the rest it can be too many things")
            return one
        both = _both(mine, theirs, why, ledger)
        if both is not None:
            found.append(both)
    return UnionShape(one.path, tuple(found), notes, unions)


def are_apart(one: UnionShape, other: UnionShape, budget: int, ledger: FittingLosses) -> bool:
    """Return whether two shapes are certainly disjoint."""
    scratch = FittingLosses(budget)
    apart = meet(one, other, ("#", ""), scratch).is_nothing
    ledger.work(scratch.done)
    return apart


def _parts(branch: Branch) -> int:
    """Return the size of a branch: its members, items, enum values and required names."""
    return sum(
        len(branch.get(keyword) or ()) for keyword in ("properties", "prefixItems", "enum", "required")
    )


def _both(mine: Branch, theirs: Branch, why: Origin, ledger: FittingLosses) -> Branch | None:
    said = dict(mine.said)
    for keyword, new in theirs.said.items():
        if keyword in _PARTS:
            continue
        held = said.get(keyword)
        agreed = new if held is None else _RULES[keyword](held, new)
        if agreed is None:
            ledger.lose(new.origin, f"{keyword} is left out: another one stands beside it")
        else:
            said[keyword] = agreed
    if mine.kind == "object":
        _members(mine, theirs, said, lambda a, b: _one_of(a, b, why, ledger))
    elif mine.kind == "array":
        _items(mine, theirs, said, lambda a, b: _one_of(a, b, why, ledger))
    return tidied(Branch(mine.kind, said, {**theirs.notes, **mine.notes}))


_PARTS = frozenset({"properties", "additionalProperties", "prefixItems", "items"})
_Join = Callable[[UnionShape | None, UnionShape | None], UnionShape | None]


def _one_of(
    mine: UnionShape | None, theirs: UnionShape | None, why: Origin, ledger: FittingLosses
) -> UnionShape | None:
    if mine is None or theirs is None:
        return mine or theirs
    return meet(mine, theirs, why, ledger)


def _members(mine: Branch, theirs: Branch, said: dict[str, Constraint], join: _Join) -> None:
    """Intersect the members; a branch that does not define a member constrains it as an additional one."""
    names = dict.fromkeys([*mine.members, *theirs.members])
    joined = {
        name: join(mine.members.get(name, mine.others), theirs.members.get(name, theirs.others))
        for name in names
    }
    _set(said, "properties", joined or None, mine, theirs)
    _set(said, "additionalProperties", join(mine.others, theirs.others), mine, theirs)


def _items(mine: Branch, theirs: Branch, said: dict[str, Constraint], join: _Join) -> None:
    places = range(max(len(mine.places), len(theirs.places)))
    joined = tuple(join(_at(mine, at), _at(theirs, at)) for at in places)
    _set(said, "prefixItems", joined or None, mine, theirs)
    _set(said, "items", join(mine.item, theirs.item), mine, theirs)


def _at(branch: Branch, at: int) -> UnionShape | None:
    return branch.places[at] if at < len(branch.places) else branch.item


def _set(said: dict[str, Constraint], keyword: str, value: Any, *held: Branch) -> None:
    if value is None:
        said.pop(keyword, None)
        return
    first = next(each.said[keyword] for each in held if keyword in each.said)
    said[keyword] = replace(first, value=value)


def _greater(held: Constraint, new: Constraint) -> Constraint:
    return new if new.value > held.value else held


def _smaller(held: Constraint, new: Constraint) -> Constraint:
    return new if new.value < held.value else held


def _same(held: Constraint, new: Constraint) -> Constraint | None:
    return held if held.value == new.value else None


def _values(held: Constraint, new: Constraint) -> Constraint:
    marks = {mark(value) for value in new.value}
    return replace(held, value=[value for value in held.value if mark(value) in marks])


def _names(held: Constraint, new: Constraint) -> Constraint:
    return replace(held, value=tuple(dict.fromkeys([*held.value, *new.value])))


def _multiple(held: Constraint, new: Constraint) -> Constraint | None:
    if isinstance(held.value, int) and isinstance(new.value, int):
        least = math.lcm(held.value, new.value)
        return replace(held, value=least) if least <= EXACT else None
    return _same(held, new)


EXACT = 2**53
"""Integers up to here are exact in every JSON parser."""


_RULES: dict[str, Callable[[Constraint, Constraint], Constraint | None]] = {
    "integer": _same,
    "minimum": _greater,
    "exclusiveMinimum": _greater,
    "maximum": _smaller,
    "exclusiveMaximum": _smaller,
    "multipleOf": _multiple,
    "minLength": _greater,
    "maxLength": _smaller,
    "pattern": _same,
    "minItems": _greater,
    "maxItems": _smaller,
    "uniqueItems": _same,
    "required": _names,
    "minProperties": _greater,
    "maxProperties": _smaller,
    "enum": _values,
}
