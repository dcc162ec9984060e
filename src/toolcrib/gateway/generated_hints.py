"""Hints that the gateway generates for tools that give none, and advice per error code."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import orjson

from toolcrib.errors import CODES
from toolcrib.gateway.related_tools import (
    RelatedTool,
    example_of,
    kebab_case,
    related_resources,
)
from toolcrib.hints.rules import (
    EXPLAINED_FAILURE,
    QUALITY_VALUES,
    UNEXPECTED_FAILURE,
    confidence,
    smoothed_success,
    validity,
)
from toolcrib.model import PROMISES, Evidence, Hints, JsonObject, Kind, Problem, Tool
from toolcrib.model.hints import ActionCategory, Caution, Dependency, Impact, Level, NextAction, Quality, Risk

# --- The next action for an agent after a problem, a pending question, or a call of a deprecated tool ---

_ACTION_BY_KIND: dict[Kind, tuple[str, Level, str]] = {
    Kind.INVALID: ("correct-arguments", "high", "Correct what the error names and call again."),
    Kind.NOT_FOUND: ("list-tools", "high", "List the available tools and choose one of them."),
    Kind.DENIED: (
        "ask-for-permission",
        "medium",
        "Tell the user what is missing; calling again does not help.",
    ),
    Kind.LIMITED: ("wait-and-retry", "medium", "Wait as long as the error says, then call again."),
    Kind.UNAVAILABLE: ("retry-later", "medium", "Call again later, or choose another tool."),
    Kind.TIMEOUT: ("retry-once", "medium", "It is safe to call again."),
    Kind.UNKNOWN: (
        "check-outcome",
        "critical",
        "Check whether the call took effect before you do anything else.",
    ),
    Kind.FAILED: ("reconsider", "high", "Read the error and choose another approach."),
    Kind.BAD_RESULT: ("ask-for-less", "medium", "Ask for a smaller part, or choose another tool."),
    Kind.CANCELLED: ("start-over", "low", "Call again if it is still wanted."),
    Kind.INTERNAL: ("report-to-operator", "medium", "Tell the operator; calling again may not help."),
}
_CHECK_ADDRESS = ("check-address", "high", "Check the name or the address; nothing was found under this one.")
_CORRECTION: ActionCategory = "correction"

ANSWER_QUESTIONS = NextAction(
    action="answer-questions",
    priority="high",
    description="Get the questions answered, then repeat the same call with the answers and the state.",
)
_CHECK_OUTCOME_FIRST = Dependency(
    action="call-again",
    depends_on=("check-outcome",),
    reason="It may have taken effect already; repeating it may do harm.",
)


def action_after(problem: Problem, tool: Tool | None) -> NextAction:
    """Return the next action after a problem; invalid arguments get an example of valid ones."""
    action, priority, description = (
        _CHECK_ADDRESS if problem.code == "NOT_FOUND" else _ACTION_BY_KIND[problem.kind]
    )
    data: JsonObject | None = None
    if problem.code == "INVALID_ARGUMENTS" and tool is not None:
        example = example_of(tool)
        data = None if example is None else {"tool": tool.name, "arguments": example}
    return NextAction(
        action=action, priority=priority, data=data, description=description, category=_CORRECTION
    )


def dependencies_before_retry(problem: Problem | None) -> tuple[Dependency, ...]:
    """Return what must be done before a retry."""
    return (_CHECK_OUTCOME_FIRST,) if problem is not None and problem.kind == Kind.UNKNOWN else ()


def replacement_action(tool: Tool) -> NextAction | None:
    """Return the call of the replacement, where the tool is deprecated and has one."""
    deprecation = tool.deprecated
    if deprecation is None or not deprecation.replacement:
        return None
    return NextAction(
        action="use-replacement",
        priority="medium",
        data={
            "tool": deprecation.replacement,
            "action": kebab_case(deprecation.replacement.rpartition(":")[2]),
        },
        description=f"{tool.name} is deprecated; call {deprecation.replacement} from now on.",
    )


# --- Generates hints for tools that return none, from the tool's definition, its record and the outcome ---

_EFFORT = {"fast": 0.1, "medium": 0.3, "slow": 0.6}
"""Estimated effort by speed class."""
_MAX_PATH_CHARACTERS = 500
"""A problem's path is cut to this: a caller chooses the names in it."""
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
    """The outcome of a call: its problem, whether it needs input, was cached, how fresh and how complete."""

    problem: Problem | None = None
    asks: bool = False
    cached: bool = False
    freshness: float = 1.0
    completeness: float = 1.0


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
    return encoded(
        Hints(
            suggested_next_actions=_suggested_actions(tool, outcome),
            related_resources=related_resources(related),
            confidence=trust,
            source_quality=quality_of(tool),
            validity_period=validity(ttl) if has_result and ttl else "immediate",
            context_needed=_needed_context(outcome),
            assumptions=_assumptions(tool, outcome),
            risk_factors=risks(tool, record),
            dependencies=dependencies_before_retry(problem),
            estimated_impact=_impact(tool, record, trust if problem is None else 0.0),
            reasoning=_reasoning(record, outcome),
            warnings=cautions(tool, record),
            evidence=evidence,
        )
    )


def with_record(hints: Hints, tool: Tool, record: ToolRecord, freshness: float = 1.0) -> Hints:
    """Add to a tool's own hints what only the gateway knows: record, freshness and warnings."""
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
        changes["warnings"] = hints.warnings + missing
    return encoded(hints.but(**changes))


def encoded(hints: Hints) -> Hints:
    """Return the same hints with their JSON bytes."""
    return hints.but(encoded=orjson.dumps(hints.as_json()))


def risks(tool: Tool | None, record: ToolRecord) -> tuple[Risk, ...]:
    """Return the risks that the record of a tool shows."""
    found: list[Risk] = []
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
    replacement = replacement_action(tool) if tool is not None else None
    if replacement is not None:
        actions.append(replacement)
    return tuple(actions)


def _needed_context(outcome: CallOutcome) -> tuple[str, ...]:
    """Return what the next try needs: the part of the request that was wrong, or the pending answers."""
    if outcome.asks:
        return ("the answers to the questions",)
    path = outcome.problem.path if outcome.problem is not None else None
    return (path[:_MAX_PATH_CHARACTERS],) if path else ()


def _assumptions(tool: Tool | None, outcome: CallOutcome) -> tuple[str, ...]:
    assumed: list[str] = []
    if outcome.cached:
        assumed.append("The result was cached from an earlier, identical call.")
    if tool is not None and tool.degraded:
        assumed.append("The definition is from when its source was last connected.")
    return tuple(assumed)


def _impact(tool: Tool | None, record: ToolRecord, benefit: float) -> Impact:
    effort = _EFFORT[_speed_class(tool, record)]
    return Impact(benefit=benefit, effort=effort, roi=round(benefit / effort, 2))


def _speed_class(tool: Tool | None, record: ToolRecord) -> str:
    """Return the speed class: measured, or the declared one while there are too few calls."""
    if record.calls < MIN_JUDGED_CALLS:
        return tool.response_time if tool is not None else "fast"
    return next((word for word, bound in PROMISES.items() if record.seconds <= bound), "slow")


def _reasoning(record: ToolRecord, outcome: CallOutcome) -> str:
    rate = (
        f"{record.success:.0%} of the latest calls succeeded"
        if record.calls
        else "there are no earlier calls"
    )
    if outcome.asks:
        return f"The call waits for answers; {rate}."
    return f"{'The call succeeded' if outcome.problem is None else 'The call failed'}; {rate}."
