"""Checks of tool definitions: contradictions, parameters and shortfalls of the contract."""

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, cast, get_args

import orjson

from toolcrib.model import Category, Deprecation, JsonObject, ResponseTime, Tool
from toolcrib.schemas import InvalidSchema, compile_schema

# --- Rules for contradictions in a tool definition; each message states the fix ---

_PERMISSION = re.compile(r"[\w.-]+:[\w.-]+")
_VERSION = re.compile(r"\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?")
_LONGEST_NAME = 64
_NOTICE = timedelta(days=90)
"""Minimum time between the announcement and the removal of a deprecated tool."""


def _name_contradictions(tool: Tool) -> Iterator[str]:
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


def _tag_contradictions(tool: Tool) -> Iterator[str]:
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


def _deprecation_contradictions(tool: Tool) -> Iterator[str]:
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


def _example_contradictions(tool: Tool) -> Iterator[str]:
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
    "name": _name_contradictions,
    "category": _kinds,
    "cache": _cache,
    "effects": _effects,
    "permissions": _permissions,
    "tags": _tag_contradictions,
    "version": _version,
    "numbers": _numbers,
    "deprecated": _deprecation_contradictions,
    "examples": _example_contradictions,
}


# --- Iterates over the parameters in a JSON Schema of arguments, with the subschemas of each value ---

_CHOICES = ("anyOf", "oneOf")


@dataclass(frozen=True, slots=True)
class Parameter:
    """One named parameter."""

    path: str
    """Its path, such as `page.limit`, or `cards[].front` inside a list."""
    description: str
    forms: tuple[JsonObject, ...]
    """Alternative schemas of its value: unions split, references resolved, null left out."""

    @property
    def name(self) -> str:
        """The last part of its path."""
        return self.path.rpartition(".")[2]

    def of_type(self, *types: str) -> Iterator[JsonObject]:
        """Return its forms of these JSON types."""
        return (form for form in self.forms if form.get("type") in types)


def parameters(schema: JsonObject) -> Iterator[Parameter]:
    """Yield every parameter of an object's schema, nested ones after their parent."""
    yield from _within(schema, _forms(schema, schema), "", frozenset())


def items_of(schema: JsonObject, form: JsonObject) -> tuple[JsonObject, ...]:
    """Return the alternative schemas of a list's items."""
    return _forms(schema, _mapping(form["items"])) if "items" in form else ()


def _within(
    root: JsonObject, forms: Sequence[JsonObject], before: str, above: frozenset[int]
) -> Iterator[Parameter]:
    """Yield parameters recursively; `above` has the enclosing objects, so that recursion ends."""
    for form in forms:
        fields = _mapping(form.get("properties"))
        if id(fields) in above:
            continue
        inside = above | {id(fields)}
        for name, field in fields.items():
            schema = _mapping(field)
            found = _forms(root, schema)
            path = f"{before}{name}"
            yield Parameter(path, _described(schema, found), found)
            yield from _within(root, found, f"{path}.", inside)
            for each in found:
                yield from _within(root, items_of(root, each), f"{path}[].", inside)


def _described(schema: JsonObject, forms: Sequence[JsonObject]) -> str:
    said = (each.get("description") for each in (schema, *forms))
    return next((each.strip() for each in said if isinstance(each, str) and each.strip()), "")


def _forms(root: JsonObject, schema: JsonObject, followed: tuple[str, ...] = ()) -> tuple[JsonObject, ...]:
    """Return the alternatives of a schema; `followed` has the resolved references, against cycles."""
    target = schema.get("$ref")
    if isinstance(target, str):
        if target in followed:
            return ()
        whole = {**_at(root, target), **_without(schema, "$ref")}
        return _forms(root, whole, (*followed, target))
    for word in _CHOICES:
        if word in schema:
            beside = _without(schema, word)
            choices = ({**beside, **each} for each in _mappings(schema[word]))
            return tuple(form for each in choices for form in _forms(root, each, followed))
    if "allOf" in schema:
        parts = [form for each in _mappings(schema["allOf"]) for form in _forms(root, each, followed)]
        joined = {key: value for part in parts for key, value in part.items()}
        return _forms(root, {**joined, **_without(schema, "allOf")}, followed)
    return tuple(_by_type(schema))


def _by_type(schema: JsonObject) -> Iterator[JsonObject]:
    types = schema.get("type")
    for each in cast("list[Any]", types) if isinstance(types, list) else [types]:
        if each != "null":
            yield schema if each is types else {**schema, "type": each}


def _at(root: JsonObject, target: str) -> JsonObject:
    """Resolve a local reference; any other one is an empty schema."""
    place: Any = root
    for part in target.removeprefix("#").strip("/").split("/"):
        place = _mapping(place).get(part)
    return _mapping(place)


def _without(schema: JsonObject, word: str) -> dict[str, Any]:
    return {key: each for key, each in schema.items() if key != word}


def _mappings(value: object) -> list[JsonObject]:
    return [_mapping(each) for each in cast("list[Any]", value)] if isinstance(value, list) else []


def _mapping(value: object) -> JsonObject:
    """Return the value if it is a mapping, else an empty one: third-party schemas may be malformed."""
    return cast("JsonObject", value) if isinstance(value, Mapping) else {}


# --- Quality rules of a tool definition: required by `@tool`, reported by checks for other tools ---

_VERB_NOUN = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)+")
_ID = re.compile(r"(?:.*_)?ids?|.*[a-z0-9]Ids?")
_USE = re.compile(
    r"\b(us(e|ed|es|eful|ing)|when(ever)?|examples?|for instance|such as)\b|e\.g\.", re.IGNORECASE
)
_SHORTEST_DESCRIPTION = 50
_SETTLED = frozenset({"enum", "const"})
_RANGE = _SETTLED | {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}
_LENGTH = _SETTLED | {"minItems", "maxItems"}
_SHAPE = _SETTLED | {"pattern", "format"}
_TEXT = _SHAPE | {"minLength", "maxLength"}


def _name_shortfalls(tool: Tool) -> Iterator[str]:
    if ":" not in tool.local and not _VERB_NOUN.fullmatch(tool.local):
        yield f'the name {tool.local!r} is not kebab-case verb-noun: write it like name="get-card"'


def _description(tool: Tool) -> Iterator[str]:
    length = len(" ".join(tool.description.split()))
    if length < _SHORTEST_DESCRIPTION:
        yield (
            f"the description has {length} characters: say in {_SHORTEST_DESCRIPTION} or more"
            " what it does, when to use it and what it returns"
        )


def _uses(tool: Tool) -> Iterator[str]:
    if not _USE.search(tool.description):
        yield 'the description names no use: add a sentence such as "Use it when someone names a card."'


def _parameters(tool: Tool) -> Iterator[str]:
    for each in parameters(tool.input_schema):
        if not each.description:
            yield (
                f"the parameter {each.path} has no description: put it under Args: in the docstring, or"
                ' write Annotated[…, Field(description="…")]'
            )


def _ids(tool: Tool) -> Iterator[str]:
    for each in parameters(tool.input_schema):
        if _ID.fullmatch(each.name) and any(map(_is_any_text, _texts(tool.input_schema, each))):
            yield (
                f"the parameter {each.path} is an id that takes any text: use a branded id,"
                ' class CardId(BrandedId, prefix="card", description="…")'
            )


def _bounds(tool: Tool) -> Iterator[str]:
    for each in parameters(tool.input_schema):
        if any(_RANGE.isdisjoint(form) for form in each.of_type("integer", "number")):
            yield f"the number {each.path} has no bound: say Field(ge=…), Field(le=…) or both"
        if any(_LENGTH.isdisjoint(form) for form in each.of_type("array")):
            yield f"the list {each.path} has no bound: say Field(max_length=…), how many it takes at most"


def _example_shortfalls(tool: Tool) -> Iterator[str]:
    if not tool.examples:
        yield "there is no example: give at least one with description, params and expectedResult"
    for number, example in enumerate(tool.examples, 1):
        if not example.description:
            yield f"example {number} does not say what it shows: give description"
        if example.expected is None:
            yield f"example {number} does not say what comes back: give expectedResult"


def _tag_shortfalls(tool: Tool) -> Iterator[str]:
    if not tool.tags:
        yield "there is no tag: give at least one, by which it can be found"


def _deprecation_shortfalls(tool: Tool) -> Iterator[str]:
    if tool.deprecated is None:
        return
    if tool.deprecated.replacement is None:
        yield "deprecated names no replacement: say which tool to use instead"
    if tool.deprecated.removal_date is None:
        yield "deprecated has no removalDate: say until when it answers, at least 90 days on"


def _strings(tool: Tool) -> Iterator[str]:
    for each in parameters(tool.input_schema):
        if any(_TEXT.isdisjoint(form) for form in each.of_type("string")):
            yield f"the text {each.path} may be of any length: Field(max_length=…) says how much makes sense"


def _texts(schema: JsonObject, parameter: Parameter) -> Iterator[JsonObject]:
    """Yield the text alternatives of a parameter and of its items."""
    yield from parameter.of_type("string")
    for form in parameter.of_type("array"):
        yield from (each for each in items_of(schema, form) if each.get("type") == "string")


def _is_any_text(form: JsonObject) -> bool:
    return _SHAPE.isdisjoint(form)


SHORTFALLS: dict[str, Callable[[Tool], Iterator[str]]] = {
    "name": _name_shortfalls,
    "description": _description,
    "uses": _uses,
    "parameters": _parameters,
    "ids": _ids,
    "bounds": _bounds,
    "examples": _example_shortfalls,
    "tags": _tag_shortfalls,
    "deprecated": _deprecation_shortfalls,
}
ADVICE: dict[str, Callable[[Tool], Iterator[str]]] = {"strings": _strings}


# --- Validates tool definitions: contradictions are refused, shortfalls and advice are reported ---

Rule = Callable[[Tool], Iterator[str]]

_NOT_HERE = "which is not there: define it first, or name one of another source as source:name"


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault or shortfall of a definition, and how to fix it."""

    rule: str
    message: str


class ToolDefinitionError(ValueError):
    """An invalid tool definition; the message states how to fix it, `findings` lists each fault."""

    def __init__(self, message: str, findings: Iterable[Finding] = ()) -> None:
        super().__init__(message)
        self.findings = tuple(findings)


def contradictions(tool: Tool) -> list[Finding]:
    """Return the contradictions in a definition, which are errors for every author."""
    return _findings(CONTRADICTIONS, tool)


def shortfalls(tool: Tool) -> list[Finding]:
    """Return what a good definition has and this one lacks; `@tool` requires it."""
    return _findings(SHORTFALLS, tool)


def advice(tool: Tool) -> list[Finding]:
    """Return optional improvements of a definition."""
    return _findings(ADVICE, tool)


def unknown_replacements(tools: Iterable[Tool], among: Iterable[Tool] = ()) -> list[Finding]:
    """Return a finding for each tool with a replacement that is neither in `tools` nor in `among`.

    Replacements in another source, `source:name`, are checked by the catalog.
    """
    asked = list(tools)
    known = {name for tool in (*asked, *among) for name in (tool.local, *tool.aliases)}
    return [
        Finding("deprecated", f"{tool.local} is to be replaced by {name}, {_NOT_HERE}")
        for tool in asked
        if tool.deprecated is not None and (name := tool.deprecated.replacement) is not None
        if ":" not in name and name not in known
    ]


def refuse(tool: Tool, more: Iterable[Finding] = (), *, strict: bool = False) -> None:
    """Raise all faults at once: `more`, contradictions and, if strict, shortfalls."""
    unread = list(more)
    found = [*unread, *contradictions(tool)]
    if strict:
        known = {each.rule for each in unread}
        found += [each for each in shortfalls(tool) if each.rule not in known]
    if found:
        raise ToolDefinitionError(f"tool {tool.local}: {_listed(found)}", found)


def _listed(found: list[Finding]) -> str:
    messages = list(dict.fromkeys(each.message for each in found))
    if len(messages) == 1:
        return messages[0]
    return "\n  - ".join((f"{len(messages)} things to mend", *messages))


def _findings(rules: Mapping[str, Rule], tool: Tool) -> list[Finding]:
    return [Finding(name, message) for name, rule in rules.items() for message in rule(tool)]
