"""Strict functions: a schema of which nothing is left out, and arguments turned back to what was meant."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, cast

import orjson

from toolcrib.model import JsonObject
from toolcrib.schemas.dialects import OPENAI_STRICT
from toolcrib.schemas.fit_dialect import Fitted
from toolcrib.schemas.fit_ledger import Ledger
from toolcrib.schemas.fit_original import Original
from toolcrib.schemas.fit_read import Reader, kind_of
from toolcrib.schemas.fit_shapes import Branch, Shape, mark
from toolcrib.schemas.fit_write import Writer

MOST_PROPERTIES = 5_000
MOST_VALUES = 1_000
"""How many properties and values of enums a strict schema may hold."""


def strictly(schema: JsonObject) -> Fitted | None:
    """Fit a schema for a strict function; None where that cannot say exactly what the schema accepts.

    A property that may be left out arrives as null: `unstrict` leaves it out again.
    """
    original, ledger = Original(dict(schema)), Ledger()
    shape = Reader(original, ledger).arguments()
    told = Writer(OPENAI_STRICT, original, ledger).arguments(shape)
    if ledger.losses or not _is_turned_back(shape) or not _is_small(told):
        return None
    return Fitted(told)


def unstrict(arguments: JsonObject, schema: JsonObject) -> JsonObject:
    """Leave out the properties that are null because a strict function cannot leave them out."""
    if not _holds_null(arguments):
        return arguments
    return cast("JsonObject", _turned_back(arguments, _shape(orjson.dumps(dict(schema)))))


@lru_cache(maxsize=512)
def _shape(text: bytes) -> Shape:
    return Reader(Original(orjson.loads(text)), Ledger()).arguments()


def _holds_null(value: Any) -> bool:
    waiting = [value]
    while waiting:
        at: Any = waiting.pop()
        if at is None:
            return True
        if isinstance(at, dict):
            waiting.extend(cast("JsonObject", at).values())
        elif isinstance(at, list):
            waiting.extend(cast("list[Any]", at))
    return False


# --- the way back


def _turned_back(value: Any, shape: Shape) -> Any:
    branch = _branch(value, shape)
    if branch is None:
        return value
    if branch.kind == "array":
        item = branch.item
        return value if item is None else [_turned_back(each, item) for each in value]
    members = branch.members
    return {
        name: _turned_back(each, members[name]) if name in members else each
        for name, each in value.items()
        if each is not None or name in branch.required or name not in members or members[name].takes_null
    }


def _branch(value: Any, shape: Shape) -> Branch | None:
    """Find what a value was meant to be; None where there is nothing within to turn back, or no telling."""
    kind = kind_of(value)
    if kind not in ("object", "array"):
        return None
    found = [each for each in shape.branches if each.kind == kind]
    if len(found) > 1 and kind == "object":
        found = [each for each in found if _may_be(value, each)]
    return found[0] if len(found) == 1 else None


def _may_be(value: JsonObject, branch: Branch) -> bool:
    """Whether an object has the names of a branch, all of them, and its values where these are listed."""
    if branch.members.keys() != value.keys():
        return False
    return all(listed is None or mark(value[name]) in listed for name, listed in _lists(branch))


def _lists(branch: Branch) -> Iterator[tuple[str, set[Any] | None]]:
    """The values that each required property can have, None where these are not listed."""
    for name in branch.required:
        shape = branch.members.get(name)
        values = [] if shape is None else [each.get("enum") for each in shape.branches]
        yield name, None if not values or None in values else {mark(each) for some in values for each in some}


def _is_turned_back(shape: Shape) -> bool:
    """Whether it is always clear what a value was meant to be, wherever something can be left out."""
    holders = [each for each in shape.branches if each.kind in ("object", "array")]
    for at, one in enumerate(holders):
        for other in holders[at + 1 :]:
            if one.kind == other.kind and not _are_told_apart(one, other) and (_omits(one) or _omits(other)):
                return False
    return all(_is_turned_back(inner) for each in holders for inner in _within(each))


def _are_told_apart(one: Branch, other: Branch) -> bool:
    if one.kind == "array":
        return False
    if one.members.keys() != other.members.keys():
        return True
    listed = dict(_lists(other))
    return any(
        values is not None and (theirs := listed.get(name)) is not None and not values & theirs
        for name, values in _lists(one)
    )


def _omits(branch: Branch) -> bool:
    """Whether anything in it can be left out."""
    if any(name not in branch.required and not shape.takes_null for name, shape in branch.members.items()):
        return True
    return any(_omits(each) for inner in _within(branch) for each in inner.branches)


def _within(branch: Branch) -> list[Shape]:
    return [*branch.members.values(), *([] if branch.item is None else [branch.item])]


def _is_small(schema: JsonObject) -> bool:
    properties = values = 0
    waiting: list[Any] = [schema]
    while waiting:
        at: Any = waiting.pop()
        properties += len(at.get("properties", ()))
        values += len(at.get("enum", ()))
        waiting += [*at.get("properties", {}).values(), *at.get("anyOf", ()), *_items_of(at)]
    return properties <= MOST_PROPERTIES and values <= MOST_VALUES


def _items_of(schema: JsonObject) -> list[Any]:
    return [schema["items"]] if "items" in schema else []
