"""The cache of generated hints: which calls share hints, and when they are made again."""

from typing import Any

import pytest

from toolcrib.errors import problem
from toolcrib.gateway.completion import Completion
from toolcrib.interfaces import Followers
from toolcrib.model import Ask, Hints, Origin, Result, Tool
from toolcrib.testing import a_tool

NOON = 1_900_000_000.0
"""2030-03-17T17:46:40Z"""
ORIGIN = Origin(trace_id="4bf92f3577b34da6a3ce929d0e0e4736", correlation_id="corr-1")
SCHEMA: dict[str, Any] = {"type": "object", "required": ["a", "b"], "properties": {"a": {}, "b": {}, "c": {}}}


class WallClock:
    """A manual wall clock."""

    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> WallClock:
    made = WallClock()
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


def hints_of(result: Result) -> Hints:
    assert result.hints is not None
    return result.hints


def test_equal_outcomes_share_cached_hints(clock: WallClock) -> None:
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
def test_hints_change_when_the_record_becomes_significant() -> None:
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
    # The prior success rate: such a record differs only by its number of calls.
    assert told((0.9, 0.2, 4)) == []
    assert told((0.9, 0.2, 5)) == ["performance"]


@pytest.mark.requirement("E9")
def test_promise_is_broken_only_above_its_bound() -> None:
    record = Record()
    completion = Completion(record.of, record.followers)
    tool = a_tool(response_time="medium")
    for seconds, warnings in ((1.0, 0), (1.01, 1), (1.0, 0)):
        record.past = (1.0, seconds, 5)
        assert len(hints_of(completion.complete(Result(data=1), tool, ORIGIN, 0.1)).warnings) == warnings


@pytest.mark.requirement("E8")
def test_long_records_share_cached_hints() -> None:
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


def test_hint_cache_is_bounded_and_per_definition(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("toolcrib.gateway.completion._MAX_CACHED_HINTS", 2)
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


def test_hints_are_reused_until_forget() -> None:
    completion, tool = Completion(lambda _tool: (1.0, 0.0, 0)), a_tool()
    first, again = (completion.complete(Result(data={}), tool, Origin(), 0.1).hints for _ in range(2))
    assert first is again
    completion.forget()
    assert completion.complete(Result(data={}), tool, Origin(), 0.1).hints is not first
