"""What every result gets at the door: its moment, its time, its words, and hints that fit what it holds."""

from collections.abc import Generator
from time import tzset
from typing import Any

import pytest

from toolcrib.errors import CODES, problem
from toolcrib.gateway.completion import Completion
from toolcrib.gateway.related_tools import RelatedTools, TagIndex
from toolcrib.interfaces import Followers
from toolcrib.model import Ask, Deprecation, Evidence, Hints, Origin, Result, Tool
from toolcrib.testing import a_tool
from toolcrib.version import VERSION

NOON = 1_900_000_000.0
"""2030-03-17T17:46:40Z"""
ORIGIN = Origin(trace_id="4bf92f3577b34da6a3ce929d0e0e4736", correlation_id="corr-1")
SCHEMA: dict[str, Any] = {"type": "object", "required": ["a", "b"], "properties": {"a": {}, "b": {}, "c": {}}}


class Clock:
    """What the moment is read from."""

    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr("toolcrib.gateway.completion.time", made)
    return made


class Record:
    """What is known of tools, and who was asked about."""

    def __init__(self, past: tuple[float, float, int] = (1.0, 0.0, 0), followers: Followers = ()) -> None:
        self.past, self.next = past, followers
        self.asked: list[str] = []

    def of(self, name: str) -> tuple[float, float, int]:
        self.asked.append(name)
        return self.past

    def followers(self, name: str) -> Followers:
        self.asked.append(name)
        return self.next


def completed(result: Result, tool: Tool | None, record: Record | None = None) -> Result:
    known = record or Record()
    return Completion(known.of, known.followers).complete(result, tool, ORIGIN, 0.25)


def hints_of(result: Result) -> Hints:
    assert result.hints is not None
    return result.hints


def evidence_of(result: Result) -> Evidence:
    evidence = hints_of(result).evidence
    assert evidence is not None
    return evidence


# --- metadata ---


@pytest.mark.parametrize(
    "seconds, told",
    [(0.25, 250.0), (0.0000014, 0.001), (0.0000015, 0.002), (2.0, 2000.0), (1234.5, 1234500.0)],
)
def test_a_result_says_when_by_what_and_how_long(seconds: float, told: float, clock: Clock) -> None:
    clock.now = NOON + 0.0625
    tool = a_tool(version="1.4.2")
    made = Completion(Record().of).complete(Result(data=1, cached=True), tool, ORIGIN, seconds).metadata
    assert made is not None
    assert made.as_json() == {
        "toolVersion": "1.4.2",
        "timestamp": "2030-03-17T17:46:40.062Z",
        "executionTime": told,
        "serviceVersion": VERSION,
        "traceId": ORIGIN.trace_id,
        "correlationId": "corr-1",
        "cached": True,
    }
    assert made.service_version == VERSION
    assert (made.execution_time, made.cached) == (told, True)


def test_what_never_had_a_tool_has_no_version_and_nobody_is_asked_about_it(clock: Clock) -> None:
    record = Record()
    result = completed(Result(problem=problem("NOT_FOUND", "…")), None, record)
    assert result.metadata is not None
    assert (result.metadata.tool_version, record.asked) == ("0.0.0", [])
    assert not result.metadata.cached
    completed(Result(data=1), a_tool("cards:get"), record)
    assert record.asked == ["cards:get", "cards:get"]


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    """A machine whose own time is not UTC."""
    with monkeypatch.context() as patched:
        patched.setenv("TZ", "Asia/Tokyo")
        tzset()
        yield
    tzset()


@pytest.mark.usefixtures("elsewhere")
def test_moments_are_told_in_utc_wherever_the_machine_is(clock: Clock) -> None:
    metadata = completed(Result(data=1), a_tool()).metadata
    assert metadata is not None
    assert metadata.timestamp == "2030-03-17T17:46:40.000Z"


def test_moments_go_on_within_a_second_and_into_the_next(clock: Clock) -> None:
    completion = Completion(Record().of)
    told: list[str] = []
    for later in (0.0, 0.0, 0.25, 0.999, 1.0, 61.5, 0.5):
        clock.now = NOON + later
        metadata = completion.complete(Result(data=1), a_tool(), ORIGIN, 0.1).metadata
        assert metadata is not None
        told.append(metadata.timestamp)
    assert told == [
        "2030-03-17T17:46:40.000Z",
        "2030-03-17T17:46:40.000Z",
        "2030-03-17T17:46:40.250Z",
        "2030-03-17T17:46:40.999Z",
        "2030-03-17T17:46:41.000Z",
        "2030-03-17T17:47:41.500Z",
        "2030-03-17T17:46:40.500Z",
    ]


# --- the message ---


@pytest.mark.requirement("G1")
@pytest.mark.parametrize(
    "result, told",
    [
        (Result(data=1), "Done."),
        (Result(data=1, message="Mine."), "Mine."),
        (Result(problem=problem("TIMEOUT", "Too late.")), CODES["TIMEOUT"].speak),
        (Result(problem=problem("TOOL_FAILED", "Too late.", tool_code="LATE")), "Too late."),
        (Result(problem=problem("TOOL_FAILED", "y", tool_code="LATE")), "y"),
        (Result(problem=problem("TOOL_FAILED", "", tool_code="LATE")), CODES["TOOL_FAILED"].speak),
        (Result(problem=problem("TOOL_FAILED", "y" * 500, tool_code="LATE")), "y" * 500),
        (Result(problem=problem("TOOL_FAILED", "y" * 501, tool_code="LATE")), CODES["TOOL_FAILED"].speak),
        (Result(ask=Ask(questions={"a": {"params": {"message": "Who are you?"}}})), "Who are you?"),
        (
            Result(ask=Ask(questions={"a": {"params": {"message": "see a/b"}}})),
            "I need to know something first.",
        ),
        (Result(ask=Ask(questions={"a": {"params": {"message": 7}}})), "I need to know something first."),
        (Result(ask=Ask(questions={"a": {"params": "x"}})), "I need to know something first."),
        (Result(ask=Ask(questions={"a": {}, "b": {}})), "I need to know something first."),
        (Result(ask=Ask(questions={})), "I need to know something first."),
    ],
)
def test_every_result_has_words_for_the_ear(result: Result, told: str) -> None:
    assert completed(result, a_tool()).message == told


# --- hints ---


@pytest.mark.requirement("E8")
@pytest.mark.parametrize(
    "schema, data, share",
    [
        (SCHEMA, {"a": 1, "b": 2}, 1.0),
        (SCHEMA, {"a": 1}, 0.5),
        (SCHEMA, {"c": 1}, 0.0),
        ({"properties": {"a": {}, "b": {}, "c": {}, "d": {}}}, {"a": 1, "b": None, "c": 0}, 0.5),
        (None, {"a": None}, 1.0),
        (None, [1], 1.0),
        (None, 0, 1.0),
        (None, 1, 1.0),
        (None, "", 0.5),
        (None, {}, 0.5),
        (SCHEMA, [], 0.5),
    ],
)
def test_completeness_is_how_many_of_its_fields_an_answer_has(schema: Any, data: Any, share: float) -> None:
    made = completed(Result(data=data), a_tool(output_schema=schema))
    assert evidence_of(made).completeness == share


def test_an_answer_of_blocks_and_a_failure_are_not_measured_by_their_data() -> None:
    blocks = completed(Result(content=({"type": "text", "text": "hello"},)), a_tool())
    assert evidence_of(blocks).completeness == 1.0
    failed = completed(Result(problem=problem("TIMEOUT", "…")), a_tool(output_schema=SCHEMA))
    assert evidence_of(failed).completeness == 0.0


@pytest.mark.requirement("E8")
@pytest.mark.parametrize(
    "ttl, age, fresh",
    [
        (100.0, -50.0, 1.0),
        (100.0, 0.0, 1.0),
        (100.0, 49.0, 0.55),
        (100.0, 50.0, 0.5),
        (100.0, 500.0, 0.0),
        (None, 0.0, 1.0),
        (None, 43_200.0, 0.5),
        (None, 90_000.0, 0.0),
    ],
)
def test_freshness_is_what_is_left_of_the_time_an_answer_is_kept(
    ttl: float | None, age: float, fresh: float, clock: Clock
) -> None:
    tool = a_tool(category="query", cache_ttl=ttl)
    kept = Result(data=1, cached=True, made=NOON - age)
    assert evidence_of(completed(kept, tool)).freshness == fresh
    assert evidence_of(completed(Result(data=1), tool)).freshness == 1.0
    own = Result(data=1, cached=True, made=NOON - age, hints=Hints(confidence=1.0, evidence=Evidence()))
    assert evidence_of(completed(own, tool)).freshness == fresh


@pytest.mark.requirement("E8")
def test_a_tools_own_hints_stay_and_get_its_record() -> None:
    own = Hints(confidence=1.0, reasoning="Mine.", evidence=Evidence())
    made = completed(Result(data=1, hints=own), a_tool(), Record(past=(0.0, 0.0, 96)))
    assert hints_of(made).reasoning == "Mine."
    assert evidence_of(made).success == pytest.approx(0.036)
    assert hints_of(made).confidence < 1.0


@pytest.mark.requirement("E9")
def test_what_followed_is_suggested_of_the_tools_the_caller_sees() -> None:
    get, find = a_tool("cards:get"), a_tool("cards:find")
    known = Record(followers=(("cards:find", 0.6), ("cards:hidden", 0.4)))
    house = RelatedTools(TagIndex({"cards:find": find}), lambda _: True)
    made = Completion(known.of, known.followers).complete(Result(data=1), get, ORIGIN, 0.1, house)
    assert [each.action for each in hints_of(made).suggested_next_actions] == ["find"]


def test_alike_answers_share_their_hints_and_unlike_ones_do_not(clock: Clock) -> None:
    record = Record(past=(1.0, 0.05, 3))
    completion = Completion(record.of, record.followers)
    tool = a_tool(category="query", output_schema=SCHEMA, cache_ttl=100.0, response_time="fast")

    def made(result: Result) -> Hints:
        return hints_of(completion.complete(result, tool, ORIGIN, 0.1))

    plain = Result(data={"a": 1, "b": 2})
    first = made(plain)
    assert made(Result(data={"a": 7, "b": 8})) is first
    others = [
        made(Result(data={"a": 1})),
        made(Result(data={"a": 1, "b": 2}, cached=True, made=NOON - 50)),
        made(Result(data={"a": 1, "b": 2}, cached=True)),
        made(Result(ask=Ask(questions={}))),
        made(Result(problem=problem("TIMEOUT", "…"))),
        made(Result(problem=problem("INVALID_ARGUMENTS", "…", path="arguments.a"))),
        made(Result(problem=problem("INVALID_ARGUMENTS", "…", path="arguments.b"))),
    ]
    for past in (
        (0.5, 0.05, 3),
        (0.51, 0.05, 3),
        (1.0, 0.05, 2),
        (1.0, 0.05, 5),
        (1.0, 0.5, 5),
        (1.0, 5.0, 5),
    ):
        record.past = past
        others.append(made(plain))
    assert first not in others
    assert len({id(each) for each in others}) == len(others)
    record.past = (1.0, 0.05, 3)
    assert made(plain) is first


@pytest.mark.requirement("E9")
def test_hints_change_where_a_record_first_says_something() -> None:
    record = Record()
    completion = Completion(record.of, record.followers)
    tool = a_tool(response_time="fast")

    def told(past: tuple[float, float, int]) -> list[str]:
        record.past = past
        hints = hints_of(completion.complete(Result(data=1), tool, ORIGIN, 0.1))
        return [risk.type for risk in hints.risk_factors]

    assert told((0.2, 0.05, 4)) == []
    assert told((0.2, 0.05, 5)) == ["accuracy"]
    assert told((0.2, 0.2, 5)) == ["accuracy", "performance"]
    assert told((1.0, 0.1, 5)) == []
    assert told((1.0, 0.11, 5)) == ["performance"]
    # As often as nobody knows anything of a tool: of such a record only the number of calls tells.
    assert told((0.9, 0.2, 4)) == []
    assert told((0.9, 0.2, 5)) == ["performance"]


@pytest.mark.requirement("E9")
def test_a_promise_is_broken_above_its_bound_and_not_at_it() -> None:
    record = Record()
    completion = Completion(record.of, record.followers)
    tool = a_tool(response_time="medium")
    for seconds, warnings in ((1.0, 0), (1.01, 1), (1.0, 0)):
        record.past = (1.0, seconds, 5)
        assert len(hints_of(completion.complete(Result(data=1), tool, ORIGIN, 0.1)).warnings) == warnings


@pytest.mark.requirement("E8")
def test_the_more_calls_went_well_the_more_it_is_trusted_and_then_it_is_all_the_same() -> None:
    record = Record()
    completion = Completion(record.of, record.followers)
    tool = a_tool()

    def made(calls: int, rate: float = 1.0) -> Hints:
        record.past = (rate, 0.05, calls)
        return hints_of(completion.complete(Result(data=1), tool, ORIGIN, 0.1))

    assert made(5).confidence < made(50).confidence
    assert made(10_000) is made(20_000)
    assert made(5, 0.9) is made(50, 0.9)
    assert made(10_000, 0.501) is made(10_000, 0.502)
    assert made(10_000, 0.501) is not made(10_000, 0.51)


@pytest.mark.requirement("E13")
def test_of_a_tools_own_hints_too_the_replacement_is_named_only_to_those_who_see_it() -> None:
    old = a_tool("cards:old", deprecated=Deprecation(since="1.0.0", replacement="cards:new"))
    new = a_tool("cards:new")
    own = Result(data=1, hints=Hints(confidence=1.0))
    tagged = TagIndex({"cards:new": new})
    for house, fix in (
        (RelatedTools(tagged, lambda _: True), "Call cards:new instead."),
        (RelatedTools(tagged, lambda _: False), None),
    ):
        made = hints_of(Completion(Record().of).complete(own, old, ORIGIN, 0.1, house))
        assert [each.suggested_fix for each in made.warnings] == [fix]


def test_what_is_kept_of_a_tool_is_bounded_and_a_changed_tool_starts_afresh(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("toolcrib.gateway.hint_cache._MOST_KEPT", 2)
    completion = Completion(Record().of)
    tool = a_tool()

    def made(code: str | None, of: Tool) -> Hints:
        result = Result(data=1) if code is None else Result(problem=problem(code, "…"))
        return hints_of(completion.complete(result, of, ORIGIN, 0.1))

    first, second = made(None, tool), made("TIMEOUT", tool)
    assert (made(None, tool) is first, made("TIMEOUT", tool) is second) == (True, True)
    made("RATE_LIMITED", tool)
    again = made(None, tool)
    assert again is not first
    assert again == first
    assert made(None, a_tool()) is not again
    completion.forget()
    assert made(None, tool) is not again
