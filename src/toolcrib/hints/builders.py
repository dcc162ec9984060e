"""Builders of hints for common outcomes."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import fields, is_dataclass
from datetime import date
from itertools import islice
from typing import Any, Unpack, cast

from toolcrib.hints.parts import (
    HintOptions,
    Several,
    action,
    as_actions,
    as_texts,
    as_tuple,
    brief,
    build,
    effect_of,
    resource,
    risk,
    sentence,
    warning,
)
from toolcrib.hints.rules import EXPLAINED_FAILURE, UNEXPECTED_FAILURE, HintsError, checked
from toolcrib.hints.value_types import AMOUNT, COUNT, MAX_ITEMS, is_name, is_text, value_description
from toolcrib.model import Hints, Kind, Problem
from toolcrib.model.hints import Level, NextAction, Part, Resource

# --- Completeness of a result: the share of items present, and of their fields that are set ---

_SAMPLED_ITEMS = 16
"""Items sampled for the share of fields that are set."""


def item_count(items: object) -> int | None:
    """Return the number of items; None for a single object, a text, or anything without a length."""
    if items is None:
        return 0
    if isinstance(items, str | bytes | Mapping):
        return None if items else 0
    return len(cast("Collection[Any]", items)) if isinstance(items, Collection) else None


def completeness_of(items: object, total: int | None) -> float:
    """Return the completeness, from 0 to 1."""
    size = item_count(items)
    if size is None:
        return _filled_share(items)
    shares = [_filled_share(each) for each in islice(cast("Iterable[Any]", items), _SAMPLED_ITEMS)]
    filled = sum(shares) / max(1, len(shares))
    return filled * min(1.0, size / total) if total else filled


def _filled_share(item: object) -> float:
    values = _members(item).values()
    return sum(value is not None for value in values) / len(values) if values else 1.0


def _members(item: object) -> Mapping[str, object]:
    """Return the members of a mapping, or the fields of an object."""
    if isinstance(item, Mapping):
        return cast("Mapping[str, object]", item)
    if is_dataclass(item):
        return {each.name: getattr(item, each.name) for each in fields(item)}
    attributes: dict[str, object] = getattr(item, "__dict__", {})
    return {name: value for name, value in attributes.items() if not name.startswith("_")}


# --- Hint builders for common outcomes: found, created, changed, removed, computed, generated, failed ---

_MAX_RELATED_ITEMS = 10
"""Items of a result that become related resources."""
_LABEL_FIELDS = ("label", "title", "name")

Step = NextAction | str | None
"""An action, the name of a tool, or none."""

_EXPLAINED_KINDS = frozenset({Kind.INVALID, Kind.NOT_FOUND, Kind.DENIED, Kind.LIMITED, Kind.FAILED})


def found(
    items: object,
    *,
    total: int | None = None,
    type: str = "",
    read: Step = None,
    **more: Unpack[HintOptions],
) -> Hints:
    """Return hints for a query result: one item, or a list out of `total`; no items give `empty` hints.

    With a `type`, items that have an id become related resources, and `read` is the tool that shows the
    first. Completeness is calculated from the share of items returned and of their fields that are set.
    """
    _require(COUNT.fits(total or 0), "total", total, COUNT.description)
    size = item_count(items)
    if size == 0:
        return empty(**more)
    _require(bool(type) or not isinstance(read, str), "read", read, "the type of the items too, or a call")
    resources = _resources_of(items, size, type) if type else ()
    preset: HintOptions = {"completeness": completeness_of(items, total), "related": resources}
    more = _with_steps(more, _read_first_step(read, resources))
    if size is None:
        return build("One result was found.", more, preset)
    if total is None or total <= size:
        return build(f"{size} results were found." if size > 1 else "One result was found.", more, preset)
    rest = f"{size} of {total} results are here: request the next page if you need more."
    preset["next"] = action("fetch-more", "low", description=rest, category="exploration")
    return build(f"{size} of {total} results were found.", more, preset)


def empty(looked_for: str = "", **more: Unpack[HintOptions]) -> Hints:
    """Return hints for an empty result; they suggest a broader query."""
    outcome = f"Nothing was found for “{brief(looked_for)}”" if looked_for else "Nothing was found"
    preset: HintOptions = {
        "next": action(
            "broaden-search",
            "high",
            description=f"{outcome}: use fewer or more general words, or leave out a filter.",
            category="exploration",
            expected_outcome="Results that match in part.",
        ),
        "completeness": 0.5,
        "context_needed": "other words for the query",
    }
    return build(f"{outcome}.", more, preset, because="an empty result may be due to the query")


def created(
    type: str, id: str, label: str = "", *, read: Step = None, undo: Step = None, **more: Unpack[HintOptions]
) -> Hints:
    """Return hints for a new object; `read` and `undo` are the tools that show and remove it."""
    steps = (_read_step(read, type, id, label), _step(undo, "low", "Undo this.", type, id))
    preset: HintOptions = {"related": resource(type, id, label, freshness="current")}
    return build(f"{brief(label or id)} was created.", _with_steps(more, *steps), preset)


def changed(
    type: str,
    id: str,
    label: str = "",
    *,
    fields: Several[str] = (),
    read: Step = None,
    undo: Step = None,
    **more: Unpack[HintOptions],
) -> Hints:
    """Return hints for a changed object, with the fields that changed."""
    steps = (
        _read_step(read, type, id, label),
        _step(undo, "low", "Restore the previous values.", type, id),
    )
    preset: HintOptions = {"related": resource(type, id, label, freshness="current")}
    names = brief(", ".join(as_texts(fields)))
    outcome = f"{brief(label or id)} was changed{f': {names}' if names else ''}."
    return build(outcome, _with_steps(more, *steps), preset)


def removed(type: str, id: str, label: str = "", *, undo: Step = None, **more: Unpack[HintOptions]) -> Hints:
    """Return hints for a deleted object."""
    preset: HintOptions = {"constraints": f"The id {brief(id)} is no longer valid."}
    step = _step(undo, "low", "Restore it.", type, id)
    return build(f"{brief(label or id)} was removed.", _with_steps(more, step), preset)


def computed(
    *, method: str = "", samples: int | None = None, enough: int = 30, **more: Unpack[HintOptions]
) -> Hints:
    """Return hints for a calculated result: the method, the sample size, and the size that suffices."""
    _require(COUNT.fits(samples or 0), "samples", samples, COUNT.description)
    _require(COUNT.fits(enough) and enough > 0, "enough", enough, "a whole number above 0")
    preset: HintOptions = {}
    if method:
        preset["assumptions"] = f"{brief(method)} is a suitable method for the data."
    if samples is None:
        return build("The result was calculated.", more, preset)
    preset["completeness"] = min(1.0, samples / enough)
    if samples < enough:
        preset["context_needed"] = f"more data: the result has {_samples(samples)}, and {enough} are enough"
    outcome = f"The result was calculated from {_samples(samples)}."
    return build(outcome, more, preset, because=f"{_samples(enough)} would be enough")


def _samples(count: int) -> str:
    return f"{count} sample" if count == 1 else f"{count} samples"


def generated(*, model: str = "", reviewed: bool = False, **more: Unpack[HintOptions]) -> Hints:
    """Return hints for content that a model generated, reviewed or not."""
    by = brief(model) or "A model"
    preset: HintOptions = {"quality": "medium", "assumptions": f"{by} had all the information it needed."}
    if not reviewed:
        review = "Review the text before you rely on it."
        error = "It may contain false statements."
        preset["validation"] = 0.5
        preset["next"] = action("review-draft", "medium", description=review, category="correction")
        preset["risk_factors"] = risk("accuracy", error, probability=0.3, impact=0.5, mitigation=review)
    return build(f"{by} generated this.", more, preset)


def failed(
    problem: Problem | str, *, fix: Several[NextAction | str] = (), **more: Unpack[HintOptions]
) -> Hints:
    """Return hints for a failure; `fix` is a sentence, a tool name, a call or an action that corrects it."""
    fault = None if isinstance(problem, str) else problem
    is_explained = fault is None or fault.kind in _EXPLAINED_KINDS
    message = (problem if isinstance(problem, str) else problem.message) or "The call failed"
    preset: HintOptions = {
        "completeness": 0.0,
        "validation": EXPLAINED_FAILURE if is_explained else UNEXPECTED_FAILURE,
        "valid_for": "immediate",
        "reasoning": f"{sentence(message)} {effect_of(fault)}",
    }
    if fault is not None and fault.path:
        preset["context_needed"] = f"a valid value for {brief(fault.path)}"
    if fault is not None and fault.retryable:
        wait = f" after {fault.retry_after:g} s" if fault.retry_after else ""
        preset["next"] = action(
            "try-again", "medium", description=f"Call again{wait}.", category="correction"
        )
    return build(message, _with_steps(more, *map(_fixing_step, as_tuple(fix))), preset)


def deprecated(
    replacement: str, removal: str | date = "", *, since: str = "", also: Hints | None = None
) -> Hints:
    """Add a deprecation warning to hints: the replacement, and the removal date."""
    start, end = f" since {since}" if since else "", f" and will be removed on {removal}" if removal else ""
    fix = f"Call {replacement} instead."
    return _with_parts(
        also or build("The call succeeded, with a deprecated tool.", {}, {}),
        suggested_next_actions=action(replacement, "medium", description=fix, category="correction"),
        warnings=warning("deprecation", f"This tool is deprecated{start}{end}.", suggested_fix=fix),
    )


def slow(seconds: float, promised: float = 1.0, *, also: Hints | None = None) -> Hints:
    """Add a performance warning to hints if the call exceeded the promised seconds."""
    _require(AMOUNT.fits(seconds), "seconds", seconds, AMOUNT.description)
    _require(AMOUNT.fits(promised), "promised", promised, AMOUNT.description)
    hints = also or build(f"The call took {seconds:g} s.", {}, {})
    if seconds <= promised:
        return hints
    advice = "Request less data per call, or continue with other work while you wait."
    again = risk(
        "performance",
        "The next call may take as long.",
        probability=round(1 - promised / seconds, 3),
        impact=min(1.0, round(seconds / 60, 3)),
        mitigation=advice,
    )
    outcome = f"The call took {seconds:g} s, and the tool promises {promised:g} s."
    return _with_parts(
        hints,
        warnings=warning("performance", outcome, again.severity, suggested_fix=advice),
        risk_factors=again,
    )


def _require(fits: bool, name: str, value: object, expected: str) -> None:  # noqa: FBT001 - condition first
    if not fits:
        raise HintsError((f"{name} is {value_description(value)}: give {expected}",))


def _read_step(read: Step, type: str, id: str, label: str) -> NextAction | None:
    return _step(read, "medium", f"Read {brief(label or id)} to check that it is correct.", type, id)


def _step(step: Step, priority: Level, description: str, type: str, id: str) -> NextAction | None:
    if isinstance(step, str):
        return action(step, priority, data={"type": type, "id": id}, description=description)
    return step


def _with_steps(more: HintOptions, *steps: NextAction | None) -> HintOptions:
    """Put these steps before those the caller passed."""
    named = (step for step in steps if step is not None)
    return {**more, "next": (*named, *as_actions(more.get("next", ())))}


def _fixing_step(fix: NextAction | str) -> NextAction:
    if isinstance(fix, NextAction):
        return fix
    if is_name(fix):
        return action(fix, "high", category="correction")
    return action("fix-problem", "high", description=fix, category="correction")


def _read_first_step(read: Step, resources: tuple[Resource, ...]) -> NextAction | None:
    """Return the step that reads the first item; a tool name without an item gives none."""
    if not resources:
        return read if isinstance(read, NextAction) else None
    first = resources[0]
    return _step(read, "medium", f"Read {first.label}.", first.type, first.id)


def _resources_of(items: object, size: int | None, type: str) -> tuple[Resource, ...]:
    """Return the first items that have an id as resources; the label is their name, title or label."""
    listed = (items,) if size is None else islice(cast("Iterable[object]", items), _MAX_RELATED_ITEMS)
    found: list[Resource] = []
    for members in map(_members, listed):
        label = next((value for value in map(members.get, _LABEL_FIELDS) if is_text(value)), "")
        if is_text(members.get("id")):
            found.append(resource(type, str(members["id"]), brief(str(label))))
    return tuple(found)


def _with_parts(hints: Hints, **parts: Part) -> Hints:
    """Prepend each part to the list of its field, cut to the maximum length."""
    return checked(
        hints.but(**{name: (part, *getattr(hints, name))[:MAX_ITEMS] for name, part in parts.items()})
    )
