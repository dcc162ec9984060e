"""The hints for a tool that gives none: what the gateway knows of it, its past and this outcome."""

from dataclasses import dataclass, replace
from json import dumps

from toolcrib.errors import CODES
from toolcrib.model import Hints, JsonObject, Kind, Problem, Tool
from toolcrib.model.hints import Quality, Validity

_QUALITY: dict[Quality, float] = {"high": 0.95, "medium": 0.85, "low": 0.6, "unknown": 0.75}
_EFFORT = {"fast": 0.1, "medium": 0.3, "slow": 0.6}
_PROMISE = {"fast": 0.1, "medium": 1.0}
_VALID: tuple[tuple[float, Validity], ...] = ((300, "short"), (3600, "medium"), (86400, "long"))
_SHAKY = 0.9
_ENOUGH = 5

_AFTER: dict[Kind, tuple[str, str, str]] = {
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


_ASTRAY = ("check-address", "high", "Look at the name or the address again; this one leads nowhere.")


_ANSWER: JsonObject = {
    "action": "answer-questions",
    "priority": "high",
    "description": "Have the questions answered, then make the same call again with answers and state.",
}


@dataclass(frozen=True, slots=True)
class Past:
    """How a tool has done lately: rate of success, usual seconds, number of calls seen."""

    success: float = 1.0
    seconds: float = 0.0
    calls: int = 0


def confidence(quality: Quality, past: Past, problem: Problem | None, *, cached: bool) -> float:
    """Reckon how far to trust the outcome: quality of the source, its record, freshness, what went wrong."""
    trust = _QUALITY[quality] * (0.5 + 0.5 * past.success)
    if cached:
        trust *= 0.95
    if problem is not None:
        trust *= 0.5 if CODES[problem.code].error_class == "system" else 0.9
    return round(min(1.0, max(0.0, trust)), 2)


def for_outcome(
    tool: Tool | None, past: Past, problem: Problem | None, *, cached: bool, asks: bool = False
) -> Hints:
    """Put together the eleven fields, with their JSON bytes prepared."""
    quality: Quality = "high" if tool is not None and tool.family in ("function", "core") else "medium"
    trust = confidence(quality, past, problem, cached=cached)
    effort = _EFFORT[tool.response_time] if tool is not None else 0.1
    benefit = trust if problem is None else 0.0
    hints = Hints(
        suggested_next_actions=_actions(tool, problem, asks=asks),
        confidence=trust,
        source_quality=quality,
        validity_period=_validity(tool, problem) if not asks else "immediate",
        assumptions=("The answer was kept from an earlier, equal call.",) if cached else (),
        risk_factors=_risks(tool, past),
        estimated_impact={"benefit": benefit, "effort": effort, "roi": round(benefit / effort, 2)},
        reasoning=_reasoning(past, problem, asks=asks),
        warnings=_warnings(tool),
    )
    return replace(hints, encoded=dumps(hints.as_json(), ensure_ascii=False, separators=(",", ":")).encode())


def _actions(tool: Tool | None, problem: Problem | None, *, asks: bool) -> tuple[JsonObject, ...]:
    actions: list[JsonObject] = []
    if asks:
        actions.append(dict(_ANSWER))
    if problem is not None:
        action, priority, description = _ASTRAY if problem.code == "NOT_FOUND" else _AFTER[problem.kind]
        actions.append(
            {"action": action, "priority": priority, "description": description, "category": "correction"}
        )
    if tool is not None and tool.deprecated is not None and tool.deprecated.replacement:
        description = f"{tool.name} is deprecated; call {tool.deprecated.replacement} from now on."
        actions.append({"action": "use-replacement", "priority": "medium", "description": description})
    return tuple(actions)


def _validity(tool: Tool | None, problem: Problem | None) -> Validity:
    ttl = tool.cache_ttl if tool is not None and problem is None else None
    if not ttl:
        return "immediate"
    for bound, word in _VALID:
        if ttl <= bound:
            return word
    return "indefinite"


def _risks(tool: Tool | None, past: Past) -> tuple[JsonObject, ...]:
    risks: list[JsonObject] = []
    if past.calls >= _ENOUGH and past.success < _SHAKY:
        failing = round(1 - past.success, 2)
        said = f"About {failing:.0%} of the latest calls to this tool failed."
        severity = "high" if past.success < 0.5 else "medium"
        risk = {"type": "accuracy", "severity": severity, "description": said}
        risks.append({**risk, "probability": failing, "impact": 0.5})
    promised = _PROMISE.get(tool.response_time) if tool is not None else None
    if promised is not None and past.calls >= _ENOUGH and past.seconds > promised:
        said = f"It lately takes longer than the {promised:g} s it promises."
        risks.append(
            {"type": "performance", "severity": "low", "description": said, "probability": 0.5, "impact": 0.2}
        )
    return tuple(risks)


def _warnings(tool: Tool | None) -> tuple[JsonObject, ...]:
    if tool is None or tool.deprecated is None:
        return ()
    until = f" and will be removed on {tool.deprecated.removal_date}" if tool.deprecated.removal_date else ""
    said = f"{tool.name} is deprecated since {tool.deprecated.since}{until}."
    return ({"type": "deprecation", "severity": "medium", "message": said},)


def _reasoning(past: Past, problem: Problem | None, *, asks: bool) -> str:
    record = (
        f"{past.success:.0%} of the latest calls succeeded"
        if past.calls
        else "there are no earlier calls to go by"
    )
    if asks:
        return f"The call waits for an answer; {record}."
    return f"{'The call succeeded' if problem is None else 'The call failed'}; {record}."
