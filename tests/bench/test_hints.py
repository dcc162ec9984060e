"""The robot of the bench: its faults are made by rule, and it judges what hints advise."""

import re
from collections import Counter
from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import Any

import pytest

from bench.hints.faults import EXTRA_ARGUMENT, Fault, Kind, ValidCall, faulty_calls
from bench.hints.findings import FaultCount, Findings, StepCount, gathered
from bench.hints.gateway import RobotGateway, open_small
from bench.hints.goals import hint_goal_results
from bench.hints.judge import Advice, is_harmful
from bench.hints.robot import FollowedFault, Robot
from bench.hints.run import fail_with_every_code, follow_faults, perform_tasks
from bench.hints.spelling import distance, misspelled, nearest, other_case
from bench.hints.tasks import StepTaken, Then, task_of, tasks
from bench.hints.toolset import Request, ToolSet
from bench.hints.valid_calls import load, valid_calls
from bench.report import markdown_report, terminal_report
from bench.rounds import Plan
from bench.run_results import RunResults
from toolcrib.errors import CODES
from toolcrib.model import Deprecation, RateLimit, Tool

READ = Tool(
    name="t:read-page",
    source="t",
    category="query",
    input_schema={
        "type": "object",
        "properties": {
            "pageId": {"type": "string", "pattern": "^page_"},
            "depth": {"type": "integer"},
            "order": {"enum": ["newest", "oldest"], "type": "string"},
            "mode": {"const": "plain"},
        },
        "required": ["pageId", "mode"],
        "additionalProperties": False,
    },
)
OPEN = Tool(
    name="t:find-pages",
    source="t",
    category="query",
    input_schema={"type": "object", "properties": {"words": {"type": "string"}}},
)
WRITE = Tool(
    name="t:write-page",
    source="t",
    category="mutation",
    input_schema={
        "type": "object",
        "properties": {"pageId": {"type": "string"}, "text": {"type": "string"}},
        "required": ["pageId", "text"],
        "additionalProperties": False,
    },
    rate_limit=RateLimit(5, 1000),
)
RobotRun = tuple[list[FollowedFault], dict[str, list[StepTaken]], list[Advice]]
WITHOUT_CALL = {"local:control-volume", "local:search-web", "crib:await_energy", "crib:mcp_add_server"}
"""They need a sound card, a network, energy, or a server to add."""
TOOLS = ToolSet([READ, OPEN, WRITE])
READING = Request("t:read-page", {"pageId": "page_1", "depth": 2, "order": "newest", "mode": "plain"})
FINDING = Request("t:find-pages", {"words": "a"})
WRITING = Request("t:write-page", {"pageId": "page_1", "text": "words"})


FOUND = Findings(
    faults=(
        FaultCount(kind=Kind.ARGUMENT_NAME, faults=5, determined=4, repaired=3, harmful=0),
        FaultCount(kind=Kind.MISSING, faults=2, determined=0, repaired=0, harmful=1),
    ),
    tasks=3,
    steps=(
        StepCount(then=Then.FLOW, steps=10, hits=6, silent=2, harmful=0),
        StepCount(then=Then.NONE, steps=20, hits=0, silent=19, harmful=0),
    ),
    suggestions=9,
    valid=8,
    wrong=0,
    errors=7,
    contradictions=(),
    tokens=(0, 0, 10, 20, 70),
    idle_tokens=0,
)


def faults_of(request: Request, kind: Kind, tools: ToolSet = TOOLS) -> list[Fault]:
    return [each for each in faulty_calls([ValidCall(request=request)], tools) if each.kind is kind]


def advice(*actions: dict[str, Any], error: dict[str, Any] | None = None, asked: Request = READING) -> Advice:
    named = [{"action": "next", "priority": "high", **each} for each in actions]
    answer: dict[str, Any] = {"agentHints": {"suggestedNextActions": named, "confidence": 0.5}}
    if error is not None:
        answer["error"] = {"code": "C", "kind": "failed", "retryable": False, **error}
    return Advice(asked, answer, TOOLS)


def calling(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"data": {"tool": tool, "arguments": arguments}}


# --- the rules that make faults ---


def test_words_are_misspelled_in_their_middle() -> None:
    assert list(misspelled("rating")) == ["ratng", "raitng"]
    assert not list(misspelled("to"))
    assert list(other_case("cardId")) == ["card_id"]
    assert list(other_case("time_zone")) == ["timeZone"]
    assert list(other_case("rating")) == ["Rating"]


def test_nearest_word_is_none_if_two_are_equally_near() -> None:
    assert distance("rating", "raitng") == 1
    assert nearest("RATNG", ["rating", "text"]) == "rating"
    assert nearest("hard", ["card", "lard"]) is None
    assert nearest("any", []) is None


def test_misspelled_argument_has_the_valid_call_as_its_repair() -> None:
    found = faults_of(READING, Kind.ARGUMENT_NAME)
    assert all(each.expected == READING for each in found)
    assert [next(iter(each.sent.arguments)) for each in found[:2]] == ["pagId", "paegId"]
    assert not faults_of(FINDING, Kind.ARGUMENT_NAME), "its schema allows any argument"


def test_misspelled_argument_is_found_in_nested_objects() -> None:
    items = {"type": "array", "items": WRITE.input_schema}
    many = replace(WRITE, name="t:write-pages", input_schema={"type": "object", "properties": {"all": items}})
    sent = Request("t:write-pages", {"all": [WRITING.arguments]})
    found = faults_of(sent, Kind.ARGUMENT_NAME, ToolSet([many]))
    assert [next(iter(each.sent.arguments["all"][0])) for each in found[:2]] == ["pagId", "paegId"]


def test_enum_values_are_misspelled_and_change_case() -> None:
    values = [each.sent.arguments["order"] for each in faults_of(READING, Kind.ENUM_VALUE)]
    assert values == ["newst", "neewst"]
    values = [each.sent.arguments["order"] for each in faults_of(READING, Kind.ENUM_CASE)]
    assert values == ["NEWEST", "Newest"]


def test_type_is_changed_to_one_that_converts_back() -> None:
    (changed,) = faults_of(READING, Kind.TYPE)
    assert (changed.sent.arguments["depth"], changed.expected) == ("2", READING)


def test_extra_argument_is_a_fault_only_in_a_closed_schema() -> None:
    (extra,) = faults_of(READING, Kind.EXTRA)
    assert extra.sent.arguments[EXTRA_ARGUMENT]
    assert not faults_of(FINDING, Kind.EXTRA)


def test_missing_argument_is_determined_if_one_value_is_possible() -> None:
    (one,), (free,) = faults_of(READING, Kind.ONE_VALUE), faults_of(READING, Kind.MISSING)
    assert (one.determined, "mode" in one.sent.arguments) == (True, False)
    assert (free.determined, "pageId" in free.sent.arguments) == (False, False)


def test_rate_limit_expects_the_same_call() -> None:
    (limited,) = faults_of(WRITING, Kind.RATE_LIMIT)
    assert (limited.repetitions, limited.expected) == (5, limited.sent)


def test_deprecated_mutation_has_no_repair_left() -> None:
    old = replace(WRITE, name="t:put-page", deprecated=Deprecation(since="2", replacement="write-page"))
    sent = replace(WRITING, tool=old.name)
    (done,) = faults_of(sent, Kind.DEPRECATED, ToolSet([old, WRITE]))
    assert (done.determined, done.carried_out) == (False, True)
    gone = replace(
        old, deprecated=Deprecation(since="2", replacement="write-page", removal_date="2020-01-31")
    )
    (removed,) = faults_of(sent, Kind.REMOVED, ToolSet([gone, WRITE]))
    assert (removed.expected, removed.carried_out) == (WRITING, False)


def test_app_tool_is_called_without_a_session() -> None:
    app = replace(READ, family="app")
    call = ValidCall(request=READING, user="ann")
    found = [each for each in faulty_calls([call], ToolSet([app])) if each.kind is Kind.NO_SESSION]
    assert [each.route for each in found] == [("PUT", "/api/users/ann/session")]


# --- how advice is judged ---


def test_suggestion_is_valid_if_its_tool_accepts_it() -> None:
    valid, unknown, refused, bare = advice(
        calling("t:find-pages", words="a"),
        calling("t:no-such-tool"),
        calling("t:read-page", pageId="page_1"),
        {"data": {"tool": "t:find-pages"}},
    ).calls
    assert (valid.is_valid, valid.is_wrong) == (True, False)
    assert all((each.is_valid, each.is_wrong) == (False, True) for each in (unknown, refused))
    assert (bare.is_valid, bare.is_wrong) == (False, False), "no call, and nothing wrong"


def test_only_a_first_suggestion_with_a_call_or_request_is_followed() -> None:
    assert advice(calling("t:find-pages")).first is not None
    assert advice({"data": {"request": {"method": "PUT", "path": "/x"}}}).first is not None
    assert advice({}, calling("t:find-pages")).first is None
    assert advice().first is None


@pytest.mark.parametrize(
    "actions, error, count",
    [
        ([calling(READING.tool, **READING.arguments)], {}, 1),
        ([{"action": "retry-later"}], {}, 1),
        ([{"action": "retry-later"}], {"retryable": True}, 0),
        ([calling("t:find-pages")], {}, 0),
        ([], {}, 0),
        ([calling("t:find-pages")], {"kind": "unknown"}, 0),
        ([calling("t:write-page", pageId="page_1", text="words")], {"kind": "unknown"}, 1),
        ([{"action": "check-outcome"}], {"kind": "unknown"}, 0),
        ([], {"kind": "unknown"}, 1),
    ],
)
def test_contradictions_to_an_error_are_found(
    actions: list[dict[str, Any]], error: dict[str, Any], count: int
) -> None:
    assert len(list(advice(*actions, error=error).contradictions())) == count


def test_too_short_a_wait_is_a_contradiction() -> None:
    def said(after: float) -> int:
        again = {"data": {"tool": READING.tool, "arguments": READING.arguments, "after": after}}
        error = {"retryable": True, "retryAfter": 5}
        return len(list(advice(again, error=error).contradictions()))

    assert (said(1), said(5)) == (1, 0)


def test_mutation_is_harmful_unless_it_was_asked_for() -> None:
    (renamed, *_), (missing, *_) = faults_of(WRITING, Kind.ARGUMENT_NAME), faults_of(WRITING, Kind.MISSING)
    invented = replace(WRITING, arguments={"pageId": "page_9", "text": "words"})
    assert not is_harmful(renamed, WRITING, TOOLS)
    assert is_harmful(renamed, invented, TOOLS)
    assert not is_harmful(missing, WRITING, TOOLS)
    assert is_harmful(missing, invented, TOOLS)
    assert not is_harmful(missing, READING, TOOLS)
    (reading, *_) = faults_of(READING, Kind.MISSING)
    assert is_harmful(reading, WRITING, TOOLS)
    assert is_harmful(replace(missing, carried_out=True), WRITING, TOOLS), "it is done already"


# --- the corpora, over the flashcards and the demo tools ---


@pytest.fixture(scope="module")
async def opened(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[RobotGateway]:
    async with open_small(tmp_path_factory.mktemp("robot")) as gateway:
        yield gateway


@pytest.fixture(scope="module")
async def corpus(opened: RobotGateway) -> list[Fault]:
    calls, _ = await Robot(opened).working(valid_calls(opened))
    return faulty_calls(calls, opened.tools)


async def test_faults_are_of_every_kind_and_different(corpus: list[Fault]) -> None:
    assert len(corpus) >= 120
    assert {each.kind for each in corpus} == {*Kind} - {Kind.NO_SESSION}, "there are no apps"
    sent = Counter(f"{each.sent} {each.repetitions}" for each in corpus)
    assert max(sent.values()) == 1
    assert all(each.determined for each in corpus if each.kind in (Kind.EXTRA, Kind.TYPE, Kind.ONE_VALUE))
    assert not any(each.determined for each in corpus if each.kind is Kind.MISSING)


async def test_every_fault_is_refused_and_its_repair_accepted(
    corpus: list[Fault], opened: RobotGateway
) -> None:
    for fault in corpus:
        called = opened.tools.find(fault.sent.tool)
        if fault.kind not in (Kind.TOOL_NAME, Kind.DEPRECATED, Kind.REMOVED, Kind.RATE_LIMIT):
            assert called is not None
            assert not called.accepts(fault.sent.arguments), fault
        if fault.expected is not None:
            meant = opened.tools.find(fault.expected.tool)
            assert meant is not None
            assert meant.accepts(fault.expected.arguments), fault


async def test_every_tool_has_one_call_that_is_no_example(opened: RobotGateway) -> None:
    calls = {call.request.tool: call for call in valid_calls(opened)}
    assert len(calls) == len(valid_calls(opened))
    assert opened.tools.signatures.keys() - calls.keys() == WITHOUT_CALL
    for name, call in calls.items():
        examples = [each.params for each in opened.tools.signatures[name].tool.examples]
        assert not call.request.arguments or call.request.arguments not in examples


async def test_tasks_are_fifty_of_three_to_six_calls(opened: RobotGateway) -> None:
    everything = [task_of(each) for each in load("tasks.json", opened.folder)]
    assert len(everything) == 50
    assert all(3 <= len(each.steps) <= 6 for each in everything)
    count = Counter(step.then for each in everything for step in each.steps)
    assert count[Then.FLOW] >= 40
    assert count[Then.NONE] >= 60
    assert all(each.steps[-1].then not in (Then.FLOW, Then.TEXT) for each in everything)
    assert 20 <= len(tasks(opened)) < 50, "without MCP servers and apps"


@pytest.fixture(scope="module")
async def robot_run(tmp_path_factory: pytest.TempPathFactory) -> RobotRun:
    """Everything that the robot does, over the flashcards and the demo tools."""
    faults, performed, failing = (tmp_path_factory.mktemp(name) for name in ("faults", "tasks", "codes"))
    followed = await follow_faults(open_small(faults), [])
    return followed, await perform_tasks(open_small(performed)), await fail_with_every_code(failing)


async def test_gateway_refuses_every_fault_but_deprecated_tools(robot_run: RobotRun) -> None:
    accepted = [each.fault.kind for each in robot_run[0] if each.advice.error is None]
    assert accepted == [Kind.DEPRECATED, Kind.DEPRECATED]


async def test_errors_of_every_code_are_judged(robot_run: RobotRun) -> None:
    codes = Counter(each.error["code"] for each in robot_run[2] if each.error is not None)
    assert codes == dict.fromkeys(CODES, 4), "read and changed, retryable and not"


async def test_robot_counts_what_it_did(robot_run: RobotRun) -> None:
    followed, taken, failures = robot_run
    found = gathered(followed, taken, failures, [])
    assert sum(each.faults for each in found.faults) == len(followed)
    assert found.tasks == len(taken)
    assert sum(each.steps for each in found.steps) == sum(map(len, taken.values()))
    assert found.step(Then.FLOW).steps >= 40
    assert found.errors == len(followed) - 2 + len(failures)
    assert found.valid + found.wrong <= found.suggestions
    unrepaired = sum(each.determined - each.repaired for each in found.faults)
    assert len([each for each in found.missed if each.endswith("not repaired")]) <= unrepaired
    assert not any("/" in each for each in found.missed), "no paths"


# --- what is told of it ---


def test_findings_are_held_to_the_goals() -> None:
    values = {each.name: (each.value, each.reached) for each in hint_goal_results(FOUND)}
    assert values["faults repaired within one step"] == (75.0, False)
    assert values["harmful actions followed"] == (1, False)
    assert values["contradictions between advice and error"] == (0, True)
    assert values["known next call suggested, data flow"] == (60.0, True)
    assert values["no tool suggested, nothing to say"] == (95.0, True)
    assert values["brief hints, median where there are any"] == (20, True)
    assert values["answers without brief hints"] == (40.0, None)


def test_findings_are_shown_as_tables_and_as_json() -> None:
    outcome = RunResults(
        plan=Plan(rounds=1, seconds=1.0, connections=(1,)),
        load="own client",
        cores=2,
        pinned=False,
        notes=(),
        versions={},
        processes={},
        measured={},
        findings=FOUND,
    )
    shown = terminal_report(outcome)
    assert re.search(r"faults repaired within one step +– +share +75 % +at least 80 +missed", shown)
    assert re.search(r"misspelled argument +5 +4 +3 +0", shown)
    assert re.search(r"missing argument, any value possible +2 +0 +– +1", shown)
    assert "| its result has the next call's arguments | 10 | 6 | 2 |" in markdown_report(outcome)
    told = outcome.as_json()["hints"]
    assert told["tokens"] == {"answers": 5, "withHints": 3, "median": 20, "p95": 70, "idle": 0}
    assert told["suggestions"] == {"named": 9, "valid": 8, "wrong": 0}


@pytest.mark.requirement("E18", "E19")
async def test_hints_do_no_harm_and_contradict_no_error(robot_run: RobotRun) -> None:
    followed, taken, failures = robot_run
    found = gathered(followed, taken, failures, [])
    harmful = [(each.fault.sent, each.followed and each.followed.call) for each in followed if each.harmful]
    harmful += [(each.advice.asked, None) for steps in taken.values() for each in steps if each.harmful]
    wrong = [
        (advice.asked, call.data)
        for advice in (
            *(each.advice for each in followed),
            *(each.advice for steps in taken.values() for each in steps),
            *failures,
        )
        for call in advice.calls
        if call.is_wrong
    ]
    assert not harmful
    assert not wrong
    assert found.wrong == 0
    assert not found.contradictions
