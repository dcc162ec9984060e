"""The checklist of a good tool: 29 items, judged automatically as far as possible."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from toolcrib.model import Tool
from toolcrib.sdk import checklist_rules
from toolcrib.sdk.checklist_rules import Judge, Judgement
from toolcrib.sdk.checks import Finding, contradictions, shortfalls
from toolcrib.sdk.evidence import ToolEvidence

ENOUGH_CALLS = 20
"""Minimum number of calls for judging the response time."""


@dataclass(frozen=True, slots=True)
class Item:
    """One line of the checklist."""

    id: str
    says: str
    do: str
    """The fix, if a tool falls short."""
    judge: Judge


def judge(tool: Tool, seen: ToolEvidence) -> dict[str, Judgement]:
    """Judge every item for one tool."""
    found = _by_item(_findings(tool))
    return {
        item.id: Judgement("short", "; ".join(found[item.id])) if item.id in found else item.judge(tool, seen)
        for item in ITEMS
    }


def beside(tool: Tool) -> list[Finding]:
    """Return the findings of a definition that belong to no item of the list."""
    return [each for each in _findings(tool) if each.rule not in ITEM_OF_RULE]


def tally(judged: Mapping[str, Judgement]) -> str:
    """Return a summary such as `27 of 29, 2 for a person`."""
    verdicts = [each.verdict for each in judged.values()]
    counts = [(verdicts.count("short"), "short"), (verdicts.count("person"), "for a person")]
    good = verdicts.count("pass") + verdicts.count("n/a")
    return ", ".join([f"{good} of {len(verdicts)}", *(f"{count} {word}" for count, word in counts if count)])


ITEM_OF_RULE = {
    "name": "name",
    "description": "description",
    "uses": "description",
    "parameters": "parameters",
    "ids": "parameters",
    "bounds": "parameters",
    "permissions": "permissions",
    "category": "category",
    "cache": "cache-ttl",
    "effects": "idempotent",
    "examples": "examples",
    "tags": "tags",
}
"""Item of each definition rule; findings of other rules are reported separately."""


def _findings(tool: Tool) -> list[Finding]:
    """Return contradictions and shortfalls; names of third-party tools are not judged."""
    kept = tool.family != "function"
    return [*contradictions(tool), *(each for each in shortfalls(tool) if not (kept and each.rule == "name"))]


def _by_item(findings: list[Finding]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for each in findings:
        if each.rule in ITEM_OF_RULE:
            found.setdefault(ITEM_OF_RULE[each.rule], []).append(each.message)
    return found


_ANY = "Build hints with `toolcrib.hints`, or give none and leave them to the gateway."
ITEMS: tuple[Item, ...] = (
    Item(
        "name",
        "The name is kebab-case, verb-noun, and no other tool's.",
        "Rename it, and keep the old name in `aliases`.",
        checklist_rules.name,
    ),
    Item(
        "description",
        "The description says in 50 characters or more what it does, when to use it and what comes back.",
        "Write it in plain words, with a use, in the docstring.",
        checklist_rules.description,
    ),
    Item(
        "parameters",
        "Every parameter is described, ids are branded, numbers and lists have bounds.",
        "Describe it under `Args:`, use a `BrandedId`, add `Field(ge=…, le=…, max_length=…)`.",
        checklist_rules.parameters,
    ),
    Item(
        "permissions",
        "All permissions it needs are listed as `resource:action`.",
        "Give `permissions=[…]`; an empty list says that none is needed.",
        checklist_rules.permissions,
    ),
    Item(
        "category",
        "Its category is query, mutation, analysis or generation.",
        "Give `category=`.",
        checklist_rules.category,
    ),
    Item(
        "response-time",
        "It promises fast, medium or slow, and keeps it.",
        "Give `response_time=` as it is, not as it should be.",
        checklist_rules.response_time,
    ),
    Item(
        "cacheable",
        "Answers are kept only where they stay true.",
        "Drop `cache_ttl` where each call must run.",
        checklist_rules.cacheable,
    ),
    Item(
        "cache-ttl",
        "What is kept has a time after which it is not.",
        "Give `cache_ttl=` in seconds, above 0, and never on a mutation.",
        checklist_rules.cache_ttl,
    ),
    Item(
        "idempotent",
        "`idempotent` is true where calling twice is as good as once, and only there.",
        "Give `idempotent=`; a query is, and has no side effects.",
        checklist_rules.idempotent,
    ),
    Item(
        "examples",
        "There is an example with description, params that fit, and expectedResult.",
        "Give `examples=[{…}]`.",
        checklist_rules.examples,
    ),
    Item("tags", "There is a tag to find it by.", "Give `tags=[…]`.", checklist_rules.tags),
    Item(
        "result",
        "A call gives data, shaped as its example says.",
        "Mend the example or the tool; never return None.",
        checklist_rules.result,
    ),
    Item("hints", "Every answer carries hints for the agent.", _ANY, checklist_rules.hints),
    Item(
        "confidence",
        "Confidence is reckoned, not written down.",
        "Build hints with `toolcrib.hints`: it is reckoned from what they rest on.",
        checklist_rules.confidence,
    ),
    Item(
        "source-quality",
        "The hints say how good their source is.",
        _ANY,
        partial(checklist_rules.field, "sourceQuality"),
    ),
    Item(
        "validity",
        "The hints say how long they hold.",
        _ANY,
        partial(checklist_rules.field, "validityPeriod"),
    ),
    Item(
        "context-needed",
        "The hints list what else would help, if only an empty list.",
        _ANY,
        partial(checklist_rules.field, "contextNeeded"),
    ),
    Item(
        "assumptions",
        "The hints list what they assume, if only an empty list.",
        _ANY,
        partial(checklist_rules.field, "assumptions"),
    ),
    Item(
        "risks",
        "The hints list what may go wrong, if only an empty list.",
        _ANY,
        partial(checklist_rules.field, "riskFactors"),
    ),
    Item(
        "dependencies",
        "The hints list which action comes before which, if only an empty list.",
        _ANY,
        partial(checklist_rules.field, "dependencies"),
    ),
    Item(
        "impact",
        "The hints weigh benefit, effort and what one brings for the other.",
        _ANY,
        partial(checklist_rules.field, "estimatedImpact"),
    ),
    Item(
        "preferences",
        "The hints say how actions suit the user, if only an empty list.",
        _ANY,
        partial(checklist_rules.field, "preferenceAlignment"),
    ),
    Item(
        "reasoning",
        "The hints say why, in a sentence.",
        "Give `reasoning=`; the builders of `toolcrib.hints` write one.",
        checklist_rules.reasoning,
    ),
    Item(
        "metadata",
        "The answer says which version answered, when, how long it took and under which trace.",
        "The gateway fills this in; where it lacks, report it.",
        checklist_rules.metadata,
    ),
    Item(
        "errors",
        "What goes wrong comes back as an error with a code and what to mend.",
        "Raise `BusinessRuleError(code, message)`; let nothing else escape.",
        checklist_rules.errors,
    ),
    Item(
        "logging",
        "Each call is in the log, from start to end, under its trace.",
        "The gateway does this; where it lacks, report it.",
        checklist_rules.logging,
    ),
    Item(
        "metrics",
        "Each call is counted and timed.",
        "The gateway does this; where it lacks, report it.",
        checklist_rules.metrics,
    ),
    Item(
        "tests",
        "There are tests, of the tool alone and through the gateway.",
        "Call `check_tools` of `toolcrib.testing` in a test, and test what the tool does.",
        checklist_rules.tests,
    ),
    Item(
        "registered",
        "The gateway offers it.",
        "Put it at the top of a module named in `functions`, or in a `Registry` there.",
        checklist_rules.registered,
    ),
)
