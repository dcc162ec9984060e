"""Intersects and simplifies shapes."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

from toolcrib.schemas.fitting.dialects import FittingLosses, Origin
from toolcrib.schemas.fitting.shapes import Branch, Constraint, UnionShape, json_key, signature

# --- Normalizes a branch to its simplest form, and detects branches that accept nothing ---

Constraints = dict[str, Constraint]


def normalized(branch: Branch) -> Branch | None:
    """Return the normalized branch; None if it accepts no value."""
    said = dict(branch.said)
    tidy = _NORMALIZERS.get(branch.kind)
    if tidy is not None and not tidy(said):
        return None
    if "enum" in said and not said["enum"].value:
        return None
    return replace(branch, said=said)


def _normalize_number(said: Constraints) -> bool:
    if "enum" in said:
        _filter_enum(said, lambda value: _is_within(said, value))
        for keyword in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"):
            said.pop(keyword, None)
        return True
    low, high = lowest(said), highest(said)
    if "integer" in said:
        return low is None or high is None or low <= high
    return not _is_empty_range(said)


def _is_empty_range(said: Constraints) -> bool:
    lows = [(said[each].value, each == "exclusiveMinimum") for each in _LOWER_BOUNDS if each in said]
    highs = [(said[each].value, each == "exclusiveMaximum") for each in _UPPER_BOUNDS if each in said]
    return any(low > high or (low == high and (a or b)) for low, a in lows for high, b in highs)


_LOWER_BOUNDS = ("minimum", "exclusiveMinimum")
_UPPER_BOUNDS = ("maximum", "exclusiveMaximum")


def lowest(said: Constraints) -> int | None:
    """Return the smallest integer within the bounds; None without a lower bound."""
    lows: list[int] = []
    if "minimum" in said:
        lows.append(math.ceil(said["minimum"].value))
    if "exclusiveMinimum" in said:
        lows.append(math.floor(said["exclusiveMinimum"].value) + 1)
    return max(lows, default=None)


def highest(said: Constraints) -> int | None:
    """Return the largest integer within the bounds; None without an upper bound."""
    highs: list[int] = []
    if "maximum" in said:
        highs.append(math.floor(said["maximum"].value))
    if "exclusiveMaximum" in said:
        highs.append(math.ceil(said["exclusiveMaximum"].value) - 1)
    return min(highs, default=None)


def _is_within(said: Constraints, value: Any) -> bool:
    checks: dict[str, Callable[[Any, Any], bool]] = {
        "integer": lambda number, _: float(number).is_integer(),
        "minimum": lambda number, bound: number >= bound,
        "maximum": lambda number, bound: number <= bound,
        "exclusiveMinimum": lambda number, bound: number > bound,
        "exclusiveMaximum": lambda number, bound: number < bound,
    }
    return all(check(value, said[keyword].value) for keyword, check in checks.items() if keyword in said)


def _filter_enum(said: Constraints, fits: Callable[[Any], bool]) -> None:
    held = said["enum"]
    said["enum"] = replace(held, value=[value for value in held.value if fits(value)])


def _normalize_string(said: Constraints) -> bool:
    least, most = _value_or(said, "minLength", 0), _value_or(said, "maxLength", None)
    if "enum" in said:
        _filter_enum(said, lambda text: least <= len(text) and (most is None or len(text) <= most))
        said.pop("minLength", None)
        said.pop("maxLength", None)
    return most is None or least <= most


def _value_or(said: Constraints, keyword: str, default: Any) -> Any:
    return said[keyword].value if keyword in said else default


def _normalize_boolean(said: Constraints) -> bool:
    if "enum" in said and len(said["enum"].value) > 1:
        del said["enum"]
    return True


def _normalize_array(said: Constraints) -> bool:
    _close_array(said)
    _merge_equal_items(said)
    most = _value_or(said, "maxItems", None)
    if most is not None and most <= 1:
        said.pop("uniqueItems", None)
    return most is None or _value_or(said, "minItems", 0) <= most


def _close_array(said: Constraints) -> None:
    """Replace items that accept nothing by `maxItems`."""
    prefix = said.get("prefixItems")
    shapes: tuple[UnionShape, ...] = () if prefix is None else prefix.value
    for at, shape in enumerate(shapes):
        if shape.is_nothing:
            shapes = shapes[:at]
            _limit_items(said, at, cast("Constraint", prefix))
            said.pop("items", None)
            break
    rest = said.get("items")
    if rest is not None and rest.value.is_nothing:
        _limit_items(said, len(shapes), rest)
        del said["items"]
    most = _value_or(said, "maxItems", None)
    if most is not None and most <= len(shapes):
        shapes = shapes[:most]
        said.pop("items", None)
    if prefix is not None:
        said["prefixItems"] = replace(prefix, value=shapes)
        if not shapes:
            del said["prefixItems"]


def _limit_items(said: Constraints, count: int, because: Constraint) -> None:
    held = said.get("maxItems")
    if held is None or held.value > count:
        said["maxItems"] = Constraint(count, because.path, because.keyword)


def _merge_equal_items(said: Constraints) -> None:
    """Replace equal positional items by one schema for all items."""
    prefix, rest = said.get("prefixItems"), said.get("items")
    if prefix is None:
        return
    most = _value_or(said, "maxItems", None)
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


def _normalize_object(said: Constraints) -> bool:
    members: dict[str, UnionShape] = _value_or(said, "properties", {})
    required: tuple[str, ...] = _value_or(said, "required", ())
    rest: UnionShape | None = _value_or(said, "additionalProperties", None)
    if any(_is_impossible(name, members, rest) for name in required):
        return False
    if rest is not None and rest.is_nothing:
        members = {name: shape for name, shape in members.items() if not shape.is_nothing}
        if "properties" in said:
            said["properties"] = replace(said["properties"], value=members)
    if "properties" in said and not members:
        del said["properties"]
    return _normalize_counts(
        said, len(required), len(members) if rest is not None and rest.is_nothing else None
    )


def _is_impossible(name: str, members: dict[str, UnionShape], rest: UnionShape | None) -> bool:
    shape = members.get(name, rest)
    return shape is not None and shape.is_nothing


def _normalize_counts(said: Constraints, required: int, possible: int | None) -> bool:
    least, most = _value_or(said, "minProperties", 0), _value_or(said, "maxProperties", None)
    if least <= required:
        said.pop("minProperties", None)
    if possible is not None and most is not None and most >= possible:
        said.pop("maxProperties", None)
    greatest = [bound for bound in (most, possible) if bound is not None]
    return max(least, required) <= min(greatest, default=max(least, required))


_NORMALIZERS: dict[str, Callable[[Constraints], bool]] = {
    "number": _normalize_number,
    "string": _normalize_string,
    "boolean": _normalize_boolean,
    "array": _normalize_array,
    "object": _normalize_object,
}


# --- Intersects two shapes; what cannot be expressed in full is reported as a loss ---

MAX_BRANCHES = 64
"""Branches of one shape: intersecting unions multiplies them."""


def intersect(one: UnionShape, other: UnionShape, why: Origin, ledger: FittingLosses) -> UnionShape:
    """Return the intersection of two shapes; if it is too large, the first one, with a loss."""
    notes, unions = {**other.notes, **one.notes}, one.unions + other.unions
    if one.is_anything:
        return UnionShape(one.path, other.branches, notes, unions)
    if other.is_anything:
        return UnionShape(one.path, one.branches, notes, unions)
    found: list[Branch] = []
    pairs = ((mine, theirs) for mine in one.branches for theirs in other.branches if mine.kind == theirs.kind)
    for mine, theirs in pairs:
        steps = 6 + (_branch_size(mine) + _branch_size(theirs)) // 8
        if len(found) == MAX_BRANCHES or not ledger.spend(steps):
            ledger.lose(why, "it is left out: together with the rest it can be too many things")
            return one
        both = _intersect_branches(mine, theirs, why, ledger)
        if both is not None:
            found.append(both)
    return UnionShape(one.path, tuple(found), notes, unions)


def are_disjoint(one: UnionShape, other: UnionShape, budget: int, ledger: FittingLosses) -> bool:
    """Return whether two shapes are certainly disjoint."""
    scratch = FittingLosses(budget)
    apart = intersect(one, other, ("#", ""), scratch).is_nothing
    ledger.work(scratch.done)
    return apart


def _branch_size(branch: Branch) -> int:
    """Return the size of a branch: its members, items, enum values and required names."""
    return sum(
        len(branch.get(keyword) or ()) for keyword in ("properties", "prefixItems", "enum", "required")
    )


def _intersect_branches(mine: Branch, theirs: Branch, why: Origin, ledger: FittingLosses) -> Branch | None:
    said = dict(mine.said)
    for keyword, new in theirs.said.items():
        if keyword in _NESTED_KEYWORDS:
            continue
        held = said.get(keyword)
        agreed = new if held is None else _INTERSECT_KEYWORD[keyword](held, new)
        if agreed is None:
            ledger.lose(new.origin, f"{keyword} is left out: another one stands beside it")
        else:
            said[keyword] = agreed
    if mine.kind == "object":
        _intersect_members(mine, theirs, said, lambda a, b: _intersect_optional(a, b, why, ledger))
    elif mine.kind == "array":
        _intersect_items(mine, theirs, said, lambda a, b: _intersect_optional(a, b, why, ledger))
    return normalized(Branch(mine.kind, said, {**theirs.notes, **mine.notes}))


_NESTED_KEYWORDS = frozenset({"properties", "additionalProperties", "prefixItems", "items"})
_Join = Callable[[UnionShape | None, UnionShape | None], UnionShape | None]


def _intersect_optional(
    mine: UnionShape | None, theirs: UnionShape | None, why: Origin, ledger: FittingLosses
) -> UnionShape | None:
    if mine is None or theirs is None:
        return mine or theirs
    return intersect(mine, theirs, why, ledger)


def _intersect_members(mine: Branch, theirs: Branch, said: dict[str, Constraint], join: _Join) -> None:
    """Intersect the members; a branch that does not define a member constrains it as an additional one."""
    names = dict.fromkeys([*mine.members, *theirs.members])
    joined = {
        name: join(mine.members.get(name, mine.others), theirs.members.get(name, theirs.others))
        for name in names
    }
    _set_constraint(said, "properties", joined or None, mine, theirs)
    _set_constraint(said, "additionalProperties", join(mine.others, theirs.others), mine, theirs)


def _intersect_items(mine: Branch, theirs: Branch, said: dict[str, Constraint], join: _Join) -> None:
    places = range(max(len(mine.places), len(theirs.places)))
    joined = tuple(join(_item_at(mine, at), _item_at(theirs, at)) for at in places)
    _set_constraint(said, "prefixItems", joined or None, mine, theirs)
    _set_constraint(said, "items", join(mine.item, theirs.item), mine, theirs)


def _item_at(branch: Branch, at: int) -> UnionShape | None:
    return branch.places[at] if at < len(branch.places) else branch.item


def _set_constraint(said: dict[str, Constraint], keyword: str, value: Any, *held: Branch) -> None:
    if value is None:
        said.pop(keyword, None)
        return
    first = next(each.said[keyword] for each in held if keyword in each.said)
    said[keyword] = replace(first, value=value)


def _larger(held: Constraint, new: Constraint) -> Constraint:
    return new if new.value > held.value else held


def _smaller(held: Constraint, new: Constraint) -> Constraint:
    return new if new.value < held.value else held


def _equal_or_none(held: Constraint, new: Constraint) -> Constraint | None:
    return held if held.value == new.value else None


def _shared_values(held: Constraint, new: Constraint) -> Constraint:
    marks = {json_key(value) for value in new.value}
    return replace(held, value=[value for value in held.value if json_key(value) in marks])


def _all_names(held: Constraint, new: Constraint) -> Constraint:
    return replace(held, value=tuple(dict.fromkeys([*held.value, *new.value])))


def _least_multiple(held: Constraint, new: Constraint) -> Constraint | None:
    if isinstance(held.value, int) and isinstance(new.value, int):
        least = math.lcm(held.value, new.value)
        return replace(held, value=least) if least <= MAX_EXACT_INTEGER else None
    return _equal_or_none(held, new)


MAX_EXACT_INTEGER = 2**53
"""Integers up to here are exact in every JSON parser."""


_INTERSECT_KEYWORD: dict[str, Callable[[Constraint, Constraint], Constraint | None]] = {
    "integer": _equal_or_none,
    "minimum": _larger,
    "exclusiveMinimum": _larger,
    "maximum": _smaller,
    "exclusiveMaximum": _smaller,
    "multipleOf": _least_multiple,
    "minLength": _larger,
    "maxLength": _smaller,
    "pattern": _equal_or_none,
    "minItems": _larger,
    "maxItems": _smaller,
    "uniqueItems": _equal_or_none,
    "required": _all_names,
    "minProperties": _larger,
    "maxProperties": _smaller,
    "enum": _shared_values,
}
