"""The checklist of a tool: items that are judged by its definition, by evidence or by a human."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal

from toolcrib.hints import faults
from toolcrib.model import Result, Tool
from toolcrib.sdk.checks import ITEM_OF_RULE, Finding, findings
from toolcrib.sdk.evidence import ExampleRun, ToolEvidence, structure_mismatch

Verdict = Literal["pass", "short", "person", "n/a"]
"""`short` if the item fails, `person` if a human must decide."""

MIN_TIMED_CALLS = 20
"""Minimum number of calls for judging the response time."""
_NOT_RUN = "guaranteed by the gateway; not run"


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict of one item for one tool, with the reason or the fix."""

    verdict: Verdict
    message: str


Judge = Callable[[Tool, ToolEvidence], Judgement]


@dataclass(frozen=True, slots=True)
class ChecklistItem:
    """One line of the checklist."""

    id: str
    requirement: str
    fix: str
    judge: Judge


def judge(tool: Tool, evidence: ToolEvidence) -> dict[str, Judgement]:
    """Judge every item for one tool."""
    faults_by_item: dict[str, list[str]] = {}
    for finding in _definition_findings(tool):
        if finding.rule in ITEM_OF_RULE:
            faults_by_item.setdefault(ITEM_OF_RULE[finding.rule], []).append(finding.message)
    return {
        item.id: Judgement("short", "; ".join(faults_by_item[item.id]))
        if item.id in faults_by_item
        else item.judge(tool, evidence)
        for item in ITEMS
    }


def extra_findings(tool: Tool) -> list[Finding]:
    """Return the findings of a definition that belong to no item of the list."""
    return [each for each in _definition_findings(tool) if each.rule not in ITEM_OF_RULE]


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


def _definition_findings(tool: Tool) -> list[Finding]:
    """Return contradictions and shortfalls; names of third-party tools are not judged."""
    foreign = tool.family != "function"
    shortfalls = (each for each in findings(tool, "shortfall") if not (foreign and each.rule == "name"))
    return [*findings(tool, "contradiction"), *shortfalls]


# --- Judges of single items ---


def _judge_name(tool: Tool, evidence: ToolEvidence) -> Judgement:
    if evidence.withheld:
        return Judgement("short", evidence.withheld)
    return _pass(f"no other tool is named {tool.local}")


def _judge_description(tool: Tool, evidence: ToolEvidence) -> Judgement:
    question = "does it say in plain English what the tool does, when to use it and what it returns?"
    return _person(f"{question} please review")


def _judge_parameters(tool: Tool, evidence: ToolEvidence) -> Judgement:
    if not tool.input_schema.get("properties"):
        return Judgement("n/a", "it has no parameters")
    unbounded = "; ".join(each.message for each in findings(tool, "advice"))
    if unbounded:
        return _person(unbounded)
    tried = evidence.refusal is not None and _is_refusal(evidence.refusal)
    return _pass("invalid arguments are rejected" if tried else "each is described and bounded")


def _judge_permissions(tool: Tool, evidence: ToolEvidence) -> Judgement:
    if not tool.permissions and not tool.read_only:
        return _person("it may change data and requires no permission: please confirm that this is intended")
    return _pass(", ".join(sorted(tool.permissions)) or "it requires none")


def _judge_response_time(tool: Tool, evidence: ToolEvidence) -> Judgement:
    limit = None if tool.promised is None else tool.promised * 1000
    if limit is None or evidence.p95 is None or evidence.p95 <= limit:
        return _pass(tool.response_time)
    declared = f"declared {tool.response_time}, which is under {limit:g} ms"
    slow = f"5 of 100 calls take over {evidence.p95:.0f} ms"
    return Judgement("short", f"{declared}, but {slow}: make it faster, or declare a longer response time")


def _judge_cacheable(tool: Tool, evidence: ToolEvidence) -> Judgement:
    if tool.cache_ttl is None:
        return _pass("results are not cached")
    shared = " and may be returned to other callers" if tool.shared_cache else ""
    request = "please confirm that they stay valid that long"
    return _person(f"results are cached for {tool.cache_ttl:g} s{shared}: {request}")


def _judge_idempotent(tool: Tool, evidence: ToolEvidence) -> Judgement:
    if evidence.equal_results:
        return _pass("two equal calls returned equal results")
    effect = "calling it twice has the same effect as calling it once"
    if evidence.equal_results is False:
        return _person(f"two equal calls returned different results: please confirm that {effect}")
    if tool.idempotent:
        return _person(f"declared idempotent: please confirm that {effect}")
    return _person("declared not idempotent: please confirm that a second call has a further effect")


def _judge_result(tool: Tool, evidence: ToolEvidence) -> Judgement:
    if not evidence.runs:
        return _person(f"{_not_run_reason(tool)}: please confirm that its results match its examples")
    for run in evidence.runs:
        problem = run.result.problem
        if problem is not None:
            return _example_fault(run, f"returned the error {problem.code}: {problem.message}")
        if run.result.ask is not None:
            return _person(f"example {run.example} asks for input first: answer it and check the result")
        mismatch = structure_mismatch(tool.examples[run.example - 1].expected, run.result.data)
        if mismatch is not None:
            return _example_fault(run, f"returned another structure: {mismatch}")
    return _pass("its examples returned what they declare")


def _judge_hints(tool: Tool, evidence: ToolEvidence) -> Judgement:
    for run in evidence.runs:
        hints = run.result.hints
        violations = ("has no hints",) if hints is None else (*_hint_violation(run), *faults(hints))
        if violations:
            return _example_fault(run, "; ".join(violations))
    return _pass("every result has valid hints") if evidence.runs else _pass(_NOT_RUN)


def _judge_confidence(tool: Tool, evidence: ToolEvidence) -> Judgement:
    stated = [each.stated_confidence for each in evidence.runs if each.stated_confidence is not None]
    if not evidence.runs:
        return _person(f"{_not_run_reason(tool)}: please confirm that it is calculated, not constant")
    if not stated:
        return _pass("calculated from the evidence of the result")
    if len(set(stated)) > 1:
        return _pass("it varies with the result")
    constant = f"it is always {stated[0]:g}: build hints with toolcrib.hints, which calculates it"
    return Judgement("short", f"{constant}, or add an example with another confidence")


def _judge_hint_field(name: str, tool: Tool, evidence: ToolEvidence) -> Judgement:
    """Judge one of the required hint fields, by its JSON name."""
    for run in evidence.runs:
        hints = run.result.hints
        violation = [each for each in _hint_violation(run) if f"agentHints.{name}" in each]
        if violation or hints is None or name not in hints.as_json():
            return _example_fault(run, violation[0] if violation else f"lacks agentHints.{name}")
    return _pass("present") if evidence.runs else _pass(_NOT_RUN)


def _judge_reasoning(tool: Tool, evidence: ToolEvidence) -> Judgement:
    for run in evidence.runs:
        if run.result.hints is None or not run.result.hints.reasoning:
            return _example_fault(run, 'has no reasoning: explain the hints in a sentence, reasoning="…"')
    return _pass("present") if evidence.runs else _pass(_NOT_RUN)


def _judge_metadata(tool: Tool, evidence: ToolEvidence) -> Judgement:
    for run in evidence.runs:
        missing = _missing_metadata(run.result)
        if missing:
            return _example_fault(run, f"lacks {', '.join(missing)}")
    return _pass("complete") if evidence.runs else _pass(_NOT_RUN)


def _judge_errors(tool: Tool, evidence: ToolEvidence) -> Judgement:
    for run in evidence.runs:
        problem = run.result.problem
        if problem is not None and problem.code in ("HANDLER_ERROR", "EXECUTION_ERROR"):
            fix = "catch it, and raise BusinessRuleError(code, message) to reject a call"
            return _example_fault(run, f"raised an exception: {fix}")
    if evidence.refusal is None:
        return _pass(_NOT_RUN)
    if not _is_refusal(evidence.refusal):
        return Judgement("short", "invalid arguments were not rejected with INVALID_ARGUMENTS and a message")
    return _pass("invalid arguments are rejected, with the fix")


def _judge_tests(tool: Tool, evidence: ToolEvidence) -> Judgement:
    if evidence.test_file:
        return _pass(f"{evidence.test_file} names it")
    request = "please confirm that there are unit tests and gateway tests"
    return _person(f"no test near the module names it: {request}")


def _judge_registered(tool: Tool, evidence: ToolEvidence) -> Judgement:
    if evidence.listed is None:
        return Judgement("n/a", "only its definition was checked")
    return _observed(evidence.listed, "the gateway offers it", "the gateway does not offer it")


def _not_run_reason(tool: Tool) -> str:
    may_change = tool.examples and not tool.read_only
    return "not run, as it may change data (--run-mutations runs it)" if may_change else "not run"


def _observed(seen: bool | None, passed: str, failed: str) -> Judgement:  # noqa: FBT001 - an observation, not an option
    if seen is None:
        return _pass(_NOT_RUN)
    return _pass(passed) if seen else Judgement("short", failed)


def _is_refusal(result: Result) -> bool:
    """Whether a result is a complete refusal of invalid arguments."""
    problem = result.problem
    explained = problem is not None and problem.code == "INVALID_ARGUMENTS" and bool(problem.message)
    return explained and result.hints is not None and not _missing_metadata(result)


def _hint_violation(run: ExampleRun) -> tuple[str, ...]:
    """Return the gateway's error about the tool's own hints, if any."""
    problem = run.result.problem
    if problem is None or problem.code != "CONTRACT_VIOLATION" or "agentHints" not in problem.message:
        return ()
    return (problem.message,)


def _missing_metadata(result: Result) -> list[str]:
    if result.metadata is None:
        return ["metadata"]
    return [name for name, value in result.metadata.as_json().items() if value is None or value == ""]


def _pass(message: str) -> Judgement:
    return Judgement("pass", message)


def _person(message: str) -> Judgement:
    return Judgement("person", message)


def _example_fault(run: ExampleRun, message: str) -> Judgement:
    return Judgement("short", f"example {run.example} {message}")


# --- The items ---

_BUILD_HINTS = "Build hints with `toolcrib.hints`, or return none: the gateway then adds them."
_BY_GATEWAY = "The gateway does this; report it if it is missing."
_HINT_FIELDS = (
    ("source-quality", "sourceQuality", "The hints state the quality of their source."),
    ("validity", "validityPeriod", "The hints state how long they are valid."),
    ("context-needed", "contextNeeded", "The hints list further useful context; the list may be empty."),
    ("assumptions", "assumptions", "The hints list their assumptions; the list may be empty."),
    ("risks", "riskFactors", "The hints list risks; the list may be empty."),
    ("dependencies", "dependencies", "The hints list the order of dependent actions; the list may be empty."),
    ("impact", "estimatedImpact", "The hints estimate benefit, effort and the ratio of the two."),
    (
        "preferences",
        "preferenceAlignment",
        "The hints rate how actions suit the user; the list may be empty.",
    ),
)

ITEMS: tuple[ChecklistItem, ...] = (
    ChecklistItem(
        "name",
        "The name is kebab-case, verb-noun and unique.",
        "Rename it, and keep the old name in `aliases`.",
        _judge_name,
    ),
    ChecklistItem(
        "description",
        "The description says in 50 characters or more what it does, when to use it and what it returns.",
        "Write it in plain words, with a use, in the docstring.",
        _judge_description,
    ),
    ChecklistItem(
        "parameters",
        "Every parameter is described, ids are branded, numbers and lists have bounds.",
        "Describe it under `Args:`, use a `BrandedId`, add `Field(ge=…, le=…, max_length=…)`.",
        _judge_parameters,
    ),
    ChecklistItem(
        "permissions",
        "All required permissions are listed as `resource:action`.",
        "Set `permissions=[…]`; an empty list means that none is required.",
        _judge_permissions,
    ),
    ChecklistItem(
        "category",
        "The category is query, mutation, analysis or generation.",
        "Set `category=`.",
        lambda tool, _: _pass(tool.category),
    ),
    ChecklistItem(
        "response-time",
        "The declared response time is fast, medium or slow, and calls keep to it.",
        "Set `response_time=` to what calls really take.",
        _judge_response_time,
    ),
    ChecklistItem(
        "cacheable",
        "Results are cached only while they stay valid.",
        "Remove `cache_ttl` if each call must run.",
        _judge_cacheable,
    ),
    ChecklistItem(
        "cache-ttl",
        "Cached results have a time to live.",
        "Set `cache_ttl=` in seconds, above 0, and never on a mutation.",
        lambda tool, _: (
            Judgement("n/a", "results are not cached")
            if tool.cache_ttl is None
            else _pass(f"{tool.cache_ttl:g} s")
        ),
    ),
    ChecklistItem(
        "idempotent",
        "`idempotent` is true if and only if calling twice has the same effect as calling once.",
        "Set `idempotent=`; a query is idempotent and has no side effects.",
        _judge_idempotent,
    ),
    ChecklistItem(
        "examples",
        "There is an example with description, valid params and expectedResult.",
        "Set `examples=[{…}]`.",
        lambda tool, _: _pass(f"{len(tool.examples)}"),
    ),
    ChecklistItem(
        "tags",
        "There is at least one tag, for search.",
        "Set `tags=[…]`.",
        lambda tool, _: _pass(", ".join(tool.tags)),
    ),
    ChecklistItem(
        "result",
        "A call returns data with the structure of its example.",
        "Correct the example or the tool; never return None.",
        _judge_result,
    ),
    ChecklistItem("hints", "Every result has hints for the agent.", _BUILD_HINTS, _judge_hints),
    ChecklistItem(
        "confidence",
        "The confidence is calculated, not constant.",
        "Build hints with `toolcrib.hints`, which calculates it from the evidence.",
        _judge_confidence,
    ),
    *(
        ChecklistItem(item, requirement, _BUILD_HINTS, partial(_judge_hint_field, name))
        for item, name, requirement in _HINT_FIELDS
    ),
    ChecklistItem(
        "reasoning",
        "The hints explain themselves in a sentence.",
        "Set `reasoning=`; the builders of `toolcrib.hints` write one.",
        _judge_reasoning,
    ),
    ChecklistItem(
        "metadata",
        "The result states the version of the tool, the time, the duration and the trace id.",
        _BY_GATEWAY,
        _judge_metadata,
    ),
    ChecklistItem(
        "errors",
        "Failures are returned as an error with a code and the fix.",
        "Raise `BusinessRuleError(code, message)`; let no other exception escape.",
        _judge_errors,
    ),
    ChecklistItem(
        "logging",
        "Each call is logged, from start to end, with its trace id.",
        _BY_GATEWAY,
        lambda _, evidence: _observed(
            evidence.logged, "its calls are logged with their trace id", "its calls are not in the log"
        ),
    ),
    ChecklistItem(
        "metrics",
        "Each call is counted and timed.",
        _BY_GATEWAY,
        lambda _, evidence: _observed(
            evidence.counted, "its calls are counted and timed", "its calls are not counted"
        ),
    ),
    ChecklistItem(
        "tests",
        "There are unit tests of the tool, and tests through the gateway.",
        "Call `check_tools` of `toolcrib.testing` in a test, and test what the tool does.",
        _judge_tests,
    ),
    ChecklistItem(
        "registered",
        "The gateway offers it.",
        "Define it at the top level of a module listed in `functions`, or in a `Registry` there.",
        _judge_registered,
    ),
)
