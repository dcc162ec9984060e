"""The options of `@tool`, and their conversion to fields of a Tool."""

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from typing import Any, TypedDict, TypeVar, cast

from toolcrib.model import Category, Deprecation, Example, RateLimit, ResponseTime, Slow, Speech
from toolcrib.sdk.checks import Finding, ToolDefinitionError

T = TypeVar("T")


class Options(TypedDict, total=False):
    """The keyword options of `@tool`; all are optional."""

    name: str
    """kebab-case, `verb-noun`. Defaults to the function's name with dashes."""
    title: str
    description: str
    """What it does, when to use it, what it returns. Defaults to the docstring."""
    category: Category
    """Defaults to `mutation`: such a tool is neither cached nor retried."""
    response_time: ResponseTime
    """Declared response time: `fast` under 100 ms, `medium` up to a second, `slow` above."""
    cacheable: bool
    """Whether results may be cached. By default, derived from `cache_ttl`."""
    cache_ttl: float
    """Seconds a result stays valid. Setting it makes a tool cacheable."""
    shared_cache: bool
    """Whether a cached result may be returned to other callers."""
    idempotent: bool
    """Whether calling twice has the same effect as once. Defaults to True for queries and analyses."""
    destructive: bool
    permissions: Collection[str]
    """Permissions a caller needs, each as `resource:action`."""
    tags: Collection[str]
    version: str
    rate_limit: RateLimit | Mapping[str, int]
    """Per user: `{"maxCalls": 60, "windowMs": 60000}`."""
    examples: Collection[Example | Mapping[str, Any]]
    """Each as `{"description": …, "params": {…}, "expectedResult": …}`."""
    deprecated: Deprecation | Mapping[str, str]
    """`{"since": "1.2.0", "replacement": "get-card-v2", "removalDate": "2030-01-31"}`, and `announced`:
    the start of the 90 days' notice. Defaults to today."""
    timeout: float
    """Timeout of one attempt, in seconds."""
    speech_template: str
    """A sentence with `{dotted.paths}` into the data."""
    speech_field: str
    """The field of the data that is the sentence to speak."""
    slow: Slow | tuple[float, str]
    """Seconds after which a progress sentence is sent, and the sentence."""
    aliases: Collection[str]
    """Former names."""
    energy_cost: float


_FIELD_NAMES: dict[type, dict[str, str]] = {
    RateLimit: {"maxCalls": "max_calls", "windowMs": "window_ms"},
    Example: {"description": "description", "params": "params", "expectedResult": "expected"},
    Deprecation: {
        "since": "since",
        "replacement": "replacement",
        "removalDate": "removal_date",
        "announced": "announced",
    },
}
_COPIED_OPTIONS = (
    "title",
    "category",
    "response_time",
    "cache_ttl",
    "shared_cache",
    "destructive",
    "version",
    "timeout",
    "energy_cost",
)


def fields_of(options: Options) -> dict[str, Any]:
    """Convert options to Tool fields; raises if one is invalid. Name and description are not included."""
    fields, findings = read_options(options)
    if findings:
        raise ToolDefinitionError("; ".join(each.message for each in findings), findings)
    return fields


def read_options(options: Options) -> tuple[dict[str, Any], list[Finding]]:
    """Convert the valid options to Tool fields, and return findings for the others."""
    values = cast("dict[str, Any]", options)
    findings = list(_cache_findings(values))
    if unknown := sorted(values.keys() - Options.__annotations__.keys()):
        known = ", ".join(Options.__annotations__)
        message = f"unknown option {', '.join(unknown)}: choose from {known}"
        findings.insert(0, Finding("options", message))
    fields = {name: values[name] for name in _COPIED_OPTIONS if values.get(name) is not None}
    fields["speech"] = Speech(template=values.get("speech_template"), field=values.get("speech_field"))
    idempotent = values.get("idempotent")
    fields["declared_mutation"] = values.get("category") == "mutation"
    read_only = values.get("category") in ("query", "analysis")
    fields["idempotent"] = read_only if idempotent is None else idempotent
    for name, convert in _CONVERTERS.items():
        if values.get(name) is None:
            continue
        try:
            fields[name] = convert(values[name])
        except ToolDefinitionError as error:
            findings.append(Finding(name, str(error)))
    return fields, findings


def _cache_findings(values: Mapping[str, Any]) -> Iterator[Finding]:
    cacheable, has_ttl = values.get("cacheable"), values.get("cache_ttl") is not None
    if cacheable is None or bool(cacheable) is has_ttl:
        return
    if not cacheable:
        yield Finding("cache", "cacheable=False and cache_ttl contradict each other: remove one of them")
    elif values.get("category", "mutation") == "mutation":
        yield Finding("cache", "a mutation cannot be cached: remove cacheable")
    else:
        yield Finding("cache", "cacheable has no duration: set cache_ttl in seconds")


def _collection(option: str, value: object) -> Collection[Any]:
    if isinstance(value, str | Mapping) or not isinstance(value, Collection):
        raise ToolDefinitionError(f"{option} must be a list: {option}=[…]")
    return cast("Collection[Any]", value)


def _from_json(kind: type[T], option: str, value: object) -> T:
    """Create a value from its JSON form; an instance is returned unchanged."""
    if isinstance(value, kind):
        return value
    names = _FIELD_NAMES[kind]
    if not isinstance(value, Mapping):
        raise ToolDefinitionError(f"{option} must be an object with {', '.join(names)}")
    fields = cast("Mapping[str, Any]", value)
    if unknown := sorted(fields.keys() - names.keys()):
        choices = ", ".join(names)
        raise ToolDefinitionError(f"{option} has no field {', '.join(unknown)}: choose from {choices}")
    try:
        return kind(**{names[name]: each for name, each in fields.items()})
    except TypeError as error:
        raise ToolDefinitionError(f"{option} lacks a field: it has {', '.join(names)}") from error


def _slow(value: object) -> Slow:
    if isinstance(value, Slow):
        return value
    if isinstance(value, tuple) and len(cast("tuple[Any, ...]", value)) == 2:
        threshold, message = cast("tuple[float, str]", value)
        return Slow(threshold=threshold, message=message)
    raise ToolDefinitionError('slow must be seconds and a sentence: slow=(2.0, "One moment…")')


_CONVERTERS: dict[str, Callable[[Any], Any]] = {
    "permissions": lambda value: frozenset(_collection("permissions", value)),
    "tags": lambda value: tuple(_collection("tags", value)),
    "aliases": lambda value: tuple(_collection("aliases", value)),
    "examples": lambda value: tuple(
        _from_json(Example, "examples", each) for each in _collection("examples", value)
    ),
    "rate_limit": partial(_from_json, RateLimit, "rate_limit"),
    "deprecated": partial(_from_json, Deprecation, "deprecated"),
    "slow": _slow,
}
