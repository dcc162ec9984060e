"""Hints that the gateway generates for tools that give none, and advice per error code."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import orjson

from toolcrib.errors import CODES
from toolcrib.gateway.related_tools import (
    RelatedTool,
    example_of,
    kebab_case,
    next_actions,
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
    Kind.INVALID: ("correct-arguments", "high", "Mend what the error names and call again."),
    Kind.NOT_FOUND: ("list-tools", "high", "Look at the tools there are and choose one of them."),
    Kind.DENIED: (
        "ask-for-permission",
        "medium",
        "Tell the user what is missing; calling again does not help.",
    ),
    Kind.LIMITED: ("wait-and-retry", "medium", "Wait as long as the error says, then call again."),
    Kind.UNAVAILABLE: ("retry-later", "medium", "Call again later, or choose another tool."),
    Kind.TIMEOUT: ("retry-once", "medium", "It is safe to call again."),
    Kind.UNKNOWN: ("check-outcome", "critical", "Find out whether it happened before you do anything else."),
    Kind.FAILED: ("reconsider", "high", "Read what the tool says and choose another way."),
    Kind.BAD_RESULT: ("ask-for-less", "medium", "Ask for a smaller part, or choose another tool."),
    Kind.CANCELLED: ("start-over", "low", "Call again if it is still wanted."),
    Kind.INTERNAL: ("report-to-operator", "medium", "Tell the operator; calling again may not help."),
}
_CHECK_ADDRESS = ("check-address", "high", "Look at the name or the address again; this one leads nowhere.")
_CORRECTION: ActionCategory = "correction"

ANSWER_QUESTIONS = NextAction(
    action="answer-questions",
    priority="high",
    description="Have the questions answered, then make the same call again with answers and state.",
)
_CHECK_OUTCOME_FIRST = Dependency(
    action="call-again",
    depends_on=("check-outcome",),
    reason="It may have taken effect already; a second time may do harm.",
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
    gone = tool.deprecated
    if gone is None or not gone.replacement:
        return None
    return NextAction(
        action="use-replacement",
        priority="medium",
        data={"tool": gone.replacement, "action": kebab_case(gone.replacement.rpartition(":")[2])},
        description=f"{tool.name} is deprecated; call {gone.replacement} from now on.",
    )


# --- Generates hints for tools that return none, from the tool's definition, its record and the outcome ---

_EFFORT = {"fast": 0.1, "medium": 0.3, "slow": 0.6}
"""Estimated effort by speed class."""
_MAX_PATH_CHARACTERS = 500
"""Longest part of a problem's path that is repeated, in characters: a caller chooses the names in it."""
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


def evidence_of(tool: Tool | None, past: ToolRecord, seen: CallOutcome) -> Evidence:
    """Return the evidence from which confidence is calculated."""
    problem = seen.problem
    if problem is None:
        checked = _validation(tool)
    else:
        checked = UNEXPECTED_FAILURE if CODES[problem.code].error_class == "system" else EXPLAINED_FAILURE
    return Evidence(
        quality=QUALITY_VALUES[quality_of(tool)],
        freshness=seen.freshness,
        completeness=seen.completeness if problem is None else 0.0,
        validation=checked,
        success=smoothed_success(past.success, past.calls),
    )


def for_outcome(
    tool: Tool | None, past: ToolRecord, seen: CallOutcome, near: tuple[RelatedTool, ...] = ()
) -> Hints:
    """Return the eleven generated fields, with their JSON bytes prepared."""
    evidence = evidence_of(tool, past, seen)
    trust = confidence(evidence)
    problem, asks = seen.problem, seen.asks
    settled = problem is None and not asks
    ttl = tool.cache_ttl if tool is not None else None
    return encoded(
        Hints(
            suggested_next_actions=_suggested_actions(tool, seen, near if settled else ()),
            related_resources=related_resources(near),
            confidence=trust,
            source_quality=quality_of(tool),
            validity_period=validity(ttl) if settled and ttl else "immediate",
            context_needed=_needed_context(seen),
            assumptions=_assumptions(tool, seen),
            risk_factors=risks(tool, past),
            dependencies=dependencies_before_retry(problem),
            estimated_impact=_impact(tool, past, trust if problem is None else 0.0),
            reasoning=_reasoning(past, seen),
            warnings=cautions(tool, past),
            evidence=evidence,
        )
    )


def with_record(hints: Hints, tool: Tool, past: ToolRecord, freshness: float = 1.0) -> Hints:
    """Add to a tool's own hints what only the gateway knows: record, freshness and warnings."""
    changes: dict[str, object] = {}
    said = hints.evidence
    if said is not None:
        rate = smoothed_success(past.success, past.calls)
        known = replace(said, success=rate, freshness=min(said.freshness, freshness))
        changes = {"evidence": known, "confidence": confidence(known)}
    elif not tool.inside:
        # A server's own confidence is untrusted input: it is capped by the calculated one.
        ours = confidence(evidence_of(tool, past, CallOutcome(freshness=freshness)))
        changes = {"confidence": min(hints.confidence, ours)}
    warned = {caution.type for caution in hints.warnings}
    more = tuple(caution for caution in cautions(tool, past) if caution.type not in warned)
    if more:
        changes["warnings"] = hints.warnings + more
    return encoded(hints.but(**changes))


def encoded(hints: Hints) -> Hints:
    """Return the same hints with their JSON bytes."""
    return hints.but(encoded=orjson.dumps(hints.as_json()))


def risks(tool: Tool | None, past: ToolRecord) -> tuple[Risk, ...]:
    """Return the risks that the record of a tool shows."""
    found: list[Risk] = []
    if past.calls >= MIN_JUDGED_CALLS and past.success < _UNRELIABLE_SUCCESS_RATE:
        failing = round(1 - past.success, 2)
        found.append(
            Risk(
                type="accuracy",
                severity="high" if past.success < 0.5 else "medium",
                description=f"About {failing:.0%} of the latest calls to this tool failed.",
                probability=failing,
                impact=0.5,
                mitigation="Have another tool at hand, or try again where the error says that helps.",
            )
        )
    promised = broken_promise(tool, past)
    if promised:
        said = f"It lately takes longer than the {promised:g} s it promises."
        found.append(Risk(type="performance", severity="low", description=said, probability=0.5, impact=0.2))
    return tuple(found)


def cautions(tool: Tool | None, past: ToolRecord) -> tuple[Caution, ...]:
    """Return warnings for a deprecated tool, and for one that is slower than it promises."""
    if tool is None:
        return ()
    found: list[Caution] = []
    if tool.deprecated is not None:
        gone = tool.deprecated
        until = f" and will be removed on {gone.removal_date}" if gone.removal_date else ""
        fix = f"Call {gone.replacement} instead." if gone.replacement else None
        said = f"{tool.name} is deprecated since {gone.since}{until}."
        found.append(Caution(type="deprecation", severity="medium", message=said, suggested_fix=fix))
    promised = broken_promise(tool, past)
    if promised:
        said = f"{tool.name} promises to answer within {promised:g} s and lately does not."
        found.append(Caution(type="performance", severity="low", message=said))
    return tuple(found)


def broken_promise(tool: Tool | None, past: ToolRecord) -> float | None:
    """Return the promised seconds that a tool exceeds, once there are enough calls to judge."""
    promised = tool.promised if tool is not None else None
    return promised if promised and past.calls >= MIN_JUDGED_CALLS and past.seconds > promised else None


def _validation(tool: Tool | None) -> float:
    """Return the validation score: higher for in-process tools, and for tools with an output schema."""
    if tool is None:
        return 1.0
    if tool.inside:
        return 1.0 if tool.output_schema is not None else 0.95
    return 0.9 if tool.output_schema is not None else 0.85


def _suggested_actions(
    tool: Tool | None, seen: CallOutcome, near: tuple[RelatedTool, ...]
) -> tuple[NextAction, ...]:
    actions = [ANSWER_QUESTIONS] if seen.asks else []
    if seen.problem is not None:
        actions.append(action_after(seen.problem, tool))
    other = replacement_action(tool) if tool is not None else None
    if other is not None:
        actions.append(other)
    return (*actions, *next_actions(near))


def _needed_context(seen: CallOutcome) -> tuple[str, ...]:
    """Return what the next try needs: the part of the request that was wrong, or the pending answers."""
    if seen.asks:
        return ("the answers to the questions",)
    path = seen.problem.path if seen.problem is not None else None
    return (path[:_MAX_PATH_CHARACTERS],) if path else ()


def _assumptions(tool: Tool | None, seen: CallOutcome) -> tuple[str, ...]:
    assumed: list[str] = []
    if seen.cached:
        assumed.append("The answer was kept from an earlier, equal call.")
    if tool is not None and tool.degraded:
        assumed.append("The tool is as it was when its source was last up.")
    return tuple(assumed)


def _impact(tool: Tool | None, past: ToolRecord, benefit: float) -> Impact:
    effort = _EFFORT[_speed_class(tool, past)]
    return Impact(benefit=benefit, effort=effort, roi=round(benefit / effort, 2))


def _speed_class(tool: Tool | None, past: ToolRecord) -> str:
    """Return the speed class: measured, or the declared one while there are too few calls."""
    if past.calls < MIN_JUDGED_CALLS:
        return tool.response_time if tool is not None else "fast"
    return next((word for word, bound in PROMISES.items() if past.seconds <= bound), "slow")


def _reasoning(past: ToolRecord, seen: CallOutcome) -> str:
    record = (
        f"{past.success:.0%} of the latest calls succeeded"
        if past.calls
        else "there are no earlier calls to go by"
    )
    if seen.asks:
        return f"The call waits for an answer; {record}."
    return f"{'The call succeeded' if seen.problem is None else 'The call failed'}; {record}."
