"""The checklist: each item is judged by the definition and by observations of the tool."""

from dataclasses import replace
from typing import Any, get_args

import pytest

from tests.texts import matches
from toolcrib.errors import problem
from toolcrib.model import Ask, Deprecation, Evidence, Example, Hints, Metadata, Result, Tool
from toolcrib.sdk.checklist import ITEMS, Judgement, Verdict, extra_findings, judge, tally
from toolcrib.sdk.checks import ITEM_OF_RULE, RULES
from toolcrib.sdk.evidence import ExampleRun, ToolEvidence, structure_mismatch
from toolcrib.testing import a_tool

GOOD = a_tool(
    "cards:get-card",
    description="Look up one card by its id and return its title. Use it before changing a card.",
    input_schema={
        "type": "object",
        "properties": {"card_id": {"type": "string", "pattern": "^card_", "description": "Which card."}},
        "required": ["card_id"],
    },
    category="query",
    idempotent=True,
    tags=("cards",),
    examples=(Example(description="One", params={"card_id": "card_1"}, expected={"title": "One"}),),
)
META = Metadata(
    tool_version="1.0.0",
    timestamp="2030-01-31T12:00:00.000Z",
    execution_time=1.5,
    service_version="1.0.0",
    trace_id="t",
    correlation_id="c",
)
HINTS = Hints(confidence=0.9, source_quality="high", reasoning="It was looked up.", evidence=Evidence())
DONE = Result(data={"title": "One"}, hints=HINTS, metadata=META)
REFUSAL = Result(problem=problem("INVALID_ARGUMENTS", "card_id is missing"), hints=HINTS, metadata=META)
SEEN = ToolEvidence(
    runs=(ExampleRun(example=1, result=DONE),),
    equal_results=True,
    refusal=REFUSAL,
    logged=True,
    counted=True,
    listed=True,
    test_file="tests/test_cards.py",
)
HINTED = (
    "hints",
    "source-quality",
    "validity",
    "context-needed",
    "assumptions",
    "risks",
    "dependencies",
    "impact",
    "preferences",
    "reasoning",
)


def verdicts(tool: Tool = GOOD, seen: ToolEvidence = SEEN) -> dict[str, Verdict]:
    return {item: each.verdict for item, each in judge(tool, seen).items()}


def but(verdict: str, tool: Tool = GOOD, seen: ToolEvidence = SEEN) -> set[str]:
    return {item for item, each in verdicts(tool, seen).items() if each == verdict}


def with_result(*results: Result, claimed: tuple[float | None, ...] = ()) -> ToolEvidence:
    claims = claimed or (None,) * len(results)
    pairs = zip(results, claims, strict=True)
    runs = tuple(ExampleRun(example=1, result=result, stated_confidence=claim) for result, claim in pairs)
    return replace(SEEN, runs=runs)


@pytest.mark.requirement("E15")
def test_checklist_has_29_items_with_text_and_advice() -> None:
    assert len({item.id for item in ITEMS}) == len(ITEMS) == 29
    for item in ITEMS:
        assert item.requirement.endswith(".")
        assert item.fix.endswith(".")


@pytest.mark.requirement("E15")
def test_good_tool_passes_except_human_review_items() -> None:
    assert but("short") == set()
    assert but("person") == {"description"}
    assert but("n/a") == {"cache-ttl"}
    assert matches("cli", "tally of a good tool", tally(judge(GOOD, SEEN)))


def test_tally_counts_failed_items() -> None:
    judged = {"a": Judgement("short", ""), "b": Judgement("person", ""), "c": Judgement("n/a", "")}
    assert matches("cli", "tally with a failed item", tally(judged))


def test_every_definition_rule_maps_to_an_item_or_an_extra() -> None:
    severities = {rule.id: rule.severity for rule in RULES}
    assert severities.keys() - ITEM_OF_RULE.keys() == {"version", "numbers", "deprecated", "strings"}
    assert [rule for rule, severity in severities.items() if severity == "advice"] == ["strings"]
    assert {item.id for item in ITEMS} >= set(ITEM_OF_RULE.values())
    wrong = replace(GOOD, version="first", deprecated=Deprecation(since="1.0.0"), tags=())
    assert {each.rule for each in extra_findings(wrong)} == {"version", "deprecated"}


@pytest.mark.requirement("E15", "E1a")
@pytest.mark.parametrize(
    "fields,item",
    [
        ({"name": "cards:card"}, "name"),
        ({"description": "Short."}, "description"),
        ({"input_schema": {"type": "object", "properties": {"card_id": {"type": "string"}}}}, "parameters"),
        ({"permissions": frozenset({"cards"})}, "permissions"),
        ({"category": "guess"}, "category"),
        ({"cache_ttl": -1.0}, "cache-ttl"),
        ({"idempotent": False}, "idempotent"),
        ({"examples": ()}, "examples"),
        ({"tags": ()}, "tags"),
    ],
)
def test_missing_part_is_reported_under_its_item(fields: dict[str, Any], item: str) -> None:
    assert item in but("short", replace(GOOD, **fields), ToolEvidence(listed=True))


def test_a_tool_of_another_maker_keeps_its_name() -> None:
    foreign = replace(GOOD, name="cards:get_card", family="mcp")
    assert verdicts(foreign)["name"] == "pass"
    assert verdicts(replace(foreign, family="function"))["name"] == "short"


@pytest.mark.requirement("E15", "E1a")
def test_human_review_items_are_asked() -> None:
    asked = but("person", replace(GOOD, category="mutation", idempotent=False), ToolEvidence(listed=True))
    assert asked == {"description", "permissions", "idempotent", "result", "confidence", "tests"}
    assert "cacheable" in but("person", replace(GOOD, cache_ttl=60.0))
    assert verdicts(replace(GOOD, cache_ttl=60.0))["cache-ttl"] == "pass"
    assert "idempotent" in but("person", seen=replace(SEEN, equal_results=False))
    anything = {"type": "object", "properties": {"word": {"type": "string", "description": "A word."}}}
    assert "parameters" in but("person", replace(GOOD, input_schema=anything))
    assert verdicts(replace(GOOD, input_schema={"type": "object"}))["parameters"] == "n/a"


@pytest.mark.requirement("E15", "E12")
def test_a_promise_that_is_broken_over_many_calls_is_short() -> None:
    for response_time, p95, verdict in (
        ("fast", 99.0, "pass"),
        ("fast", 101.0, "short"),
        ("medium", 999.0, "pass"),
        ("medium", 1001.0, "short"),
        ("slow", 60_000.0, "pass"),
        ("fast", None, "pass"),
    ):
        tool: Tool = replace(GOOD, response_time=response_time)
        assert verdicts(tool, replace(SEEN, p95=p95))["response-time"] == verdict


@pytest.mark.requirement("E15")
@pytest.mark.parametrize(
    "result,verdict,said",
    [
        (DONE, "pass", "returned what they declare"),
        (DONE.replace(data={"title": None, "due": 7}), "pass", ""),
        (DONE.replace(data={"name": "One"}), "short", "data.title is missing"),
        (DONE.replace(data="One"), "short", "data is text, but an object in the example"),
        (REFUSAL, "short", "returned the error INVALID_ARGUMENTS: card_id is missing"),
        (DONE.replace(data=None, ask=Ask(questions={"sure": {}})), "person", "asks for input first"),
    ],
)
def test_example_must_return_its_expected_result(result: Result, verdict: str, said: str) -> None:
    found = judge(GOOD, with_result(result))["result"]
    assert found.verdict == verdict
    assert said in found.message


@pytest.mark.requirement("E15", "E8")
@pytest.mark.parametrize(
    "claimed,verdict",
    [
        ((None,), "pass"),
        ((0.9,), "short"),
        ((0.9, 0.9), "short"),
        ((0.9, 0.8), "pass"),
        ((None, 0.9), "short"),
    ],
)
def test_constant_unexplained_confidence_falls_short(claimed: tuple[float | None, ...], verdict: str) -> None:
    seen = with_result(*(DONE for _ in claimed), claimed=claimed)
    assert judge(GOOD, seen)["confidence"].verdict == verdict


@pytest.mark.requirement("E15", "E7")
def test_hints_that_lack_or_break_a_rule_are_short() -> None:
    assert but("short", seen=with_result(DONE.replace(hints=None))) == set(HINTED)
    wrong = replace(HINTS, confidence=1.7, evidence=None)
    assert but("short", seen=with_result(DONE.replace(hints=wrong))) == {"hints"}
    assert but("short", seen=with_result(DONE.replace(hints=replace(HINTS, reasoning=None)))) == {"reasoning"}
    said = "cards:get-card: agentHints.riskFactors[0].impact is 7: give a number from 0 to 1"
    refused = DONE.replace(data=None, problem=problem("CONTRACT_VIOLATION", said))
    assert but("short", seen=with_result(refused)) == {"result", "hints", "risks"}


@pytest.mark.requirement("E15", "E6")
@pytest.mark.parametrize("metadata", [None, Metadata.of({**META.__dict__, "trace_id": ""})])
def test_metadata_must_be_complete(metadata: Metadata | None) -> None:
    assert but("short", seen=with_result(DONE.replace(metadata=metadata))) == {"metadata"}


@pytest.mark.requirement("E15", "E11")
def test_raising_or_unvalidating_handler_falls_short() -> None:
    raised = DONE.replace(data=None, problem=problem("HANDLER_ERROR", "the tool raised"))
    assert but("short", seen=with_result(raised)) == {"result", "errors"}
    assert but("short", seen=replace(SEEN, refusal=DONE)) == {"errors"}
    assert but("short", seen=replace(SEEN, refusal=REFUSAL.replace(hints=None))) == {"errors"}


@pytest.mark.requirement("E15", "E14")
def test_log_counters_tests_and_list_are_checked() -> None:
    unseen = replace(
        SEEN, logged=False, counted=False, listed=False, withheld="the name is taken", test_file=""
    )
    assert but("short", seen=unseen) == {"logging", "metrics", "registered", "name"}
    assert "tests" in but("person", seen=unseen)


def test_items_not_run_are_left_to_the_gateway() -> None:
    judged = judge(replace(GOOD, category="mutation"), ToolEvidence())
    for item in (*HINTED, "metadata", "errors", "logging", "metrics"):
        assert judged[item].message.endswith("not run")
    assert judged["registered"].verdict == "n/a"
    assert "--run-mutations" in judged["result"].message
    assert "--run-mutations" not in judge(GOOD, ToolEvidence())["result"].message


@pytest.mark.parametrize(
    "expected,came,said",
    [
        ({}, {"a": 1}, None),
        (None, {"a": 1}, None),
        ({"a": 1}, {"a": 1.5, "b": 2}, None),
        ({"a": True}, {"a": 1}, "data.a is a number, but true or false in the example"),
        ({"a": {"b": "x"}}, {"a": {}}, "data.a.b is missing, but the example has it"),
        ([], [1, 2], None),
        ([1], [], None),
        ([{"a": 1}], [{"a": 2}, {"b": 3}], "data[1].a is missing, but the example has it"),
        ([1, "x"], ["y", 2], None),
        ([1], "x", "data is text, but a list in the example"),
    ],
)
def test_an_answer_is_compared_with_its_example_by_shape(expected: Any, came: Any, said: str | None) -> None:
    assert structure_mismatch(expected, came) == said


def test_every_verdict_is_given_to_something() -> None:
    seen = {*verdicts().values(), *verdicts(replace(GOOD, tags=())).values()}
    assert seen == set(get_args(Verdict))
