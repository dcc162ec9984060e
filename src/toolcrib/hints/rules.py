"""Validates hints: the type of every field, and constraints between fields."""

import re
from collections.abc import Callable, Iterator
from itertools import islice
from math import inf
from operator import attrgetter
from typing import Any

from toolcrib.hints.cycles import circle
from toolcrib.hints.field_table import RULES, Many, One
from toolcrib.hints.value_types import TUPLE, ValueType, is_tuple, shown
from toolcrib.model import Hints
from toolcrib.model.hints import Alignment, Impact

ROOT = "agentHints"
ENOUGH = 32
"""Faults reported at most: hints may come from untrusted sources."""
_NEUTRAL = 0.25
"""Absolute score up to which an alignment may be called neutral."""
_ROUNDED = 0.01
"""Tolerance of the ROI, relative above 1: benefit and effort may be rounded."""

_NO_VALUE = re.compile(rf"^({ROOT}\S*) is .*?: give ", re.DOTALL)

Values = Callable[[Any], tuple[Any, ...]]
Check = Callable[[Any], bool]
Between = Callable[[Any], str | None] | None
"""Returns the rest of a sentence that starts with the path of a part, or None if it is valid."""


class HintsError(ValueError):
    """Hints that violate a rule; `faults` lists each violation with its path."""

    def __init__(self, faults: tuple[str, ...]) -> None:
        super().__init__("; ".join(faults))
        self.faults = faults


def faults(hints: Hints) -> tuple[str, ...]:
    """Return the violations with their paths; empty if the hints are valid."""
    if hints.__class__ is not Hints:
        return tuple(_part_faults(Hints, hints, ROOT))
    if hints.sound:
        return ()
    if _is_sound(hints):
        # The object is frozen, so the result of the check can be cached on it.
        object.__setattr__(hints, "sound", True)
        return ()
    return tuple(islice(_named(hints, ROOT), ENOUGH))


def rules_of(faults: tuple[str, ...]) -> tuple[str, ...]:
    """Return faults without the rejected values, for readers who may not see those."""
    return tuple(_NO_VALUE.sub(r"\1: give ", fault, count=1) for fault in faults)


def checked(hints: Hints) -> Hints:
    """Return the hints if they are valid, else raise HintsError."""
    found = faults(hints)
    if found:
        raise HintsError(found)
    return hints


def _is_sound(part: Any) -> bool:
    """Fast check: it builds no paths and no messages."""
    values, checks, between = _QUICK[part.__class__]
    for value, (fits, default) in zip(values(part), checks):  # noqa: B905 - `strict` costs as much as a check
        # Defaults are always valid, and most fields have one.
        if value is not default and not fits(value):
            return False
    return between is None or between(part) is None


def _check(shape: ValueType | One | Many) -> Check:
    if isinstance(shape, ValueType):
        return shape.fits
    kind = shape.kind
    if isinstance(shape, One):
        return lambda value: value.__class__ is kind and _is_sound(value)

    def many(value: Any) -> bool:
        if not is_tuple(value):
            return False
        for each in value:  # noqa: SIM110 - a generator would double the cost
            if each.__class__ is not kind or not _is_sound(each):
                return False
        return True

    return many


def _named(part: Any, path: str) -> Iterator[str]:
    """Yield the violations in detail: the path, and what is required instead."""
    wrong: set[str] = set()
    for rule in RULES[part.__class__]:
        value = getattr(part, rule.name)
        if value is rule.default:
            continue
        for fault in _field_faults(rule.shape, value, f"{path}.{rule.key}"):
            wrong.add(rule.name)
            yield fault
    names, between = _BETWEEN.get(part.__class__, _NOTHING)
    # Constraints between fields are only checked if those fields are valid.
    fault = between(part) if between is not None and wrong.isdisjoint(names) else None
    if fault is not None:
        yield f"{path}{fault}"


def _field_faults(shape: ValueType | One | Many, value: Any, path: str) -> Iterator[str]:
    if isinstance(shape, One):
        yield from _part_faults(shape.kind, value, path)
    elif isinstance(shape, ValueType) and shape.each is None:
        if not shape.fits(value):
            yield f"{path} is {shown(value)}: give {shape.wanted}"
    elif not is_tuple(value):
        yield f"{path} is {shown(value)}: give {TUPLE}"
    else:
        for place, each in enumerate(value):
            yield from _item_faults(shape, each, f"{path}[{place}]")


def _item_faults(shape: ValueType | Many, value: Any, path: str) -> Iterator[str]:
    if isinstance(shape, Many):
        return _part_faults(shape.kind, value, path)
    return _field_faults(shape.each or shape, value, path)


def _part_faults(kind: type[Any], value: Any, path: str) -> Iterator[str]:
    if value.__class__ is kind:
        yield from _named(value, path)
    else:
        yield f"{path} is {shown(value)}: give {kind.__name__}"


def _impact(impact: Impact) -> str | None:
    wanted = roi(impact.benefit, impact.effort)
    if abs(impact.roi - wanted) <= _ROUNDED * max(1.0, wanted) < inf:
        return None
    return f".roi is {shown(impact.roi)}: give benefit by effort, which is {wanted:g}"


def roi(benefit: float, effort: float) -> float:
    """Return benefit divided by effort; 0 if there is no effort."""
    return benefit / effort if effort else 0.0


def _alignment(alignment: Alignment) -> str | None:
    word, score = alignment.alignment, alignment.score
    if word == "conflict":
        agrees, wanted = score < 0, "below 0"
    elif word == "neutral":
        agrees, wanted = abs(score) <= _NEUTRAL, f"within {_NEUTRAL} of 0"
    else:
        agrees, wanted = score > 0, "above 0"
    return None if agrees else f".score is {shown(score)}: {word} is {wanted}"


def _order(hints: Hints) -> str | None:
    """Check that dependencies and prerequisites of actions form no cycle."""
    waits = [(each.action, each.depends_on) for each in hints.dependencies]
    actions = hints.suggested_next_actions
    waits += [(each.action, each.prerequisites) for each in actions if each.prerequisites]
    found = circle(waits) if waits else ()
    if not found:
        return None
    where = ".dependencies" if hints.dependencies else ".suggestedNextActions"
    return f"{where} go round in a circle ({' -> '.join(found)}): leave one of them out"


_BETWEEN: dict[type[Any], tuple[tuple[str, ...], Between]] = {
    Impact: (("benefit", "effort", "roi"), _impact),
    Alignment: (("alignment", "score"), _alignment),
    Hints: (("suggested_next_actions", "dependencies"), _order),
}
"""The fields a constraint between fields involves, and the function that checks it."""
_NOTHING: tuple[tuple[str, ...], Between] = ((), None)


def _quick(kind: type[Any]) -> tuple[Values, tuple[tuple[Check, Any], ...], Between]:
    rules, (_, between) = RULES[kind], _BETWEEN.get(kind, _NOTHING)
    checks = tuple((_check(rule.shape), rule.default) for rule in rules)
    return attrgetter(*(rule.name for rule in rules)), checks, between


_QUICK = {kind: _quick(kind) for kind in RULES}
