"""The verification checklist of a tool, and the rules it consists of."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal

from toolcrib.hints import faults
from toolcrib.model import Result, Tool
from toolcrib.sdk.checks import Finding, advice, contradictions, shortfalls
from toolcrib.sdk.evidence import ExampleRun, ToolEvidence, structure_mismatch

# --- Rules of the checklist items: judged by definition, by evidence, or left for a human review ---

Verdict = Literal["pass", "short", "person", "n/a"]

_NOT_RUN = "the gateway sees to it; not run"


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict of one item for one tool, with the reason or the fix."""

    verdict: Verdict
    message: str


Judge = Callable[[Tool, ToolEvidence], Judgement]


def name(tool: Tool, seen: ToolEvidence) -> Judgement:
    return Judgement("short", seen.withheld) if seen.withheld else _pass(f"{tool.local} is its alone")


def description(tool: Tool, seen: ToolEvidence) -> Judgement:
    return _person(
        "is it plain English, and does it say what the tool does, when to use it, what comes back?"
    )


def parameters(tool: Tool, seen: ToolEvidence) -> Judgement:
    if not tool.input_schema.get("properties"):
        return Judgement("n/a", "it takes none")
    open_ended = "; ".join(each.message for each in advice(tool))
    if open_ended:
        return _person(open_ended)
    tried = seen.refusal is not None and _refused(seen.refusal)
    return _pass("arguments that do not fit are refused" if tried else "each is described and bounded")


def permissions(tool: Tool, seen: ToolEvidence) -> Judgement:
    if not tool.permissions and not tool.read_only:
        return _person("it may change something and asks for no permission: is that meant?")
    return _pass(", ".join(sorted(tool.permissions)) or "it needs none")


def category(tool: Tool, seen: ToolEvidence) -> Judgement:
    return _pass(tool.category)


def response_time(tool: Tool, seen: ToolEvidence) -> Judgement:
    promised = None if tool.promised is None else tool.promised * 1000
    if promised is None or seen.p95 is None or seen.p95 <= promised:
        return _pass(tool.response_time)
    took = f"5 of 100 calls take over {seen.p95:.0f} ms"
    said = f"it promises {tool.response_time}, under {promised:g} ms, and {took}"
    return Judgement("short", f"{said}: make it faster, or promise less")


def cacheable(tool: Tool, seen: ToolEvidence) -> Judgement:
    if tool.cache_ttl is None:
        return _pass("each answer is made anew")
    shared = ", and one caller's answer may go to another" if tool.shared_cache else ""
    return _person(f"an answer is kept for {tool.cache_ttl:g} s{shared}: is it good for so long?")


def cache_ttl(tool: Tool, seen: ToolEvidence) -> Judgement:
    return Judgement("n/a", "nothing is kept") if tool.cache_ttl is None else _pass(f"{tool.cache_ttl:g} s")


def idempotent(tool: Tool, seen: ToolEvidence) -> Judgement:
    if seen.same_again:
        return _pass("two equal calls gave equal answers")
    if seen.same_again is False:
        return _person("two equal calls gave different answers: is calling twice as good as once?")
    word = "is" if tool.idempotent else "is not"
    return _person(f"it says that calling it twice {word} as good as once: is that so?")


def examples(tool: Tool, seen: ToolEvidence) -> Judgement:
    return _pass(f"{len(tool.examples)}")


def tags(tool: Tool, seen: ToolEvidence) -> Judgement:
    return _pass(", ".join(tool.tags))


def result(tool: Tool, seen: ToolEvidence) -> Judgement:
    if not seen.trials:
        return _person(f"{_unrun(tool)}: see that its answers are what its examples say")
    for trial in seen.trials:
        problem = trial.result.problem
        if problem is not None:
            return _short(trial, f"ended in {problem.code}: {problem.message}")
        if trial.result.ask is not None:
            return _person(f"example {trial.example} asks something first: answer it and see")
        found = structure_mismatch(tool.examples[trial.example - 1].expected, trial.result.data)
        if found is not None:
            return _short(trial, f"gave something else: {found}")
    return _pass("its examples gave what they say")


def hints(tool: Tool, seen: ToolEvidence) -> Judgement:
    for trial in seen.trials:
        hints = trial.result.hints
        found = ("there are none",) if hints is None else (*_refused_hints(trial), *faults(hints))
        if found:
            return _short(trial, "; ".join(found))
    return _pass("every answer had them") if seen.trials else _pass(_NOT_RUN)


def confidence(tool: Tool, seen: ToolEvidence) -> Judgement:
    claimed = [each.claimed for each in seen.trials if each.claimed is not None]
    if not seen.trials:
        return _person(f"{_unrun(tool)}: see that it is reckoned, not written down")
    if not claimed:
        return _pass("reckoned from what is known of the answer")
    if len(set(claimed)) > 1:
        return _pass("it varies with the answer")
    said = f"it is always {claimed[0]:g}: build hints with toolcrib.hints, which reckons it"
    return Judgement("short", f"{said}, or add an example for which it is another")


def field(name: str, tool: Tool, seen: ToolEvidence) -> Judgement:
    """Judge one of the eleven required hint fields, by its JSON name."""
    for trial in seen.trials:
        hints = trial.result.hints
        wrong = [each for each in _refused_hints(trial) if f"agentHints.{name}" in each]
        if wrong or hints is None or name not in hints.as_json():
            return _short(trial, wrong[0] if wrong else f"agentHints.{name} is not there")
    return _pass("there") if seen.trials else _pass(_NOT_RUN)


def reasoning(tool: Tool, seen: ToolEvidence) -> Judgement:
    for trial in seen.trials:
        if trial.result.hints is None or not trial.result.hints.reasoning:
            return _short(trial, 'gave none: say why in a sentence, reasoning="…"')
    return _pass("there") if seen.trials else _pass(_NOT_RUN)


def metadata(tool: Tool, seen: ToolEvidence) -> Judgement:
    for trial in seen.trials:
        lacking = _lacking_metadata(trial.result)
        if lacking:
            return _short(trial, f"lacks {', '.join(lacking)}")
    return _pass("complete") if seen.trials else _pass(_NOT_RUN)


def errors(tool: Tool, seen: ToolEvidence) -> Judgement:
    for trial in seen.trials:
        problem = trial.result.problem
        if problem is not None and problem.code in ("HANDLER_ERROR", "EXECUTION_ERROR"):
            return _short(
                trial, "raised: catch it, and raise BusinessRuleError(code, message) where it says no"
            )
    if seen.refusal is None:
        return _pass(_NOT_RUN)
    if not _refused(seen.refusal):
        return Judgement("short", "arguments that do not fit were not refused by name")
    return _pass("arguments that do not fit are refused, with what to mend")


def logging(tool: Tool, seen: ToolEvidence) -> Judgement:
    return _watched(
        "its calls are in the log, each under its trace", "its calls are not in the log", saw=seen.logged
    )


def metrics(tool: Tool, seen: ToolEvidence) -> Judgement:
    return _watched("its calls are counted and timed", "its calls are not counted", saw=seen.counted)


def tests(tool: Tool, seen: ToolEvidence) -> Judgement:
    if seen.test:
        return _pass(f"{seen.test} names it")
    return _person(
        "no test that names it was found near the module: is there one, of it alone and as a whole?"
    )


def registered(tool: Tool, seen: ToolEvidence) -> Judgement:
    if seen.listed is None:
        return Judgement("n/a", "judged by its definition alone")
    return (
        _pass("the gateway offers it") if seen.listed else Judgement("short", "the gateway does not offer it")
    )


def _unrun(tool: Tool) -> str:
    may_change = tool.examples and not tool.read_only
    return "not run, as it may change something (--run-mutations runs it)" if may_change else "not run"


def _watched(good: str, bad: str, *, saw: bool | None) -> Judgement:
    if saw is None:
        return _pass(_NOT_RUN)
    return _pass(good) if saw else Judgement("short", bad)


def _refused(result: Result) -> bool:
    problem = result.problem
    named = problem is not None and problem.code == "INVALID_ARGUMENTS" and bool(problem.message)
    return named and result.hints is not None and not _lacking_metadata(result)


def _refused_hints(trial: ExampleRun) -> tuple[str, ...]:
    """Return the gateway's error about the tool's own hints, if any."""
    problem = trial.result.problem
    broken = problem is not None and problem.code == "CONTRACT_VIOLATION" and "agentHints" in problem.message
    return (problem.message,) if problem is not None and broken else ()


def _lacking_metadata(result: Result) -> list[str]:
    if result.metadata is None:
        return ["metadata"]
    return [name for name, value in result.metadata.as_json().items() if value is None or value == ""]


def _pass(message: str) -> Judgement:
    return Judgement("pass", message)


def _person(message: str) -> Judgement:
    return Judgement("person", message)


def _short(trial: ExampleRun, message: str) -> Judgement:
    return Judgement("short", f"example {trial.example} {message}")


# --- The checklist of a good tool: 29 items, judged automatically as far as possible ---

MIN_TIMED_CALLS = 20
"""Minimum number of calls for judging the response time."""


@dataclass(frozen=True, slots=True)
class ChecklistItem:
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


def extra_findings(tool: Tool) -> list[Finding]:
    """Return the findings of a definition that belong to no item of the list."""
    return [each for each in _findings(tool) if each.rule not in ITEM_OF_RULE]


def tally(judged: Mapping[str, Judgement]) -> str:
    """Return a summary such as `27 of 29 checks pass, 2 need a human`."""
    verdicts = [each.verdict for each in judged.values()]
    failed, human = verdicts.count("short"), verdicts.count("person")
    passed = verdicts.count("pass") + verdicts.count("n/a")
    counts = (
        f"{passed} of {len(verdicts)} checks pass",
        f"{failed} {'fails' if failed == 1 else 'fail'}" if failed else "",
        f"{human} {'needs' if human == 1 else 'need'} a human" if human else "",
    )
    return ", ".join(filter(None, counts))


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
ITEMS: tuple[ChecklistItem, ...] = (
    ChecklistItem(
        "name",
        "The name is kebab-case, verb-noun, and no other tool's.",
        "Rename it, and keep the old name in `aliases`.",
        name,
    ),
    ChecklistItem(
        "description",
        "The description says in 50 characters or more what it does, when to use it and what comes back.",
        "Write it in plain words, with a use, in the docstring.",
        description,
    ),
    ChecklistItem(
        "parameters",
        "Every parameter is described, ids are branded, numbers and lists have bounds.",
        "Describe it under `Args:`, use a `BrandedId`, add `Field(ge=…, le=…, max_length=…)`.",
        parameters,
    ),
    ChecklistItem(
        "permissions",
        "All permissions it needs are listed as `resource:action`.",
        "Give `permissions=[…]`; an empty list says that none is needed.",
        permissions,
    ),
    ChecklistItem(
        "category",
        "Its category is query, mutation, analysis or generation.",
        "Give `category=`.",
        category,
    ),
    ChecklistItem(
        "response-time",
        "It promises fast, medium or slow, and keeps it.",
        "Give `response_time=` as it is, not as it should be.",
        response_time,
    ),
    ChecklistItem(
        "cacheable",
        "Answers are kept only where they stay true.",
        "Drop `cache_ttl` where each call must run.",
        cacheable,
    ),
    ChecklistItem(
        "cache-ttl",
        "What is kept has a time after which it is not.",
        "Give `cache_ttl=` in seconds, above 0, and never on a mutation.",
        cache_ttl,
    ),
    ChecklistItem(
        "idempotent",
        "`idempotent` is true where calling twice is as good as once, and only there.",
        "Give `idempotent=`; a query is, and has no side effects.",
        idempotent,
    ),
    ChecklistItem(
        "examples",
        "There is an example with description, params that fit, and expectedResult.",
        "Give `examples=[{…}]`.",
        examples,
    ),
    ChecklistItem("tags", "There is a tag to find it by.", "Give `tags=[…]`.", tags),
    ChecklistItem(
        "result",
        "A call gives data, shaped as its example says.",
        "Mend the example or the tool; never return None.",
        result,
    ),
    ChecklistItem("hints", "Every answer carries hints for the agent.", _ANY, hints),
    ChecklistItem(
        "confidence",
        "Confidence is reckoned, not written down.",
        "Build hints with `toolcrib.hints`: it is reckoned from what they rest on.",
        confidence,
    ),
    ChecklistItem(
        "source-quality",
        "The hints say how good their source is.",
        _ANY,
        partial(field, "sourceQuality"),
    ),
    ChecklistItem(
        "validity",
        "The hints say how long they hold.",
        _ANY,
        partial(field, "validityPeriod"),
    ),
    ChecklistItem(
        "context-needed",
        "The hints list what else would help, if only an empty list.",
        _ANY,
        partial(field, "contextNeeded"),
    ),
    ChecklistItem(
        "assumptions",
        "The hints list what they assume, if only an empty list.",
        _ANY,
        partial(field, "assumptions"),
    ),
    ChecklistItem(
        "risks",
        "The hints list what may go wrong, if only an empty list.",
        _ANY,
        partial(field, "riskFactors"),
    ),
    ChecklistItem(
        "dependencies",
        "The hints list which action comes before which, if only an empty list.",
        _ANY,
        partial(field, "dependencies"),
    ),
    ChecklistItem(
        "impact",
        "The hints weigh benefit, effort and what one brings for the other.",
        _ANY,
        partial(field, "estimatedImpact"),
    ),
    ChecklistItem(
        "preferences",
        "The hints say how actions suit the user, if only an empty list.",
        _ANY,
        partial(field, "preferenceAlignment"),
    ),
    ChecklistItem(
        "reasoning",
        "The hints say why, in a sentence.",
        "Give `reasoning=`; the builders of `toolcrib.hints` write one.",
        reasoning,
    ),
    ChecklistItem(
        "metadata",
        "The answer says which version answered, when, how long it took and under which trace.",
        "The gateway fills this in; where it lacks, report it.",
        metadata,
    ),
    ChecklistItem(
        "errors",
        "What goes wrong comes back as an error with a code and what to mend.",
        "Raise `BusinessRuleError(code, message)`; let nothing else escape.",
        errors,
    ),
    ChecklistItem(
        "logging",
        "Each call is in the log, from start to end, under its trace.",
        "The gateway does this; where it lacks, report it.",
        logging,
    ),
    ChecklistItem(
        "metrics",
        "Each call is counted and timed.",
        "The gateway does this; where it lacks, report it.",
        metrics,
    ),
    ChecklistItem(
        "tests",
        "There are tests, of the tool alone and through the gateway.",
        "Call `check_tools` of `toolcrib.testing` in a test, and test what the tool does.",
        tests,
    ),
    ChecklistItem(
        "registered",
        "The gateway offers it.",
        "Put it at the top of a module named in `functions`, or in a `Registry` there.",
        registered,
    ),
)
