"""Contradictory definitions are refused with advice."""

from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import Annotated, Any, TypedDict, Unpack

import pytest
from pydantic import Field

from toolcrib.sdk import ToolDefinitionError, create_tool


def act(count: int = 1) -> None:
    """Act."""


@pytest.mark.requirement("E2")
@pytest.mark.parametrize(
    "options,said",
    [
        ({"cache_ttl": 60}, "a mutation cannot be cached: remove cache_ttl"),
        ({"category": "mutation", "cache_ttl": 60}, "a mutation cannot be cached"),
        ({"category": "query", "cache_ttl": 0}, "cache_ttl is 0: use seconds above 0"),
        ({"category": "query", "cache_ttl": -5}, "use seconds above 0"),
        ({"category": "query", "cache_ttl": float("nan")}, "use seconds above 0"),
        ({"category": "query", "cache_ttl": "60"}, "use seconds above 0"),
        ({"category": "query", "cache_ttl": True}, "use seconds above 0"),
        ({"category": "query", "shared_cache": True}, "shared_cache has no effect without cache_ttl"),
        ({"category": "query", "idempotent": False}, "a query is idempotent"),
        ({"category": "analysis", "idempotent": False}, "an? analysis is idempotent"),
        ({"category": "query", "destructive": True}, "a query changes nothing"),
        ({"examples": [{"description": "x", "params": {"count": "one"}}]}, "example 1 .*does not match"),
        ({"deprecated": {"since": "1.0.0", "replacement": "act"}}, "itself as its replacement"),
        ({"deprecated": {"since": "1.0.0", "removalDate": "soon"}}, "write it as YYYY-MM-DD"),
        ({"deprecated": {"since": "1.0.0", "removalDate": "20310131"}}, "write it as YYYY-MM-DD"),
        ({"deprecated": {"since": "1.0.0", "removalDate": 20310131}}, "write it as YYYY-MM-DD"),
        ({"deprecated": {"since": "1.0.0", "announced": "May"}}, "announced 'May' is not a date"),
        ({"category": "query", "cacheable": True}, "has no duration: set cache_ttl"),
        ({"cacheable": True}, "a mutation cannot be cached: remove cacheable"),
        ({"category": "query", "cacheable": False, "cache_ttl": 5}, "contradict each other: remove one"),
    ],
)
def test_contradictions_are_refused(options: Any, said: str) -> None:
    with pytest.raises(ToolDefinitionError, match=f"tool act: .*{said}"):
        create_tool(**options)(act)


@pytest.mark.requirement("A1", "E1")
@pytest.mark.parametrize(
    "options,said",
    [
        ({"name": "cards:get"}, "contains a colon"),
        ({"aliases": ["cards:get"]}, "contains a colon"),
        ({"aliases": [""]}, "has 0 characters"),
        ({"name": "a" * 65}, "has 65 characters"),
    ],
)
def test_bad_names_are_refused(options: Any, said: str) -> None:
    with pytest.raises(ToolDefinitionError, match=said):
        create_tool(**options)(act)


BAD_OPTIONS: list[tuple[Any, str]] = [
    ({"category": "lookup"}, "category 'lookup' is unknown: choose one of query, mutation"),
    ({"response_time": "quick"}, "response_time 'quick' is unknown: choose one of fast"),
    ({"permissions": ["read"]}, "'read' does not have the form resource:action"),
    ({"permissions": ["cards:*"]}, "does not have the form resource:action"),
    ({"permissions": "cards:read"}, r"permissions must be a list: permissions=\[…\]"),
    ({"tags": "cards"}, "tags must be a list"),
    ({"tags": {"cards": 1}}, "tags must be a list"),
    ({"tags": 7}, "tags must be a list"),
    ({"tags": [""]}, "a tag is empty"),
    ({"version": "1.0"}, "not a semantic version"),
    ({"timeout": 0}, "timeout is 0"),
    ({"timeout": float("inf")}, "timeout is inf"),
    ({"energy_cost": -1}, "energy_cost is -1"),
    ({"slow": (0, "Wait.")}, "slow needs seconds above 0"),
    ({"slow": (1.0, "")}, "and a sentence"),
    ({"slow": 2.0}, "slow must be seconds and a sentence"),
    ({"rate_limit": {"maxCalls": 0, "windowMs": 1000}}, "whole numbers of at least 1"),
    ({"rate_limit": {"maxCalls": 1.5, "windowMs": 1000}}, "whole numbers of at least 1"),
    ({"rate_limit": {"maxCalls": 5}}, "rate_limit lacks a field: it has maxCalls, windowMs"),
    (
        {"rate_limit": {"max_calls": 5, "windowMs": 1}},
        "rate_limit has no field max_calls: choose from",
    ),
    ({"rate_limit": 60}, "rate_limit must be an object with maxCalls, windowMs"),
    ({"examples": [{"params": {}}]}, "examples lacks a field"),
    ({"examples": {"description": "x", "params": {}}}, "examples must be a list"),
    ({"cachable": True, "ttl": 5}, "unknown option cachable, ttl: choose from name, title"),
]


@pytest.mark.requirement("E1")
@pytest.mark.parametrize("options,said", BAD_OPTIONS)
def test_bad_options_are_refused(options: Any, said: str) -> None:
    with pytest.raises(ToolDefinitionError, match=said):
        create_tool(**options)(act)


def test_all_contradictions_are_reported_together() -> None:
    with pytest.raises(ToolDefinitionError) as caught:
        create_tool(cache_ttl=5, permissions=["all"], timeout=-1)(act)
    said = str(caught.value)
    assert all(part in said for part in ("cannot be cached", "resource:action", "timeout is -1"))


@pytest.mark.parametrize("cacheable,ttl", [(True, 5), (False, None), (None, 5), (None, None)])
def test_consistent_cacheable_is_accepted(cacheable: bool | None, ttl: float | None) -> None:
    options: Any = {"category": "query", "cacheable": cacheable, "cache_ttl": ttl}
    assert create_tool(act, **options).definition.cache_ttl == ttl


def ending(removal: date, announced: date | None = None) -> Any:
    told = {} if announced is None else {"announced": announced.isoformat()}
    return {"since": "1.0.0", "replacement": "act-more", "removalDate": removal.isoformat(), **told}


TODAY = datetime.now(UTC).date()
LONG_AGO = date(2020, 1, 1)


@pytest.mark.requirement("E2", "E1")
@pytest.mark.parametrize(
    "removal,announced,said",
    [
        # A day of leeway: the test may begin before midnight and end after it.
        (TODAY + timedelta(days=88), None, "is less than 90 days away: choose"),
        (TODAY, None, "set announced if it was announced earlier"),
        (LONG_AGO, None, "is less than 90 days away"),
        (LONG_AGO + timedelta(days=89), LONG_AGO, "announcement: choose 2020-03-31 or later"),
        (LONG_AGO - timedelta(days=1), LONG_AGO, "is less than 90 days after the announcement"),
    ],
)
def test_agents_are_given_ninety_days(removal: date, announced: date | None, said: str) -> None:
    with pytest.raises(ToolDefinitionError, match=said):
        create_tool(deprecated=ending(removal, announced))(act)


@pytest.mark.requirement("E2")
@pytest.mark.parametrize(
    "removal,announced",
    [
        (TODAY + timedelta(days=91), None),
        (LONG_AGO + timedelta(days=90), LONG_AGO),
        (TODAY + timedelta(days=1), TODAY - timedelta(days=90)),
    ],
)
def test_a_definition_can_be_imported_until_its_end_and_after(removal: date, announced: date | None) -> None:
    gone = create_tool(deprecated=ending(removal, announced))(act).definition.deprecated
    assert gone is not None
    assert gone.removal_date == removal.isoformat()


class Area(TypedDict):
    city: str


def star_arguments(*names: str) -> None: ...
def unpacked_options(**area: Unpack[Area]) -> None: ...
def positional_only(name: str, /) -> None: ...
def method(self, name: str) -> None: ...  # noqa: ANN001 # pyright: ignore[reportUnknownParameterType, reportMissingParameterType]
def unknown_type(when: "Whenever") -> None: ...  # noqa: F821 # pyright: ignore[reportUndefinedVariable, reportUnknownParameterType]
def no_json(call: Callable[[], int], other: object) -> None: ...
def no_pydantic(other: "Odd") -> None: ...
def default_in_field(count: Annotated[int, Field(default=3)]) -> None: ...
def two_defaults(count: Annotated[int, Field(default_factory=int)] = 4) -> None: ...


class Odd:
    """Nothing Pydantic knows."""


def generator() -> Iterator[int]:
    yield 1


async def async_generator() -> AsyncIterator[int]:
    yield 1


BAD_SIGNATURES: list[tuple[Any, str]] = [
    (star_arguments, r"the parameter \*names cannot be passed by name"),
    (unpacked_options, r"the parameter \*\*area"),
    (positional_only, "the parameter name cannot be passed by name"),
    (method, r"wrap the bound one, tool\(thing.method\)"),
    (unknown_type, "'Whenever' cannot be resolved"),
    (no_json, "a type in its signature has no JSON Schema"),
    (no_pydantic, "a type in its signature has no JSON Schema"),
    (default_in_field, "the default of count is set in Field: set it as count = …"),
    (two_defaults, "the default of count is set in Field"),
    (generator, "generators are not supported"),
    (async_generator, "generators are not supported"),
]


@pytest.mark.parametrize("function,said", BAD_SIGNATURES)
def test_signatures_json_cannot_reach_are_refused(function: Any, said: str) -> None:
    with pytest.raises(ToolDefinitionError, match=said):
        create_tool(function)


def test_callable_without_name_or_signature_is_refused() -> None:
    with pytest.raises(ToolDefinitionError, match="no usable name"):
        create_tool(lambda: 1)
    with pytest.raises(ToolDefinitionError, match="no usable name"):
        create_tool(partial(act, 2))
    with pytest.raises(ToolDefinitionError, match="no signature"):
        create_tool(name="make-dict")(dict)
