"""Rules for contradictions in a tool definition; each message states the fix."""

import json
import math
import re
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from typing import get_args

import orjson

from toolcrib.model import Category, Deprecation, ResponseTime, Tool
from toolcrib.schemas import InvalidSchema, compile_schema

_PERMISSION = re.compile(r"[\w.-]+:[\w.-]+")
_VERSION = re.compile(r"\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?")
_LONGEST_NAME = 64
_NOTICE = timedelta(days=90)
"""Minimum time between the announcement and the removal of a deprecated tool."""


def _name(tool: Tool) -> Iterator[str]:
    for name in (tool.local, *tool.aliases):
        if ":" in name:
            yield f"the name {name!r} holds a colon, which parts a source from its tool: leave it out"
        elif not name or len(name) > _LONGEST_NAME:
            yield f"the name {name!r} has {len(name)} characters: give it 1 to {_LONGEST_NAME}"


def _kinds(tool: Tool) -> Iterator[str]:
    if tool.category not in get_args(Category):
        yield f"there is no category {tool.category!r}: choose one of {', '.join(get_args(Category))}"
    if tool.response_time not in get_args(ResponseTime):
        times = ", ".join(get_args(ResponseTime))
        yield f"there is no response_time {tool.response_time!r}: choose one of {times}"


def _cache(tool: Tool) -> Iterator[str]:
    if tool.cache_ttl is None:
        if tool.shared_cache:
            yield "shared_cache without cache_ttl shares nothing: give cache_ttl in seconds, or drop it"
        return
    if tool.category == "mutation":
        yield 'a mutation cannot be cached: drop cache_ttl, or say category="query" if it changes nothing'
    if not _positive(tool.cache_ttl):
        yield f"cache_ttl is {tool.cache_ttl}: give seconds above 0, or leave it out to cache nothing"


def _effects(tool: Tool) -> Iterator[str]:
    if not tool.read_only:
        return
    if not tool.idempotent:
        other = 'say category="mutation" or "generation"'
        yield f"a {tool.category} is idempotent: drop idempotent=False, or {other}"
    if tool.destructive:
        yield f'a {tool.category} changes nothing: drop destructive, or say category="mutation"'


def _permissions(tool: Tool) -> Iterator[str]:
    for permission in sorted(map(str, tool.permissions)):
        if not _PERMISSION.fullmatch(permission):
            yield f"the permission {permission!r} is not of the form resource:action, such as cards:read"


def _tags(tool: Tool) -> Iterator[str]:
    if not all(isinstance(tag, str) and tag for tag in tool.tags):  # pyright: ignore[reportUnnecessaryIsInstance]
        yield "a tag is empty: leave it out"


def _version(tool: Tool) -> Iterator[str]:
    if not _VERSION.fullmatch(str(tool.version)):
        yield f"the version {tool.version!r} is not a semantic version, such as 1.0.0"


def _numbers(tool: Tool) -> Iterator[str]:
    if tool.timeout is not None and not _positive(tool.timeout):
        yield f"timeout is {tool.timeout}: give seconds above 0"
    if tool.energy_cost is not None and not (tool.energy_cost == 0 or _positive(tool.energy_cost)):
        yield f"energy_cost is {tool.energy_cost}: give 0 or more"
    if tool.slow is not None and not (_positive(tool.slow.threshold) and tool.slow.message):
        yield 'slow needs seconds above 0 and a sentence to say, such as slow=(2.0, "One moment…")'
    limit = tool.rate_limit
    if limit is not None and not (_whole(limit.max_calls) and _whole(limit.window_ms)):
        yield "rate_limit needs whole numbers of at least 1 for maxCalls and windowMs"


def _deprecation(tool: Tool) -> Iterator[str]:
    gone = tool.deprecated
    if gone is None:
        return
    if gone.replacement == tool.local:
        yield "deprecated names the tool itself as its replacement: name another one"
    days = {"removalDate": gone.removal_date, "announced": gone.announced}
    wrong = [name for name, day in days.items() if day is not None and _day(day) is None]
    for name in wrong:
        yield f"{name} {days[name]!r} is not a date: write it as YYYY-MM-DD"
    if not wrong:
        yield from _notice(gone)


def _notice(gone: Deprecation) -> Iterator[str]:
    """Check the notice period, from the announcement on, so that imports near the removal still work."""
    end, begin = _day(gone.removal_date), _day(gone.announced)
    if end is None:
        return
    if begin is not None and end - begin < _NOTICE:
        said = f"removalDate {end} is less than {_NOTICE.days} days after it was announced"
        yield f"{said}: choose {begin + _NOTICE} or later"
    today = datetime.now(UTC).date()
    if begin is None and end - today < _NOTICE:
        said = f"removalDate {end} is less than {_NOTICE.days} days away"
        yield f'{said}: choose {today + _NOTICE} or later, or say "announced" if it was announced before'


def _examples(tool: Tool) -> Iterator[str]:
    try:
        schema = compile_schema(tool.input_schema)
    except InvalidSchema as error:
        yield f"its parameters are no usable JSON Schema: {error}"
        return
    for number, example in enumerate(tool.examples, 1):
        if not _is_json((example.description, example.params, example.expected)):
            yield f"example {number} is not JSON: write it in text, numbers of 64 bits, lists and objects"
            continue
        for fault in schema.faults(example.params, "params"):
            yield f"example {number} ({example.description!r}) does not fit the parameters: {fault.message}"


def _is_json(value: object) -> bool:
    """Whether both encoders accept it: orjson accepts dates, `json` big integers and lone surrogates."""
    try:
        orjson.dumps(value)
        json.dumps(value)
    except (TypeError, ValueError):
        return False
    return True


def _positive(number: object) -> bool:
    """Whether it is a finite number above 0; options may come from untyped code, so any value occurs."""
    return isinstance(number, int | float) and number is not True and math.isfinite(number) and number > 0


def _whole(number: object) -> bool:
    return type(number) is int and number >= 1


def _day(text: object) -> date | None:
    try:
        day = date.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
    return day if day is not None and day.isoformat() == text else None


CONTRADICTIONS: dict[str, Callable[[Tool], Iterator[str]]] = {
    "name": _name,
    "category": _kinds,
    "cache": _cache,
    "effects": _effects,
    "permissions": _permissions,
    "tags": _tags,
    "version": _version,
    "numbers": _numbers,
    "deprecated": _deprecation,
    "examples": _examples,
}
