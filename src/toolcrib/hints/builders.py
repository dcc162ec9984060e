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
    resource,
    risk,
    warning,
)
from toolcrib.hints.rules import EXPLAINED_FAILURE, UNEXPECTED_FAILURE, HintsError, checked
from toolcrib.hints.value_types import AMOUNT, COUNT, MAX_ITEMS, is_name, value_description
from toolcrib.model import Hints, Kind, Problem
from toolcrib.model.hints import Level, NextAction, Part

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
    values = _values(item)
    return sum(value is not None for value in values) / len(values) if values else 1.0


def _values(item: object) -> list[object]:
    """Return the values of a mapping, or the field values of an object."""
    if isinstance(item, Mapping):
        return list(cast("Mapping[Any, object]", item).values())
    if is_dataclass(item):
        return [getattr(item, each.name) for each in fields(item)]
    attributes: dict[str, object] = getattr(item, "__dict__", {})
    return [value for name, value in attributes.items() if not name.startswith("_")]


# --- Hint builders for common outcomes: found, created, changed, removed, computed, generated, failed ---

Step = NextAction | str | None
"""An action, the name of a tool, or none."""

_EXPLAINED_KINDS = frozenset({Kind.INVALID, Kind.NOT_FOUND, Kind.DENIED, Kind.LIMITED, Kind.FAILED})


def found(items: object, *, total: int | None = None, **more: Unpack[HintOptions]) -> Hints:
    """Return hints for a query result: one item, or a list out of `total`; no items give `empty` hints.

    Completeness is calculated from the share of items returned and the share of their fields that are set.
    """
    _require(COUNT.fits(total or 0), "total", total, COUNT.description)
    size = item_count(items)
    if size == 0:
        return empty(**more)
    preset: HintOptions = {"completeness": completeness_of(items, total)}
    if size is None:
        return build("It was found.", more, preset)
    if total is None or total <= size:
        return build(f"{size} were found." if size > 1 else "One was found.", more, preset)
    rest = f"{size} of {total} are here: ask for the rest where they are needed."
    preset["next"] = action("fetch-more", "low", description=rest, category="exploration")
    return build(f"{size} of {total} were found.", more, preset)


def empty(looked_for: str = "", **more: Unpack[HintOptions]) -> Hints:
    """Return hints for an empty result; they suggest a broader query."""
    outcome = f"Nothing was found for “{brief(looked_for)}”" if looked_for else "Nothing was found"
    preset: HintOptions = {
        "next": action(
            "broaden-search",
            "high",
            description=f"{outcome}: use fewer or wider words, or leave out a filter.",
            category="exploration",
            expected_outcome="Something near to what was wanted.",
        ),
        "completeness": 0.5,
        "context_needed": "another way to say what is wanted",
    }
    return build(f"{outcome}.", more, preset, because="an empty answer may be the fault of the question")


def created(
    type: str, id: str, label: str = "", *, read: Step = None, undo: Step = None, **more: Unpack[HintOptions]
) -> Hints:
    """Return hints for a new object; `read` and `undo` are the tools that show and remove it."""
    steps = (_read_back_step(read, type, id, label, more), _step(undo, "low", "Take it back.", type, id))
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
    steps = (_read_back_step(read, type, id, label, more), _step(undo, "low", "Make it as it was.", type, id))
    preset: HintOptions = {"related": resource(type, id, label, freshness="current")}
    names = brief(", ".join(as_texts(fields)))
    outcome = f"{brief(label or id)} was changed{f': {names}' if names else ''}."
    return build(outcome, _with_steps(more, *steps), preset)


def removed(type: str, id: str, label: str = "", *, undo: Step = None, **more: Unpack[HintOptions]) -> Hints:
    """Return hints for a deleted object."""
    preset: HintOptions = {"constraints": f"{brief(id)} is gone: its id leads nowhere now."}
    step = _step(undo, "low", "Bring it back.", type, id)
    return build(f"{brief(label or id)} was removed.", _with_steps(more, step), preset)


def computed(
    *, method: str = "", samples: int | None = None, enough: int = 30, **more: Unpack[HintOptions]
) -> Hints:
    """Return hints for a calculated result: the method, the sample size, and the size that suffices."""
    _require(COUNT.fits(samples or 0), "samples", samples, COUNT.description)
    _require(COUNT.fits(enough) and enough > 0, "enough", enough, "a whole number above 0")
    preset: HintOptions = {"assumptions": f"{brief(method)} suits the data."} if method else {}
    if samples is None:
        return build("It was worked out.", more, preset)
    preset["completeness"] = min(1.0, samples / enough)
    if samples < enough:
        preset["context_needed"] = f"more data: {samples} samples are there, {enough} are enough"
    outcome = f"It was worked out from {samples} samples."
    return build(outcome, more, preset, because=f"{enough} samples are enough")


def generated(*, model: str = "", reviewed: bool = False, **more: Unpack[HintOptions]) -> Hints:
    """Return hints for content that a model generated, reviewed or not."""
    by = brief(model) or "A model"
    preset: HintOptions = {"quality": "medium", "assumptions": f"{by} was told all it needed to know."}
    if not reviewed:
        review = "Look it over before anybody relies on it."
        error = "It may state as fact what is none."
        preset["validation"] = 0.5
        preset["next"] = action("review-draft", "medium", description=review, category="correction")
        preset["risk_factors"] = risk("accuracy", error, probability=0.3, impact=0.5, mitigation=review)
    return build(f"{by} made it.", more, preset)


def failed(
    problem: Problem | str, *, fix: Several[NextAction | str] = (), **more: Unpack[HintOptions]
) -> Hints:
    """Return hints for a failure; `fix` is a sentence, a tool name or an action that corrects it."""
    fault = None if isinstance(problem, str) else problem
    is_explained = fault is None or fault.kind in _EXPLAINED_KINDS
    preset: HintOptions = {
        "completeness": 0.0,
        "validation": EXPLAINED_FAILURE if is_explained else UNEXPECTED_FAILURE,
        "valid_for": "immediate",
    }
    if fault is not None and fault.path:
        preset["context_needed"] = f"a right value for {brief(fault.path)}"
    steps = tuple(_fixing_step(each) for each in as_tuple(fix))
    if not steps and "next" not in more:
        steps = (_next_step(fault),)
    outcome = (problem if isinstance(problem, str) else problem.message) or "It failed."
    why = "a known rule explains it" if is_explained else "something broke, and may work another time"
    return build(outcome, _with_steps(more, *steps), preset, because=why)


def deprecated(
    replacement: str, removal: str | date = "", *, since: str = "", also: Hints | None = None
) -> Hints:
    """Add a deprecation warning to hints: the replacement, and the removal date."""
    start, end = f" since {since}" if since else "", f" and will be removed on {removal}" if removal else ""
    fix = f"Call {replacement} instead."
    return _with_parts(
        also or build("It was done, by a tool on its way out.", {}, {}),
        suggested_next_actions=action(replacement, "medium", description=fix, category="correction"),
        warnings=warning("deprecation", f"This tool is deprecated{start}{end}.", suggested_fix=fix),
    )


def slow(seconds: float, promised: float = 1.0, *, also: Hints | None = None) -> Hints:
    """Add a performance warning to hints if the call exceeded the promised seconds."""
    _require(AMOUNT.fits(seconds), "seconds", seconds, AMOUNT.description)
    _require(AMOUNT.fits(promised), "promised", promised, AMOUNT.description)
    hints = also or build(f"It was done in {seconds:g} s.", {}, {})
    if seconds <= promised:
        return hints
    advice = "Ask for less at a time, or do something else meanwhile."
    again = risk(
        "performance",
        "The next call may take as long.",
        probability=round(1 - promised / seconds, 3),
        impact=min(1.0, round(seconds / 60, 3)),
        mitigation=advice,
    )
    outcome = f"It took {seconds:g} s, and {promised:g} s are promised."
    return _with_parts(
        hints,
        warnings=warning("performance", outcome, again.severity, suggested_fix=advice),
        risk_factors=again,
    )


def _require(fits: bool, name: str, value: object, expected: str) -> None:  # noqa: FBT001 - condition first
    if not fits:
        raise HintsError((f"{name} is {value_description(value)}: give {expected}",))


def _read_back_step(read: Step, type: str, id: str, label: str, more: HintOptions) -> NextAction | None:
    """Return a step that reads the object back: by the named tool, or generic if none is suggested."""
    step = "read-back" if read is None and "next" not in more else read
    return _step(step, "medium", f"Read {brief(label or id)} back to see that it is as wanted.", type, id)


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
    return action("mend-and-retry", "high", description=fix, category="correction")


def _next_step(problem: Problem | None) -> NextAction:
    if problem is None or not problem.retryable:
        other = "Read what went wrong and choose another way."
        return action("reconsider", "high", description=other, category="correction")
    wait = f" after {problem.retry_after:g} s" if problem.retry_after else ""
    return action("try-again", "medium", description=f"Call again{wait}.", category="correction")


def _with_parts(hints: Hints, **parts: Part) -> Hints:
    """Prepend each part to the list of its field, cut to the maximum length."""
    return checked(
        hints.but(**{name: (part, *getattr(hints, name))[:MAX_ITEMS] for name, part in parts.items()})
    )
