"""Intersects and simplifies shapes."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

from toolcrib.schemas.fitting.dialects import FittingLosses, Origin
from toolcrib.schemas.fitting.shapes import Branch, Constraint, UnionShape, mark, signature

# --- Normalizes a branch to its simplest form, and detects branches that accept nothing ---

Words = dict[str, Constraint]


def tidied(branch: Branch) -> Branch | None:
    """Return the normalized branch; None if it accepts no value."""
    said = dict(branch.said)
    tidy = _BY_KIND.get(branch.kind)
    if tidy is not None and not tidy(said):
        return None
    if "enum" in said and not said["enum"].value:
        return None
    return replace(branch, said=said)


def _numbers(said: Words) -> bool:
    if "enum" in said:
        _keep(said, lambda value: _is_within(said, value))
        for keyword in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"):
            said.pop(keyword, None)
        return True
    low, high = lowest(said), highest(said)
    if "integer" in said:
        return low is None or high is None or low <= high
    return not _is_empty_range(said)


def _is_empty_range(said: Words) -> bool:
    lows = [(said[each].value, each == "exclusiveMinimum") for each in _LOWS if each in said]
    highs = [(said[each].value, each == "exclusiveMaximum") for each in _HIGHS if each in said]
    return any(low > high or (low == high and (a or b)) for low, a in lows for high, b in highs)


_LOWS = ("minimum", "exclusiveMinimum")
_HIGHS = ("maximum", "exclusiveMaximum")


def lowest(said: Words) -> int | None:
    """Return the smallest integer within the bounds; None without a lower bound."""
    lows: list[int] = []
    if "minimum" in said:
        lows.append(math.ceil(said["minimum"].value))
    if "exclusiveMinimum" in said:
        lows.append(math.floor(said["exclusiveMinimum"].value) + 1)
    return max(lows, default=None)


def highest(said: Words) -> int | None:
    """Return the largest integer within the bounds; None without an upper bound."""
    highs: list[int] = []
    if "maximum" in said:
        highs.append(math.floor(said["maximum"].value))
    if "exclusiveMaximum" in said:
        highs.append(math.ceil(said["exclusiveMaximum"].value) - 1)
    return min(highs, default=None)


def _is_within(said: Words, value: Any) -> bool:
    checks: dict[str, Callable[[Any, Any], bool]] = {
        "integer": lambda number, _: float(number).is_integer(),
        "minimum": lambda number, bound: number >= bound,
        "maximum": lambda number, bound: number <= bound,
        "exclusiveMinimum": lambda number, bound: number > bound,
        "exclusiveMaximum": lambda number, bound: number < bound,
    }
    return all(check(value, said[keyword].value) for keyword, check in checks.items() if keyword in said)


def _keep(said: Words, fits: Callable[[Any], bool]) -> None:
    held = said["enum"]
    said["enum"] = replace(held, value=[value for value in held.value if fits(value)])


def _texts(said: Words) -> bool:
    least, most = _number(said, "minLength", 0), _number(said, "maxLength", None)
    if "enum" in said:
        _keep(said, lambda text: least <= len(text) and (most is None or len(text) <= most))
        said.pop("minLength", None)
        said.pop("maxLength", None)
    return most is None or least <= most


def _number(said: Words, keyword: str, default: Any) -> Any:
    return said[keyword].value if keyword in said else default


def _booleans(said: Words) -> bool:
    if "enum" in said and len(said["enum"].value) > 1:
        del said["enum"]
    return True


def _arrays(said: Words) -> bool:
    _close(said)
    _even_out(said)
    most = _number(said, "maxItems", None)
    if most is not None and most <= 1:
        said.pop("uniqueItems", None)
    return most is None or _number(said, "minItems", 0) <= most


def _close(said: Words) -> None:
    """Replace items that accept nothing by `maxItems`."""
    prefix = said.get("prefixItems")
    shapes: tuple[UnionShape, ...] = () if prefix is None else prefix.value
    for at, shape in enumerate(shapes):
        if shape.is_nothing:
            shapes = shapes[:at]
            _at_most(said, at, cast("Constraint", prefix))
            said.pop("items", None)
            break
    rest = said.get("items")
    if rest is not None and rest.value.is_nothing:
        _at_most(said, len(shapes), rest)
        del said["items"]
    most = _number(said, "maxItems", None)
    if most is not None and most <= len(shapes):
        shapes = shapes[:most]
        said.pop("items", None)
    if prefix is not None:
        said["prefixItems"] = replace(prefix, value=shapes)
        if not shapes:
            del said["prefixItems"]


def _at_most(said: Words, count: int, because: Constraint) -> None:
    held = said.get("maxItems")
    if held is None or held.value > count:
        said["maxItems"] = Constraint(count, because.path, because.keyword)


def _even_out(said: Words) -> None:
    """Replace equal positional items by one schema for all items."""
    prefix, rest = said.get("prefixItems"), said.get("items")
    if prefix is None:
        return
    most = _number(said, "maxItems", None)
    ends = most is not None and most <= len(prefix.value)
    places: tuple[UnionShape, ...] = prefix.value
    if rest is None and not ends:
        if all(shape.is_anything for shape in places):
            del said["prefixItems"]
        return
    alike = {signature(shape) for shape in (*places, *(() if ends or rest is None else (rest.value,)))}
    if len(alike) == 1:
        del said["prefixItems"]
        said["items"] = Constraint(places[0], prefix.path, prefix.keyword)


def _objects(said: Words) -> bool:
    members: dict[str, UnionShape] = _number(said, "properties", {})
    required: tuple[str, ...] = _number(said, "required", ())
    rest: UnionShape | None = _number(said, "additionalProperties", None)
    if any(_is_missing(name, members, rest) for name in required):
        return False
    if rest is not None and rest.is_nothing:
        members = {name: shape for name, shape in members.items() if not shape.is_nothing}
        if "properties" in said:
            said["properties"] = replace(said["properties"], value=members)
    if "properties" in said and not members:
        del said["properties"]
    return _counted(said, len(required), len(members) if rest is not None and rest.is_nothing else None)


def _is_missing(name: str, members: dict[str, UnionShape], rest: UnionShape | None) -> bool:
    shape = members.get(name, rest)
    return shape is not None and shape.is_nothing


def _counted(said: Words, required: int, possible: int | None) -> bool:
    least, most = _number(said, "minProperties", 0), _number(said, "maxProperties", None)
    if least <= required:
        said.pop("minProperties", None)
    if possible is not None and most is not None and most >= possible:
        said.pop("maxProperties", None)
    greatest = [bound for bound in (most, possible) if bound is not None]
    return max(least, required) <= min(greatest, default=max(least, required))


_BY_KIND: dict[str, Callable[[Words], bool]] = {
    "number": _numbers,
    "string": _texts,
    "boolean": _booleans,
    "array": _arrays,
    "object": _objects,
}


# --- Intersects two shapes; what cannot be expressed in full is reported as a loss ---

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
