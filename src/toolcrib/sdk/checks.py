"""The rules of tool definitions: contradictions are errors, shortfalls are refused by `@tool` only."""

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, Literal, cast, get_args

import orjson

from toolcrib.model import Category, Deprecation, JsonObject, ResponseTime, Tool
from toolcrib.schemas import InvalidSchema, compile_schema

# --- Contradictions: errors for every author; each message states the fix ---

_PERMISSION = re.compile(r"[\w.-]+:[\w.-]+")
_VERSION = re.compile(r"\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?")
_MAX_NAME_CHARS = 64
_NOTICE = timedelta(days=90)
"""Minimum time between the announcement and the removal of a deprecated tool."""


def _name_contradictions(tool: Tool) -> Iterator[str]:
    for name in (tool.local, *tool.aliases):
        if ":" in name:
            yield f"the name {name!r} contains a colon, which separates a source from its tool: remove it"
        elif not name or len(name) > _MAX_NAME_CHARS:
            yield f"the name {name!r} has {len(name)} characters: use 1 to {_MAX_NAME_CHARS}"


def _category_contradictions(tool: Tool) -> Iterator[str]:
    if tool.category not in get_args(Category):
        yield f"the category {tool.category!r} is unknown: choose one of {', '.join(get_args(Category))}"
    if tool.response_time not in get_args(ResponseTime):
        times = ", ".join(get_args(ResponseTime))
        yield f"the response_time {tool.response_time!r} is unknown: choose one of {times}"


def _cache_contradictions(tool: Tool) -> Iterator[str]:
    if tool.cache_ttl is None:
        if tool.shared_cache:
            yield "shared_cache has no effect without cache_ttl: set cache_ttl in seconds, or remove it"
        return
    if tool.category == "mutation":
        yield 'a mutation cannot be cached: remove cache_ttl, or set category="query" if it changes nothing'
    if not _positive(tool.cache_ttl):
        yield f"cache_ttl is {tool.cache_ttl}: use seconds above 0, or remove it to disable caching"


def _effect_contradictions(tool: Tool) -> Iterator[str]:
    if not tool.read_only:
        return
    if not tool.idempotent:
        fix = 'remove idempotent=False, or set category="mutation" or "generation"'
        yield f"a {tool.category} is idempotent: {fix}"
    if tool.destructive:
        yield f'a {tool.category} changes nothing: remove destructive, or set category="mutation"'


def _permission_contradictions(tool: Tool) -> Iterator[str]:
    for permission in sorted(map(str, tool.permissions)):
        if not _PERMISSION.fullmatch(permission):
            yield f"the permission {permission!r} does not have the form resource:action, such as cards:read"


def _tag_contradictions(tool: Tool) -> Iterator[str]:
    if not all(isinstance(tag, str) and tag for tag in tool.tags):  # pyright: ignore[reportUnnecessaryIsInstance]
        yield "a tag is empty: remove it"


def _version_contradictions(tool: Tool) -> Iterator[str]:
    if not _VERSION.fullmatch(str(tool.version)):
        yield f"the version {tool.version!r} is not a semantic version, such as 1.0.0"


def _number_contradictions(tool: Tool) -> Iterator[str]:
    if tool.timeout is not None and not _positive(tool.timeout):
        yield f"timeout is {tool.timeout}: use seconds above 0"
    if tool.energy_cost is not None and not (tool.energy_cost == 0 or _positive(tool.energy_cost)):
        yield f"energy_cost is {tool.energy_cost}: use 0 or more"
    if tool.slow is not None and not (_positive(tool.slow.threshold) and tool.slow.message):
        yield 'slow needs seconds above 0 and a sentence, such as slow=(2.0, "One moment…")'
    limit = tool.rate_limit
    if limit is not None and not (_whole(limit.max_calls) and _whole(limit.window_ms)):
        yield "rate_limit needs whole numbers of at least 1 for maxCalls and windowMs"


def _deprecation_contradictions(tool: Tool) -> Iterator[str]:
    deprecation = tool.deprecated
    if deprecation is None:
        return
    if deprecation.replacement == tool.local:
        yield "deprecated names the tool itself as its replacement: name another one"
    days = {"removalDate": deprecation.removal_date, "announced": deprecation.announced}
    invalid = [name for name, day in days.items() if day is not None and _day(day) is None]
    for name in invalid:
        yield f"{name} {days[name]!r} is not a date: write it as YYYY-MM-DD"
    if not invalid:
        yield from _notice_contradictions(deprecation)


def _notice_contradictions(deprecation: Deprecation) -> Iterator[str]:
    """Check the notice period, from the announcement on, so that imports near the removal still work."""
    removal, announced = _day(deprecation.removal_date), _day(deprecation.announced)
    if removal is None:
        return
    if announced is not None and removal - announced < _NOTICE:
        short = f"removalDate {removal} is less than {_NOTICE.days} days after the announcement"
        yield f"{short}: choose {announced + _NOTICE} or later"
    today = datetime.now(UTC).date()
    if announced is None and removal - today < _NOTICE:
        short = f"removalDate {removal} is less than {_NOTICE.days} days away"
        yield f"{short}: choose {today + _NOTICE} or later, or set announced if it was announced earlier"


def _example_contradictions(tool: Tool) -> Iterator[str]:
    try:
        schema = compile_schema(tool.input_schema)
    except InvalidSchema as error:
        yield f"its parameters are not a usable JSON Schema: {error}"
        return
    for number, example in enumerate(tool.examples, 1):
        if not _is_json((example.description, example.params, example.expected)):
            yield f"example {number} is not JSON: use text, 64-bit numbers, lists and objects"
            continue
        for fault in schema.faults(example.params, "params"):
            yield f"example {number} ({example.description!r}) does not match the parameters: {fault.message}"


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


# --- Parameters in a JSON Schema of arguments, nested ones included ---

_UNIONS = ("anyOf", "oneOf")


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
    yield from _nested_parameters(schema, _forms(schema, schema), "", frozenset())


def items_of(schema: JsonObject, form: JsonObject) -> tuple[JsonObject, ...]:
    """Return the alternative schemas of a list's items."""
    return _forms(schema, _mapping(form["items"])) if "items" in form else ()


def _nested_parameters(
    root: JsonObject, forms: Sequence[JsonObject], prefix: str, enclosing: frozenset[int]
) -> Iterator[Parameter]:
    """Yield parameters recursively; `enclosing` has the objects around them, so that recursion ends."""
    for form in forms:
        fields = _mapping(form.get("properties"))
        if id(fields) in enclosing:
            continue
        inside = enclosing | {id(fields)}
        for name, field in fields.items():
            schema = _mapping(field)
            alternatives = _forms(root, schema)
            texts = (each.get("description") for each in (schema, *alternatives))
            description = next((text.strip() for text in texts if isinstance(text, str) and text.strip()), "")
            path = f"{prefix}{name}"
            yield Parameter(path, description, alternatives)
            yield from _nested_parameters(root, alternatives, f"{path}.", inside)
            for each in alternatives:
                yield from _nested_parameters(root, items_of(root, each), f"{path}[].", inside)


def _forms(root: JsonObject, schema: JsonObject, resolved: tuple[str, ...] = ()) -> tuple[JsonObject, ...]:
    """Return the alternatives of a schema; `resolved` has the resolved references, against cycles."""
    reference = schema.get("$ref")
    if isinstance(reference, str):
        if reference in resolved:
            return ()
        merged = {**_target(root, reference), **_without(schema, "$ref")}
        return _forms(root, merged, (*resolved, reference))
    for keyword in _UNIONS:
        if keyword in schema:
            siblings = _without(schema, keyword)
            choices = ({**siblings, **each} for each in _mappings(schema[keyword]))
            return tuple(form for each in choices for form in _forms(root, each, resolved))
    if "allOf" in schema:
        parts = [form for each in _mappings(schema["allOf"]) for form in _forms(root, each, resolved)]
        merged = {key: value for part in parts for key, value in part.items()}
        return _forms(root, {**merged, **_without(schema, "allOf")}, resolved)
    return tuple(_by_type(schema))


def _by_type(schema: JsonObject) -> Iterator[JsonObject]:
    types = schema.get("type")
    for each in cast("list[Any]", types) if isinstance(types, list) else [types]:
        if each != "null":
            yield schema if each is types else {**schema, "type": each}


def _target(root: JsonObject, reference: str) -> JsonObject:
    """Resolve a local reference; any other one is an empty schema."""
    target: Any = root
    for part in reference.removeprefix("#").strip("/").split("/"):
        target = _mapping(target).get(part)
    return _mapping(target)


def _without(schema: JsonObject, keyword: str) -> dict[str, Any]:
    return {key: each for key, each in schema.items() if key != keyword}


def _mappings(value: object) -> list[JsonObject]:
    return [_mapping(each) for each in cast("list[Any]", value)] if isinstance(value, list) else []


def _mapping(value: object) -> JsonObject:
    """Return the value if it is a mapping, else an empty one: third-party schemas may be malformed."""
    return cast("JsonObject", value) if isinstance(value, Mapping) else {}


# --- Shortfalls: refused by `@tool`, reported by checks for other tools ---

_VERB_NOUN = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)+")
_ID = re.compile(r"(?:.*_)?ids?|.*[a-z0-9]Ids?")
_USE = re.compile(
    r"\b(us(e|ed|es|eful|ing)|when(ever)?|examples?|for instance|such as)\b|e\.g\.", re.IGNORECASE
)
_MIN_DESCRIPTION_CHARS = 50
_ENUM_KEYWORDS = frozenset({"enum", "const"})
_RANGE_KEYWORDS = _ENUM_KEYWORDS | {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}
_ARRAY_KEYWORDS = _ENUM_KEYWORDS | {"minItems", "maxItems"}
_FORMAT_KEYWORDS = _ENUM_KEYWORDS | {"pattern", "format"}
_TEXT_KEYWORDS = _FORMAT_KEYWORDS | {"minLength", "maxLength"}


def _name_shortfalls(tool: Tool) -> Iterator[str]:
    if ":" not in tool.local and not _VERB_NOUN.fullmatch(tool.local):
        yield f'the name {tool.local!r} is not kebab-case verb-noun: use one like name="get-card"'


def _description_shortfalls(tool: Tool) -> Iterator[str]:
    length = len(" ".join(tool.description.split()))
    if length < _MIN_DESCRIPTION_CHARS:
        fix = "what it does, when to use it and what it returns"
        yield f"the description has {length} characters: describe in {_MIN_DESCRIPTION_CHARS} or more {fix}"


def _use_shortfalls(tool: Tool) -> Iterator[str]:
    if not _USE.search(tool.description):
        fix = 'add a sentence such as "Use it when someone names a card."'
        yield f"the description does not say when to use it: {fix}"


def _parameter_shortfalls(tool: Tool) -> Iterator[str]:
    for each in parameters(tool.input_schema):
        if not each.description:
            fix = 'add it under Args: in the docstring, or use Annotated[…, Field(description="…")]'
            yield f"the parameter {each.path} has no description: {fix}"


def _id_shortfalls(tool: Tool) -> Iterator[str]:
    for each in parameters(tool.input_schema):
        forms = _text_forms(tool.input_schema, each)
        if _ID.fullmatch(each.name) and any(map(_FORMAT_KEYWORDS.isdisjoint, forms)):
            fix = 'use a branded id, class CardId(BrandedId, prefix="card", description="…")'
            yield f"the parameter {each.path} is an id that accepts any text: {fix}"


def _bound_shortfalls(tool: Tool) -> Iterator[str]:
    for each in parameters(tool.input_schema):
        if any(_RANGE_KEYWORDS.isdisjoint(form) for form in each.of_type("integer", "number")):
            yield f"the number {each.path} has no bound: add Field(ge=…), Field(le=…) or both"
        if any(_ARRAY_KEYWORDS.isdisjoint(form) for form in each.of_type("array")):
            yield f"the list {each.path} has no bound: add Field(max_length=…)"


def _example_shortfalls(tool: Tool) -> Iterator[str]:
    if not tool.examples:
        yield "there is no example: add at least one with description, params and expectedResult"
    for number, example in enumerate(tool.examples, 1):
        if not example.description:
            yield f"example {number} has no description: add one"
        if example.expected is None:
            yield f"example {number} has no expectedResult: add one"


def _tag_shortfalls(tool: Tool) -> Iterator[str]:
    if not tool.tags:
        yield "there is no tag: add at least one, for search"


def _deprecation_shortfalls(tool: Tool) -> Iterator[str]:
    if tool.deprecated is None:
        return
    if tool.deprecated.replacement is None:
        yield "deprecated has no replacement: name the tool to use instead"
    if tool.deprecated.removal_date is None:
        yield f"deprecated has no removalDate: set one, at least {_NOTICE.days} days from now"


def _text_advice(tool: Tool) -> Iterator[str]:
    for each in parameters(tool.input_schema):
        if any(_TEXT_KEYWORDS.isdisjoint(form) for form in each.of_type("string")):
            yield f"the text {each.path} may have any length: consider Field(max_length=…)"


def _text_forms(schema: JsonObject, parameter: Parameter) -> Iterator[JsonObject]:
    """Yield the text alternatives of a parameter and of its items."""
    yield from parameter.of_type("string")
    for form in parameter.of_type("array"):
        yield from (each for each in items_of(schema, form) if each.get("type") == "string")


# --- The table of rules, and how findings are reported ---

Severity = Literal["contradiction", "shortfall", "advice"]


@dataclass(frozen=True, slots=True)
class DefinitionRule:
    """A rule of tool definitions; `check` yields a message for each fault."""

    id: str
    severity: Severity
    item: str | None
    """Item of the checklist that a fault fails; None for a rule that is reported separately."""
    check: Callable[[Tool], Iterator[str]]


RULES = (
    DefinitionRule("name", "contradiction", "name", _name_contradictions),
    DefinitionRule("category", "contradiction", "category", _category_contradictions),
    DefinitionRule("cache", "contradiction", "cache-ttl", _cache_contradictions),
    DefinitionRule("effects", "contradiction", "idempotent", _effect_contradictions),
    DefinitionRule("permissions", "contradiction", "permissions", _permission_contradictions),
    DefinitionRule("tags", "contradiction", "tags", _tag_contradictions),
    DefinitionRule("version", "contradiction", None, _version_contradictions),
    DefinitionRule("numbers", "contradiction", None, _number_contradictions),
    DefinitionRule("deprecated", "contradiction", None, _deprecation_contradictions),
    DefinitionRule("examples", "contradiction", "examples", _example_contradictions),
    DefinitionRule("name", "shortfall", "name", _name_shortfalls),
    DefinitionRule("description", "shortfall", "description", _description_shortfalls),
    DefinitionRule("uses", "shortfall", "description", _use_shortfalls),
    DefinitionRule("parameters", "shortfall", "parameters", _parameter_shortfalls),
    DefinitionRule("ids", "shortfall", "parameters", _id_shortfalls),
    DefinitionRule("bounds", "shortfall", "parameters", _bound_shortfalls),
    DefinitionRule("examples", "shortfall", "examples", _example_shortfalls),
    DefinitionRule("tags", "shortfall", "tags", _tag_shortfalls),
    DefinitionRule("deprecated", "shortfall", None, _deprecation_shortfalls),
    DefinitionRule("strings", "advice", None, _text_advice),
)
ITEM_OF_RULE = {rule.id: rule.item for rule in RULES if rule.item is not None}


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


def findings(tool: Tool, severity: Severity) -> list[Finding]:
    """Return the faults of a definition under all rules of one severity."""
    rules = (rule for rule in RULES if rule.severity == severity)
    return [Finding(rule.id, message) for rule in rules for message in rule.check(tool)]


def unknown_replacements(tools: Iterable[Tool], among: Iterable[Tool] = ()) -> list[Finding]:
    """Return a finding for each tool with a replacement that is neither in `tools` nor in `among`.

    Replacements in another source, `source:name`, are checked by the catalog.
    """
    checked = list(tools)
    known = {name for tool in (*checked, *among) for name in (tool.local, *tool.aliases)}
    fix = "define it first, or name a tool of another source as source:name"
    return [
        Finding("deprecated", f"the replacement {name} of {tool.local} does not exist: {fix}")
        for tool in checked
        if tool.deprecated is not None and (name := tool.deprecated.replacement) is not None
        if ":" not in name and name not in known
    ]


def refuse(tool: Tool, more: Iterable[Finding] = (), *, strict: bool = False) -> None:
    """Raise all faults at once: `more`, contradictions and, if strict, shortfalls."""
    earlier = list(more)
    faults = [*earlier, *findings(tool, "contradiction")]
    if strict:
        reported = {each.rule for each in earlier}
        faults += [each for each in findings(tool, "shortfall") if each.rule not in reported]
    if faults:
        messages = list(dict.fromkeys(each.message for each in faults))
        count = [f"{len(messages)} faults"] if len(messages) > 1 else []
        raise ToolDefinitionError(f"tool {tool.local}: " + "\n  - ".join((*count, *messages)), faults)
