"""Parses and validates hints: ranges, consistency, cycles and scales."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import MISSING
from graphlib import CycleError, TopologicalSorter
from itertools import islice
from math import inf
from operator import attrgetter
from typing import Any, TypeVar, cast

from toolcrib.hints.field_table import RULES, FieldRule, Many, One
from toolcrib.hints.value_types import (
    MAX_ITEMS,
    TUPLE_DESCRIPTION,
    ValueType,
    is_number,
    is_share,
    is_tuple,
    value_description,
)
from toolcrib.model import Evidence, Hints, JsonObject
from toolcrib.model.hints import Alignment, AlignmentWord, Freshness, Impact, Level, Quality, Validity

# --- Cycle detection in dependencies ---


def find_cycle(edges: Collection[tuple[str, tuple[str, ...]]]) -> tuple[str, ...]:
    """Return the names of a dependency cycle, the first one repeated at the end; empty if there is none."""
    names = {name for name, _ in edges}
    # Fast path: a cycle needs a name that both has a dependency and is one, which is rare.
    if all(map(names.isdisjoint, (dependencies for _, dependencies in edges))):
        return ()
    order: TopologicalSorter[str] = TopologicalSorter()
    for name, dependencies in edges:
        order.add(name, *dependencies)
    try:
        order.prepare()
    except CycleError as error:
        return tuple(reversed(error.args[1]))
    return ()


# --- Confidence in a result: one formula over five factors, each from 0 (bad) to 1 (good) ---

QUALITY_VALUES: dict[Quality, float] = {"high": 0.98, "medium": 0.85, "unknown": 0.75, "low": 0.55}
"""Numeric value of each quality word."""
FRESHNESS_VALUES: dict[Freshness, float] = {
    "current": 1.0,
    "fresh": 0.95,
    "recent": 0.8,
    "unknown": 0.6,
    "stale": 0.4,
    "outdated": 0.1,
}
"""Numeric value of each freshness word."""
CONFIDENCE_FLOORS = {"freshness": 0.6, "completeness": 0.5, "validation": 0.3, "success": 0.4}
"""Factor that remains if a component is 0."""

EXPLAINED_FAILURE, UNEXPECTED_FAILURE = 0.8, 0.3
"""Validation of a failure: explained by a known rule, or by an unexpected fault."""

_PRIOR_SUCCESS, _PRIOR_CALLS = 0.9, 4.0
"""Prior for success: a rate of 0.9, weighted as four calls."""


def confidence(evidence: Evidence) -> float:
    """Return quality times a factor for each other component; it is monotonic in all five."""
    product = evidence.quality
    for name, floor in CONFIDENCE_FLOORS.items():
        product *= floor + (1.0 - floor) * getattr(evidence, name)
    return round(min(1.0, max(0.0, product)), 3)


def smoothed_success(rate: float, calls: int) -> float:
    """Return the Bayesian average of a success rate: the prior dominates while there are few calls."""
    return (rate * calls + _PRIOR_SUCCESS * _PRIOR_CALLS) / (calls + _PRIOR_CALLS)


# --- Validates hints: the type of every field, and constraints between fields ---

ROOT_PATH = "agentHints"
MAX_HINT_FAULTS = 32
"""Faults reported at most: hints may come from untrusted sources."""
_MAX_NEUTRAL_SCORE = 0.25
"""Absolute score up to which an alignment may be called neutral."""
_ROI_TOLERANCE = 0.01
"""Tolerance of the ROI, relative above 1: benefit and effort may be rounded."""

_REJECTED_VALUE = re.compile(rf"^({ROOT_PATH}\S*) is .*?: give ", re.DOTALL)

Values = Callable[[Any], tuple[Any, ...]]
Check = Callable[[Any], bool]
CrossFieldCheck = Callable[[Any], str | None] | None
"""Returns the rest of a sentence that starts with the path of a part, or None if it is valid."""


class HintsError(ValueError):
    """Hints that violate a rule; `faults` lists each violation with its path."""

    def __init__(self, faults: tuple[str, ...]) -> None:
        super().__init__("; ".join(faults))
        self.faults = faults


def faults(hints: Hints) -> tuple[str, ...]:
    """Return the violations with their paths; empty if the hints are valid."""
    if hints.__class__ is not Hints:
        return tuple(_part_faults(Hints, hints, ROOT_PATH))
    if hints.sound:
        return ()
    if _is_valid(hints):
        # The object is frozen, so the result of the check can be cached on it.
        object.__setattr__(hints, "sound", True)
        return ()
    return tuple(islice(_faults_in(hints, ROOT_PATH), MAX_HINT_FAULTS))


def rules_of(faults: tuple[str, ...]) -> tuple[str, ...]:
    """Return faults without the rejected values, for readers who may not see those."""
    return tuple(_REJECTED_VALUE.sub(r"\1: give ", fault, count=1) for fault in faults)


def checked(hints: Hints) -> Hints:
    """Return the hints if they are valid, else raise HintsError."""
    if violations := faults(hints):
        raise HintsError(violations)
    return hints


def _is_valid(part: Any) -> bool:
    """Fast check: it builds no paths and no messages."""
    values, checks, check_across = _FAST_CHECKS[part.__class__]
    for value, (fits, default) in zip(values(part), checks):  # noqa: B905 - `strict` costs as much as a check
        # Defaults are always valid, and most fields have one.
        if value is not default and not fits(value):
            return False
    return check_across is None or check_across(part) is None


def _check_of(shape: ValueType | One | Many) -> Check:
    if isinstance(shape, ValueType):
        return shape.fits
    kind = shape.kind
    if isinstance(shape, One):
        return lambda value: value.__class__ is kind and _is_valid(value)

    def is_valid_tuple(value: Any) -> bool:
        if not is_tuple(value):
            return False
        for each in value:  # noqa: SIM110 - a generator would double the cost
            if each.__class__ is not kind or not _is_valid(each):
                return False
        return True

    return is_valid_tuple


def _faults_in(part: Any, path: str) -> Iterator[str]:
    """Yield the violations in detail: the path, and what is required instead."""
    invalid: set[str] = set()
    for rule in RULES[part.__class__]:
        value = getattr(part, rule.name)
        if value is rule.default:
            continue
        for fault in _field_faults(rule.shape, value, f"{path}.{rule.key}"):
            invalid.add(rule.name)
            yield fault
    names, check_across = _CROSS_FIELD_CHECKS.get(part.__class__, _NO_CROSS_FIELD_CHECK)
    # Constraints between fields are only checked if those fields are valid.
    fault = check_across(part) if check_across is not None and invalid.isdisjoint(names) else None
    if fault is not None:
        yield f"{path}{fault}"


def _field_faults(shape: ValueType | One | Many, value: Any, path: str) -> Iterator[str]:
    if isinstance(shape, One):
        yield from _part_faults(shape.kind, value, path)
    elif isinstance(shape, ValueType) and shape.each is None:
        if not shape.fits(value):
            yield f"{path} is {value_description(value)}: give {shape.description}"
    elif not is_tuple(value):
        yield f"{path} is {value_description(value)}: give {TUPLE_DESCRIPTION}"
    else:
        item_shape = One(shape.kind) if isinstance(shape, Many) else shape.each or shape
        for index, item in enumerate(value):
            yield from _field_faults(item_shape, item, f"{path}[{index}]")


def _part_faults(kind: type[Any], value: Any, path: str) -> Iterator[str]:
    if value.__class__ is kind:
        yield from _faults_in(value, path)
    else:
        yield f"{path} is {value_description(value)}: give {kind.__name__}"


def _impact(impact: Impact) -> str | None:
    expected = roi(impact.benefit, impact.effort)
    if abs(impact.roi - expected) <= _ROI_TOLERANCE * max(1.0, expected) < inf:
        return None
    return f".roi is {value_description(impact.roi)}: give benefit by effort, which is {expected:g}"


def roi(benefit: float, effort: float) -> float:
    """Return benefit divided by effort; 0 if there is no effort."""
    return benefit / effort if effort else 0.0


def _alignment(alignment: Alignment) -> str | None:
    word, score = alignment.alignment, alignment.score
    if word == "conflict":
        agrees, required = score < 0, "below 0"
    elif word == "neutral":
        agrees, required = abs(score) <= _MAX_NEUTRAL_SCORE, f"within {_MAX_NEUTRAL_SCORE} of 0"
    else:
        agrees, required = score > 0, "above 0"
    return None if agrees else f".score is {value_description(score)}: {word} is {required}"


def _dependency_cycle(hints: Hints) -> str | None:
    """Check that dependencies and prerequisites of actions form no cycle."""
    edges = [(each.action, each.depends_on) for each in hints.dependencies]
    actions = hints.suggested_next_actions
    edges += [(each.action, each.prerequisites) for each in actions if each.prerequisites]
    cycle = find_cycle(edges) if edges else ()
    if not cycle:
        return None
    path = ".dependencies" if hints.dependencies else ".suggestedNextActions"
    return f"{path} go round in a circle ({' -> '.join(cycle)}): leave one of them out"


_CROSS_FIELD_CHECKS: dict[type[Any], tuple[tuple[str, ...], CrossFieldCheck]] = {
    Impact: (("benefit", "effort", "roi"), _impact),
    Alignment: (("alignment", "score"), _alignment),
    Hints: (("suggested_next_actions", "dependencies"), _dependency_cycle),
}
"""The fields a constraint between fields involves, and the function that checks it."""
_NO_CROSS_FIELD_CHECK: tuple[tuple[str, ...], CrossFieldCheck] = ((), None)


def _fast_checks(kind: type[Any]) -> tuple[Values, tuple[tuple[Check, Any], ...], CrossFieldCheck]:
    rules, (_, check_across) = RULES[kind], _CROSS_FIELD_CHECKS.get(kind, _NO_CROSS_FIELD_CHECK)
    checks = tuple((_check_of(rule.shape), rule.default) for rule in rules)
    return attrgetter(*(rule.name for rule in rules)), checks, check_across


_FAST_CHECKS = {kind: _fast_checks(kind) for kind in RULES}


# --- Parses hints from the JSON format for agents; errors name the path of each invalid value ---

_INTERNAL_FIELD = "evidence"
_CALCULATED = {(Hints, "confidence")}
_REQUIRED = {(Impact, "benefit"), (Impact, "effort")}


def read(document: JsonObject) -> Hints:
    """Parse hints. Fields with a default, and those that can be calculated, are optional.

    A missing `confidence` is calculated from `sourceQuality`, a missing `roi` from benefit and effort.
    """
    faults: list[str] = []
    hints = _parsed_part(Hints, document, ROOT_PATH, faults)
    if faults:
        raise HintsError(tuple(faults[:MAX_HINT_FAULTS]))
    return checked(hints)


def _parsed_part(kind: type[Any], value: Any, path: str, faults: list[str]) -> Any:
    if not isinstance(value, Mapping):
        faults.append(f"{path} is {value_description(value)}: give an object")
        return None
    fields = cast("Mapping[Any, Any]", value)
    rules = {rule.key: rule for rule in RULES[kind] if rule.name != _INTERNAL_FIELD}
    unknown = islice((key for key in fields if key not in rules), MAX_HINT_FAULTS)
    faults += (f"{path} has a field {value_description(key)}: there is none" for key in unknown)
    values: dict[str, Any] = {}
    for key, rule in rules.items():
        field = (kind, rule.name)
        if fields.get(key) is not None:
            values[rule.name] = _parsed_value(rule, fields[key], f"{path}.{key}", faults)
        elif field in _REQUIRED or (rule.default is MISSING and field not in _CALCULATED):
            faults.append(f"{path} has no {key}: it is needed")
    return None if faults else kind(**_with_calculated(kind, values))


def _parsed_value(rule: FieldRule, value: Any, path: str, faults: list[str]) -> Any:
    if isinstance(rule.shape, One):
        return _parsed_part(rule.shape.kind, value, path, faults)
    if isinstance(value, list | tuple):
        return _parsed_list(rule, cast("list[Any]", value), path, faults)
    if isinstance(rule.shape, Many):
        faults.append(f"{path} is {value_description(value)}: give a list")
    return value


def _parsed_list(rule: FieldRule, items: list[Any], path: str, faults: list[str]) -> tuple[Any, ...]:
    if len(items) > MAX_ITEMS:
        faults.append(f"{path} is {value_description(items)}: give at most {MAX_ITEMS}")
        return ()
    if not isinstance(rule.shape, Many):
        return tuple(items)
    kind = rule.shape.kind
    return tuple(_parsed_part(kind, item, f"{path}[{index}]", faults) for index, item in enumerate(items))


def _with_calculated(kind: type[Any], values: dict[str, Any]) -> dict[str, Any]:
    """Add the fields that are calculated from others."""
    if kind is Impact and "roi" not in values:
        benefit, effort = values["benefit"], values["effort"]
        return values | {"roi": roi(benefit, effort)} if is_number(benefit) and is_number(effort) else values
    if kind is Hints and "confidence" not in values:
        word = values.get("source_quality", "unknown")
        number = next((each for known, each in QUALITY_VALUES.items() if known == word), 0.0)
        evidence = Evidence(quality=number)
        return values | {"evidence": evidence, "confidence": confidence(evidence)}
    return values


# --- Scales between numbers and words: quality, freshness, validity, severity, alignment ---

W = TypeVar("W", bound=str)
_Scale = tuple[tuple[float, W], ...]
"""Words with the lower bound of each, in descending order."""

_QUALITY_SCALE: _Scale[Quality] = ((0.92, "high"), (0.7, "medium"), (0, "low"))
_FRESHNESS_SCALE: _Scale[Freshness] = (
    (1, "current"),
    (0.9, "fresh"),
    (0.7, "recent"),
    (0.3, "stale"),
    (0, "outdated"),
)
VALIDITY_SCALE: _Scale[Validity] = (
    (inf, "indefinite"),
    (86_400, "long"),
    (3_600, "medium"),
    (300, "short"),
    (0, "immediate"),
)
"""Minimum duration of each word, in seconds."""
_SEVERITY_SCALE: _Scale[Level] = ((0.5, "critical"), (0.25, "high"), (0.08, "medium"), (0, "low"))
_ALIGNMENT_SCALE: _Scale[AlignmentWord] = (
    (0.7, "strong"),
    (0.4, "moderate"),
    (0.1, "weak"),
    (-0.1, "neutral"),
    (-1, "conflict"),
)


def quality(value: Quality | float) -> tuple[Quality, float]:
    """Return the word and the number for a source's quality, given either of them."""
    return _word_and_number("quality", value, QUALITY_VALUES, _QUALITY_SCALE)


def freshness(value: Freshness | float) -> tuple[Freshness, float]:
    """Return the word and the number for freshness, given either of them."""
    return _word_and_number("freshness", value, FRESHNESS_VALUES, _FRESHNESS_SCALE)


def _word_and_number(
    option: str, value: W | float, numbers: Mapping[W, float], scale: _Scale[W]
) -> tuple[W, float]:
    if isinstance(value, str):
        if value in numbers:
            return value, numbers[value]
    elif is_share(value):
        return _word_for(value, scale), float(value)
    expected = f"give one of {', '.join(numbers)}, or a number from 0 to 1"
    raise HintsError((f"{option} is {value_description(value)}: {expected}",))


def _word_for(number: float, scale: _Scale[W]) -> W:
    """Return the first word with a bound that the number reaches, else the last word."""
    return next((word for lower_bound, word in scale if number >= lower_bound), scale[-1][1])


def validity(value: Validity | float) -> Validity:
    """Return the longest period that the seconds cover; a word is returned unchanged."""
    words = [word for _, word in VALIDITY_SCALE]
    if isinstance(value, str):
        if value in words:
            return value
    elif is_number(value) and value >= 0:
        return _word_for(value, VALIDITY_SCALE)
    raise HintsError(
        (f"valid_for is {value_description(value)}: give one of {', '.join(words)}, or seconds",)
    )


def severity_of(probability: float, impact: float) -> Level:
    """Return the severity of a risk: the product of probability and impact, as a word."""
    return _word_for(probability * impact, _SEVERITY_SCALE)


def alignment_word(score: float) -> AlignmentWord:
    """Return the word for an alignment score."""
    return _word_for(score, _ALIGNMENT_SCALE)
