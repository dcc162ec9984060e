"""Hints that the gateway generates for tools that give none."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import orjson

from toolcrib.errors import CODES
from toolcrib.gateway.error_advice import (
    ANSWER_QUESTIONS,
    action_after,
    dependencies_before_retry,
    replacement_action,
)
from toolcrib.gateway.hint_reasoning import (
    reasoning_of_failure,
    reasoning_of_question,
    reasoning_of_result,
)
from toolcrib.gateway.related_tools import RelatedTool, related_resources
from toolcrib.gateway.result_pages import ResultPage
from toolcrib.hints.parts import impact_of
from toolcrib.hints.rules import (
    EXPLAINED_FAILURE,
    QUALITY_VALUES,
    UNEXPECTED_FAILURE,
    confidence,
    smoothed_success,
    validity,
)
from toolcrib.hints.value_types import MAX_ITEMS
from toolcrib.model import Evidence, Hints, Kind, Problem, Tool
from toolcrib.model.hints import Caution, NextAction, Quality, Risk

# --- Generates hints for tools that return none, from the tool's definition, its record and the outcome ---

_MAX_PATH_CHARACTERS = 500
"""A problem's path is cut to this: a caller chooses the names in it."""
_UNKNOWN_PROBABILITY = 0.5
"""Probability of a risk for which there are no figures."""
_UNRELIABLE_SUCCESS_RATE = 0.9
"""Success rate below which a tool counts as unreliable."""
MIN_JUDGED_CALLS = 5
"""Fewest calls from which a success rate or a duration is derived."""


class ToolRecord(NamedTuple):
    """The recent record of a tool: success rate, usual seconds, number of calls."""

    success: float = 1.0
    seconds: float = 0.0
    calls: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CallOutcome:
    """The outcome of a call: its problem, whether it needs input, was cached, how old and how complete."""

    problem: Problem | None = None
    asks: bool = False
    cached: bool = False
    age: str = ""
    """Age of a cached result in words, where it is known."""
    freshness: float = 1.0
    completeness: float = 1.0
    page: ResultPage | None = None
    """Which part of all results it is, where it is not the whole."""


PLAIN_OUTCOME = CallOutcome()
"""A new result of a call that succeeded."""


def quality_of(tool: Tool | None) -> Quality:
    """Return high for in-process tools, low for unapproved changes and degraded sources, else medium."""
    if tool is None:
        return "high"
    if tool.changed or tool.degraded:
        return "low"
    return "high" if tool.inside else "medium"


def evidence_of(tool: Tool | None, record: ToolRecord, outcome: CallOutcome) -> Evidence:
    """Return the evidence from which confidence is calculated."""
    problem = outcome.problem
    if problem is None:
        checked = _validation(tool)
    else:
        checked = UNEXPECTED_FAILURE if CODES[problem.code].error_class == "system" else EXPLAINED_FAILURE
    return Evidence(
        quality=QUALITY_VALUES[quality_of(tool)],
        freshness=outcome.freshness,
        completeness=outcome.completeness if problem is None else 0.0,
        validation=checked,
        success=smoothed_success(record.success, record.calls),
    )


def for_outcome(
    tool: Tool | None, record: ToolRecord, outcome: CallOutcome, related: tuple[RelatedTool, ...] = ()
) -> Hints:
    """Return the eleven generated fields, with their JSON bytes prepared."""
    evidence = evidence_of(tool, record, outcome)
    trust = confidence(evidence)
    problem, asks = outcome.problem, outcome.asks
    has_result = problem is None and not asks
    ttl = tool.cache_ttl if tool is not None else None
    actions = _suggested_actions(tool, outcome)
    return encoded(
        Hints(
            suggested_next_actions=actions,
            related_resources=related_resources(related),
            confidence=trust,
            source_quality=quality_of(tool),
            validity_period=validity(ttl) if has_result and ttl else "immediate",
            context_needed=_needed_context(outcome),
            assumptions=assumptions(tool, outcome),
            risk_factors=risks(tool, record, problem),
            dependencies=dependencies_before_retry(problem),
            estimated_impact=impact_of(actions, trust),
            reasoning=_reasoning(tool, record, outcome, trust),
            warnings=cautions(tool, record),
            evidence=evidence,
        )
    )


def with_record(
    hints: Hints, tool: Tool, record: ToolRecord, freshness: float = 1.0, outcome: CallOutcome = PLAIN_OUTCOME
) -> Hints:
    """Add to a tool's own hints what only the gateway knows: record, age, risks and warnings.

    An error without a suggestion of its author gets the advice on its code.
    """
    changes: dict[str, object] = {}
    evidence = hints.evidence
    if evidence is not None:
        rate = smoothed_success(record.success, record.calls)
        known = replace(evidence, success=rate, freshness=min(evidence.freshness, freshness))
        changes = {"evidence": known, "confidence": confidence(known)}
    elif not tool.inside:
        # A server's own confidence is untrusted input: it is capped by the calculated one.
        calculated = confidence(evidence_of(tool, record, CallOutcome(freshness=freshness)))
        changes = {"confidence": min(hints.confidence, calculated)}
    warned_types = {caution.type for caution in hints.warnings}
    missing = tuple(caution for caution in cautions(tool, record) if caution.type not in warned_types)
    if missing:
        changes["warnings"] = (hints.warnings + missing)[:MAX_ITEMS]
    if outcome.problem is not None and not hints.suggested_next_actions:
        actions = (action_after(outcome.problem, tool),)
        changes |= {
            "suggested_next_actions": actions,
            "estimated_impact": impact_of(actions, hints.confidence),
        }
    if assumed := assumptions(tool, outcome):
        changes["assumptions"] = (hints.assumptions + assumed)[:MAX_ITEMS]
    if risky := _risks_of_change(tool, outcome.problem):
        changes["risk_factors"] = (hints.risk_factors + risky)[:MAX_ITEMS]
    return encoded(hints.but(**changes))


def with_repair(hints: Hints, repair: NextAction) -> Hints:
    """Put a repair before the other suggested actions, and in place of the one with the same name."""
    others = (each for each in hints.suggested_next_actions if each.action != repair.action)
    return encoded(hints.but(suggested_next_actions=(repair, *others)))


def encoded(hints: Hints) -> Hints:
    """Return the same hints with their JSON bytes."""
    return hints.but(encoded=orjson.dumps(hints.as_json()))


def risks(tool: Tool | None, record: ToolRecord, problem: Problem | None = None) -> tuple[Risk, ...]:
    """Return the risks of an unknown outcome, of a destructive tool, and those that its record shows."""
    found = [*_risks_of_change(tool, problem)]
    if record.calls >= MIN_JUDGED_CALLS and record.success < _UNRELIABLE_SUCCESS_RATE:
        failure_rate = round(1 - record.success, 2)
        found.append(
            Risk(
                type="accuracy",
                severity="high" if record.success < 0.5 else "medium",
                description=f"About {failure_rate:.0%} of the latest calls to this tool failed.",
                probability=failure_rate,
                impact=0.5,
                mitigation="Have an alternative tool ready, or retry where the error says that helps.",
            )
        )
    promised_seconds = broken_promise(tool, record)
    if promised_seconds:
        text = f"It recently took longer than the {promised_seconds:g} s it promises."
        found.append(Risk(type="performance", severity="low", description=text, probability=0.5, impact=0.2))
    return tuple(found)


def _risks_of_change(tool: Tool | None, problem: Problem | None) -> tuple[Risk, ...]:
    """Return the risk that a change is made twice or cannot be undone; no figures are known for it."""
    destructive = tool is not None and (tool.destructive or tool.annotations.get("destructiveHint") is True)
    if problem is not None and problem.kind is Kind.UNKNOWN:
        return (
            Risk(
                type="accuracy",
                severity="critical" if destructive else "high",
                description="It is not known whether the call took effect; a repetition may do it twice.",
                probability=_UNKNOWN_PROBABILITY,
                impact=1.0 if destructive else 0.5,
                mitigation="Check the outcome before you repeat the call.",
            ),
        )
    if tool is None or not destructive:
        return ()
    return (
        Risk(
            type="user-experience",
            severity="high",
            description=f"{tool.name} deletes or overwrites data, which may not be possible to undo.",
            probability=_UNKNOWN_PROBABILITY,
            impact=0.8,
            mitigation="Check the arguments, and ask the user, before you call it again.",
        ),
    )


def cautions(tool: Tool | None, record: ToolRecord) -> tuple[Caution, ...]:
    """Return warnings for a deprecated tool, and for one that is slower than it promises."""
    if tool is None:
        return ()
    found: list[Caution] = []
    if tool.deprecated is not None:
        deprecation = tool.deprecated
        until = f" and will be removed on {deprecation.removal_date}" if deprecation.removal_date else ""
        fix = f"Call {deprecation.replacement} instead." if deprecation.replacement else None
        text = f"{tool.name} is deprecated since {deprecation.since}{until}."
        found.append(Caution(type="deprecation", severity="medium", message=text, suggested_fix=fix))
    promised_seconds = broken_promise(tool, record)
    if promised_seconds:
        text = f"{tool.name} promises a result within {promised_seconds:g} s and has recently been slower."
        found.append(Caution(type="performance", severity="low", message=text))
    return tuple(found)


def broken_promise(tool: Tool | None, record: ToolRecord) -> float | None:
    """Return the promised seconds that a tool exceeds, once there are enough calls to judge."""
    promised_seconds = tool.promised if tool is not None else None
    return (
        promised_seconds
        if promised_seconds and record.calls >= MIN_JUDGED_CALLS and record.seconds > promised_seconds
        else None
    )


def _validation(tool: Tool | None) -> float:
    """Return the validation score: higher for in-process tools, and for tools with an output schema."""
    if tool is None:
        return 1.0
    if tool.inside:
        return 1.0 if tool.output_schema is not None else 0.95
    return 0.9 if tool.output_schema is not None else 0.85


def _suggested_actions(tool: Tool | None, outcome: CallOutcome) -> tuple[NextAction, ...]:
    """Return what follows from the outcome alone; what follows from the data is added to each result."""
    actions = [ANSWER_QUESTIONS] if outcome.asks else []
    if outcome.problem is not None:
        actions.append(action_after(outcome.problem, tool))
    replacement = replacement_action(tool, outcome.problem) if tool is not None else None
    if replacement is not None:
        actions.append(replacement)
    return tuple(actions)


def _needed_context(outcome: CallOutcome) -> tuple[str, ...]:
    """Return what the next try needs: the part of the request that was wrong, or the pending answers."""
    if outcome.asks:
        return ("the answers to the questions",)
    path = outcome.problem.path if outcome.problem is not None else None
    return (path[:_MAX_PATH_CHARACTERS],) if path else ()


def assumptions(tool: Tool | None, outcome: CallOutcome) -> tuple[str, ...]:
    """Return what a result assumes: that a cached result or an old definition still holds."""
    if not outcome.cached and (tool is None or not (tool.degraded or tool.changed)):
        return ()
    assumed: list[str] = []
    if outcome.cached:
        age = f", which is {outcome.age} old," if outcome.age else ""
        assumed.append(f"The cached result of an identical call{age} is still correct.")
    if tool is not None and tool.degraded:
        assumed.append("The definition is from when its source was last connected; the source is down now.")
    if tool is not None and tool.changed:
        assumed.append("The definition of the tool has changed, and the change is not approved.")
    return tuple(assumed)


def _reasoning(tool: Tool | None, record: ToolRecord, outcome: CallOutcome, trust: float) -> str:
    success = record.success if record.calls else None
    if outcome.problem is not None:
        return reasoning_of_failure(outcome.problem, success)
    if outcome.asks:
        return reasoning_of_question(success)
    return reasoning_of_result(tool, trust, success, outcome.page, partial=outcome.completeness < 1)
