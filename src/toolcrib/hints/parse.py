"""Parses hints from the JSON format for agents; errors name the path of each invalid value."""

from collections.abc import Mapping
from dataclasses import MISSING
from itertools import islice
from typing import Any, cast

from toolcrib.hints.confidence import QUALITY, confidence
from toolcrib.hints.field_table import RULES, FieldRule, Many, One
from toolcrib.hints.rules import ENOUGH, ROOT, HintsError, checked, roi
from toolcrib.hints.value_types import MOST, is_number, shown
from toolcrib.model import Evidence, Hints, JsonObject
from toolcrib.model.hints import Impact

_UNSPOKEN = "evidence"
_RECKONED = {(Hints, "confidence")}
_NEEDED = {(Impact, "benefit"), (Impact, "effort")}


def read(said: JsonObject) -> Hints:
    """Parse hints. Fields with a default, and those that can be calculated, are optional.

    A missing `confidence` is calculated from `sourceQuality`, a missing `roi` from benefit and effort.
    """
    faults: list[str] = []
    hints = _part(Hints, said, ROOT, faults)
    if faults:
        raise HintsError(tuple(faults[:ENOUGH]))
    return checked(hints)


def _part(kind: type[Any], said: Any, path: str, faults: list[str]) -> Any:
    if not isinstance(said, Mapping):
        faults.append(f"{path} is {shown(said)}: give an object")
        return None
    given = cast("Mapping[Any, Any]", said)
    rules = {rule.key: rule for rule in RULES[kind] if rule.name != _UNSPOKEN}
    strange = islice((key for key in given if key not in rules), ENOUGH)
    faults += (f"{path} has a field {shown(key)}: there is none" for key in strange)
    values: dict[str, Any] = {}
    for key, rule in rules.items():
        if given.get(key) is not None:
            values[rule.name] = _value(rule, given[key], f"{path}.{key}", faults)
        elif _is_needed(kind, rule):
            faults.append(f"{path} has no {key}: it is needed")
    return None if faults else kind(**_reckoned(kind, values))


def _is_needed(kind: type[Any], rule: FieldRule) -> bool:
    place = (kind, rule.name)
    return place in _NEEDED or (rule.default is MISSING and place not in _RECKONED)


def _value(rule: FieldRule, said: Any, path: str, faults: list[str]) -> Any:
    if isinstance(rule.shape, One):
        return _part(rule.shape.kind, said, path, faults)
    if isinstance(said, list | tuple):
        return _several(rule, cast("list[Any]", said), path, faults)
    if isinstance(rule.shape, Many):
        faults.append(f"{path} is {shown(said)}: give a list")
    return said


def _several(rule: FieldRule, said: list[Any], path: str, faults: list[str]) -> tuple[Any, ...]:
    if len(said) > MOST:
        faults.append(f"{path} is {shown(said)}: give at most {MOST}")
        return ()
    if not isinstance(rule.shape, Many):
        return tuple(said)
    kind = rule.shape.kind
    return tuple(_part(kind, each, f"{path}[{place}]", faults) for place, each in enumerate(said))


def _reckoned(kind: type[Any], values: dict[str, Any]) -> dict[str, Any]:
    """Add the fields that are calculated from others."""
    if kind is Impact and "roi" not in values:
        benefit, effort = values["benefit"], values["effort"]
        return values | {"roi": roi(benefit, effort)} if is_number(benefit) and is_number(effort) else values
    if kind is Hints and "confidence" not in values:
        word = values.get("source_quality", "unknown")
        evidence = Evidence(quality=next((count for each, count in QUALITY.items() if each == word), 0.0))
        return values | {"evidence": evidence, "confidence": confidence(evidence)}
    return values
