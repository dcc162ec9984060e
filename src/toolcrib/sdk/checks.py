"""The rules of a tool definition: which contradictions are refused, and what falls short of a good one."""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, cast, get_args

from toolcrib.model import Category, ResponseTime, Tool
from toolcrib.schemas import BadSchema, compile_schema

KEBAB = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_PERMISSION = re.compile(r"[\w.-]+:[\w.-]+")
_VERSION = re.compile(r"\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?")
_LONGEST_NAME = 64
_SHORTEST_DESCRIPTION = 50

Rule = Callable[[Tool], Iterator[str]]


class ToolDefinitionError(ValueError):
    """A tool cannot be defined like this; the message says how to mend it."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong with a definition or falls short, and how to mend it."""

    rule: str
    message: str


def contradictions(tool: Tool) -> list[Finding]:
    """Return what cannot be meant, whoever wrote the definition."""
    return _findings(_CONTRADICTIONS, tool)


def shortfalls(tool: Tool) -> list[Finding]:
    """Return what a good definition has and this one lacks."""
    return _findings(_SHORTFALLS, tool)


def refuse(tool: Tool, more: Iterable[Finding] = ()) -> None:
    """Raise every contradiction at once, and `more` with them."""
    found = [*more, *contradictions(tool)]
    if found:
        raise ToolDefinitionError(f"tool {tool.local}: " + "; ".join(each.message for each in found))


def kebab(name: str) -> list[Finding]:
    """Return what is wrong with the name of a tool written with our own decorator."""
    if ":" in name or KEBAB.fullmatch(name):
        return []
    said = f'the name {name!r} is not kebab-case: write it as verb-noun, such as name="get-card"'
    return [Finding("name", said)]


def _findings(rules: Mapping[str, Rule], tool: Tool) -> list[Finding]:
    return [Finding(name, message) for name, rule in rules.items() for message in rule(tool)]


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


def _words(tool: Tool) -> Iterator[str]:
    for permission in sorted(tool.permissions):
        if not _PERMISSION.fullmatch(permission):
            yield f"the permission {permission!r} is not of the form resource:action, such as cards:read"
    if "" in tool.tags:
        yield "a tag is empty: leave it out"
    if not _VERSION.fullmatch(tool.version):
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
    if tool.deprecated is None:
        return
    if tool.deprecated.replacement == tool.local:
        yield "deprecated names the tool itself as its replacement: name another one"
    day = tool.deprecated.removal_date
    if day is not None and not _is_date(day):
        yield f"removalDate {day!r} is not a date: write it as YYYY-MM-DD"


def _examples(tool: Tool) -> Iterator[str]:
    try:
        schema = compile_schema(tool.input_schema)
    except BadSchema as error:
        yield f"its parameters are no usable JSON Schema: {error}"
        return
    for number, example in enumerate(tool.examples, 1):
        for fault in schema.faults(example.params, "params"):
            yield f"example {number} ({example.description!r}) does not fit the parameters: {fault.message}"


def _described(tool: Tool) -> Iterator[str]:
    if len(tool.description) < _SHORTEST_DESCRIPTION:
        yield (
            f"the description has {len(tool.description)} characters: say in {_SHORTEST_DESCRIPTION} or more"
            " what it does, when to use it and what it returns"
        )
    properties = cast("Mapping[str, Any]", tool.input_schema.get("properties", {}))
    for name, schema in properties.items():
        if not (isinstance(schema, Mapping) and "description" in schema):
            yield f'the parameter {name} has no description: Annotated[…, Field(description="…")]'


def _shown(tool: Tool) -> Iterator[str]:
    if not tool.examples:
        yield "there is no example: give at least one with description, params and expectedResult"
    for number, example in enumerate(tool.examples, 1):
        if example.expected is None:
            yield f"example {number} does not say what comes back: give expectedResult"


def _found(tool: Tool) -> Iterator[str]:
    if not tool.tags:
        yield "there is no tag: give at least one, by which it can be found"
    if "-" not in tool.local.replace("_", "-"):
        yield f"the name {tool.local} is one word: say what it does to what, as verb-noun"


def _positive(number: object) -> bool:
    """Options come from code that may not be type-checked, so anything can stand here."""
    return isinstance(number, int | float) and number is not True and math.isfinite(number) and number > 0


def _whole(number: object) -> bool:
    return type(number) is int and number >= 1


def _is_date(text: object) -> bool:
    try:
        return isinstance(text, str) and date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


_CONTRADICTIONS: dict[str, Rule] = {
    "name": _name,
    "category": _kinds,
    "cache": _cache,
    "effects": _effects,
    "words": _words,
    "numbers": _numbers,
    "deprecated": _deprecation,
    "examples": _examples,
}
_SHORTFALLS: dict[str, Rule] = {"description": _described, "examples": _shown, "discovery": _found}
