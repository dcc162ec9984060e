"""Generates hints for tools that return none, from the tool's definition, its record and the outcome."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import orjson

from toolcrib.errors import CODES
from toolcrib.gateway.error_advice import ANSWER, after, before, instead
from toolcrib.gateway.related_tools import RelatedTool, next_actions, related
from toolcrib.hints.confidence import QUALITY, SURE, UNSURE, confidence, success
from toolcrib.hints.scales import validity
from toolcrib.model import PROMISES, Evidence, Hints, Problem, Tool
from toolcrib.model.hints import Caution, Impact, NextAction, Quality, Risk

_EFFORT = {"fast": 0.1, "medium": 0.3, "slow": 0.6}
"""Estimated effort by speed class."""
_LONGEST = 500
"""Longest part of a problem's path that is repeated, in characters: a caller chooses the names in it."""
_SHAKY = 0.9
"""Success rate below which a tool counts as unreliable."""
ENOUGH = 5
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
        checked = UNSURE if CODES[problem.code].error_class == "system" else SURE
    return Evidence(
        quality=QUALITY[quality_of(tool)],
        freshness=seen.freshness,
        completeness=seen.completeness if problem is None else 0.0,
        validation=checked,
        success=success(past.success, past.calls),
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
            suggested_next_actions=_actions(tool, seen, near if settled else ()),
            related_resources=related(near),
            confidence=trust,
            source_quality=quality_of(tool),
            validity_period=validity(ttl) if settled and ttl else "immediate",
            context_needed=_missing(seen),
            assumptions=_assumed(tool, seen),
            risk_factors=risks(tool, past),
            dependencies=before(problem),
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
        rate = success(past.success, past.calls)
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
    if past.calls >= ENOUGH and past.success < _SHAKY:
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
    return promised if promised and past.calls >= ENOUGH and past.seconds > promised else None


def _validation(tool: Tool | None) -> float:
    """Return the validation score: higher for in-process tools, and for tools with an output schema."""
    if tool is None:
        return 1.0
    if tool.inside:
        return 1.0 if tool.output_schema is not None else 0.95
    return 0.9 if tool.output_schema is not None else 0.85


def _actions(tool: Tool | None, seen: CallOutcome, near: tuple[RelatedTool, ...]) -> tuple[NextAction, ...]:
    actions = [ANSWER] if seen.asks else []
    if seen.problem is not None:
        actions.append(after(seen.problem, tool))
    other = instead(tool) if tool is not None else None
    if other is not None:
        actions.append(other)
    return (*actions, *next_actions(near))


def _missing(seen: CallOutcome) -> tuple[str, ...]:
    """Return what the next try needs: the part of the request that was wrong, or the pending answers."""
    if seen.asks:
        return ("the answers to the questions",)
    path = seen.problem.path if seen.problem is not None else None
    return (path[:_LONGEST],) if path else ()


def _assumed(tool: Tool | None, seen: CallOutcome) -> tuple[str, ...]:
    assumed: list[str] = []
    if seen.cached:
        assumed.append("The answer was kept from an earlier, equal call.")
    if tool is not None and tool.degraded:
        assumed.append("The tool is as it was when its source was last up.")
    return tuple(assumed)


def _impact(tool: Tool | None, past: ToolRecord, benefit: float) -> Impact:
    effort = _EFFORT[_pace(tool, past)]
    return Impact(benefit=benefit, effort=effort, roi=round(benefit / effort, 2))


def _pace(tool: Tool | None, past: ToolRecord) -> str:
    """Return the speed class: measured, or the declared one while there are too few calls."""
    if past.calls < ENOUGH:
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
