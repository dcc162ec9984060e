"""Completion of results: metadata, the message, and hints that fit the outcome."""

from collections.abc import Generator
from time import time, tzset
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.texts import matches
from toolcrib.errors import CODES, problem
from toolcrib.gateway.completion import Completion
from toolcrib.gateway.related_tools import RelatedTools
from toolcrib.interfaces import Followers
from toolcrib.model import Ask, Deprecation, Evidence, Hints, Origin, Result, Tool
from toolcrib.testing import a_tool
from toolcrib.version import VERSION

NOON = 1_900_000_000.0
"""2030-03-17T17:46:40Z"""
ORIGIN = Origin(trace_id="4bf92f3577b34da6a3ce929d0e0e4736", correlation_id="corr-1")
SCHEMA: dict[str, Any] = {"type": "object", "required": ["a", "b"], "properties": {"a": {}, "b": {}, "c": {}}}


class Clock:
    """A manual wall clock."""

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
    """Tool records, which record the names read."""

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
def test_metadata_has_time_version_and_duration(seconds: float, told: float, clock: Clock) -> None:
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


def test_without_a_tool_the_record_is_not_read(clock: Clock) -> None:
    record = Record()
    result = completed(Result(problem=problem("NOT_FOUND", "…")), None, record)
    assert result.metadata is not None
    assert (result.metadata.tool_version, record.asked) == ("0.0.0", [])
    assert not result.metadata.cached
    completed(Result(data=1), a_tool("cards:get"), record)
    assert record.asked == ["cards:get", "cards:get"]


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    """A machine whose time zone is not UTC."""
    with monkeypatch.context() as patched:
        patched.setenv("TZ", "Asia/Tokyo")
        tzset()
        yield
    tzset()


@pytest.mark.usefixtures("elsewhere")
def test_timestamps_are_utc_in_any_time_zone(clock: Clock) -> None:
    metadata = completed(Result(data=1), a_tool()).metadata
    assert metadata is not None
    assert metadata.timestamp == "2030-03-17T17:46:40.000Z"


def test_timestamps_follow_the_clock(clock: Clock) -> None:
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
        (Result(ask=Ask(questions={"a": {"params": {"message": "see a/b"}}})), None),
        (Result(ask=Ask(questions={"a": {"params": {"message": 7}}})), None),
        (Result(ask=Ask(questions={"a": {"params": "x"}})), None),
        (Result(ask=Ask(questions={"a": {}, "b": {}})), None),
        (Result(ask=Ask(questions={})), None),
    ],
)
def test_every_result_has_a_spoken_message(result: Result, told: str | None) -> None:
    message = completed(result, a_tool()).message
    assert matches("errors", "message of a question", message) if told is None else message == told


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
def test_completeness_is_the_share_of_schema_fields(schema: Any, data: Any, share: float) -> None:
    made = completed(Result(data=data), a_tool(output_schema=schema))
    assert evidence_of(made).completeness == share


def test_completeness_of_blocks_and_failures() -> None:
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
def test_freshness_is_the_remaining_share_of_the_ttl(
    ttl: float | None, age: float, fresh: float, clock: Clock
) -> None:
    tool = a_tool(category="query", cache_ttl=ttl)
    kept = Result(data=1, cached=True, made=NOON - age)
    assert evidence_of(completed(kept, tool)).freshness == fresh
    assert evidence_of(completed(Result(data=1), tool)).freshness == 1.0
    own = Result(data=1, cached=True, made=NOON - age, hints=Hints(confidence=1.0, evidence=Evidence()))
    assert evidence_of(completed(own, tool)).freshness == fresh


@pytest.mark.requirement("E8")
def test_hints_of_a_tool_are_kept_and_get_its_record() -> None:
    own = Hints(confidence=1.0, reasoning="Mine.", evidence=Evidence())
    made = completed(Result(data=1, hints=own), a_tool(), Record(past=(0.0, 0.0, 96)))
    assert hints_of(made).reasoning == "Mine."
    assert evidence_of(made).success == pytest.approx(0.036)
    assert hints_of(made).confidence < 1.0


@pytest.mark.requirement("E9")
def test_visible_followers_are_related_resources() -> None:
    get, find = a_tool("cards:get"), a_tool("cards:find")
    known = Record(followers=(("cards:find", 0.6), ("cards:hidden", 0.4)))
    related_tools = RelatedTools({"cards:find": find}, lambda _: True)
    made = Completion(known.of, known.followers).complete(Result(data=1), get, ORIGIN, 0.1, related_tools)
    assert [each.id for each in hints_of(made).related_resources] == ["cards:find"]
    assert hints_of(made).suggested_next_actions == ()


@pytest.mark.requirement("E13")
def test_own_hints_hide_an_invisible_replacement() -> None:
    old = a_tool("cards:old", deprecated=Deprecation(since="1.0.0", replacement="cards:new"))
    new = a_tool("cards:new")
    own = Result(data=1, hints=Hints(confidence=1.0))
    tools = {"cards:new": new}
    for related_tools, fix in (
        (RelatedTools(tools, lambda _: True), "Call cards:new instead."),
        (RelatedTools(tools, lambda _: False), None),
    ):
        made = hints_of(Completion(Record().of).complete(own, old, ORIGIN, 0.1, related_tools))
        assert [each.suggested_fix for each in made.warnings] == [fix]


@pytest.mark.requirement("E8")
def test_old_empty_or_partial_answers_lower_confidence() -> None:
    schema: Any = {"type": "object", "required": ["a", "b"], "properties": {"a": {}, "b": {}}}
    tool = a_tool(category="query", output_schema=schema, cache_ttl=100.0)
    completion = Completion(lambda _tool: (1.0, 0.0, 50))

    def trust(result: Result) -> float:
        hints = completion.complete(result, tool, Origin(), 0.1).hints
        assert hints is not None
        return hints.confidence

    whole, gaps, hollow = ({"a": 1, "b": 2}, {"a": 1, "b": None}, [])
    assert trust(Result(data=whole)) > trust(Result(data=gaps))
    assert trust(Result(data=whole)) > trust(Result(data=hollow))
    ages = [trust(Result(data=whole, cached=True, made=time() - age)) for age in (1, 30, 60, 90, 500)]
    assert ages == sorted(ages, reverse=True)
    assert len(set(ages)) >= 4


@pytest.mark.requirement("G1")
@pytest.mark.parametrize(
    "said, spoken",
    [
        ("This card is locked until tomorrow.", "This card is locked until tomorrow."),
        ("see https://internal.example/x", CODES["TOOL_FAILED"].speak),
        ("ERR_17 in table_cards", CODES["TOOL_FAILED"].speak),
        ("db.internal.example refused", CODES["TOOL_FAILED"].speak),
    ],
)
def test_speakable_tool_error_is_the_message(said: str, spoken: str) -> None:
    completion = Completion(lambda _tool: (1.0, 0.0, 0))
    trouble = problem("TOOL_FAILED", said, tool_code="LOCKED")
    assert completion.complete(Result(problem=trouble), a_tool(), Origin(), 0.1).message == spoken


@pytest.mark.requirement("G1")
@given(st.sampled_from(sorted(CODES)))
def test_an_error_is_spoken_without_codes_or_addresses(code: str) -> None:
    trouble = problem(code, "10.0.0.7:5432 SQLSTATE 42P01")
    result = Completion(lambda _tool: (1.0, 0.0, 0)).complete(Result(problem=trouble), None, Origin(), 0.0)
    assert result.message == CODES[code].speak
