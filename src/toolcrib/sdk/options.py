"""What a tool author may say beside the function itself, and how it becomes fields of a Tool."""

from collections.abc import Collection, Mapping
from typing import Any, TypedDict, TypeVar, cast

from toolcrib.model import Category, Deprecation, Example, RateLimit, ResponseTime, Slow, Speech
from toolcrib.sdk.checks import ToolDefinitionError

T = TypeVar("T")


class Options(TypedDict, total=False):
    """The keyword options of `@tool`; each may be left out."""

    name: str
    """kebab-case, `verb-noun`; the function's name with dashes where it is left out."""
    title: str
    description: str
    """What it does, when to use it, what it returns; the docstring where it is left out."""
    category: Category
    """`mutation` where it is left out: what may change something is neither cached nor repeated."""
    response_time: ResponseTime
    """What the author promises: `fast` under 100 ms, `medium` up to a second, `slow` above."""
    cache_ttl: float
    """Seconds an answer stays good. Giving it is what makes a tool cacheable."""
    shared_cache: bool
    """One caller's answer may be given to another."""
    idempotent: bool
    """Calling twice is as good as once. True for queries and analyses where it is left out."""
    destructive: bool
    permissions: Collection[str]
    """All that a caller must hold, each as `resource:action`."""
    tags: Collection[str]
    version: str
    rate_limit: RateLimit | Mapping[str, int]
    """`{"maxCalls": 60, "windowMs": 60000}`, for each user."""
    examples: Collection[Example | Mapping[str, Any]]
    """`{"description": …, "params": {…}, "expectedResult": …}` each."""
    deprecated: Deprecation | Mapping[str, str]
    """`{"since": "1.2.0", "replacement": "get-card-v2", "removalDate": "2030-01-31"}`"""
    timeout: float
    """Seconds one try may take."""
    speech_template: str
    """A sentence with `{dotted.paths}` into the data."""
    speech_field: str
    """The field of the data that is the sentence to speak."""
    slow: Slow | tuple[float, str]
    """After how many seconds to say what while the call runs."""
    aliases: Collection[str]
    """Names it had before."""
    energy_cost: float


_SPELLINGS: dict[type, dict[str, str]] = {
    RateLimit: {"maxCalls": "max_calls", "windowMs": "window_ms"},
    Example: {"description": "description", "params": "params", "expectedResult": "expected"},
    Deprecation: {"since": "since", "replacement": "replacement", "removalDate": "removal_date"},
}
_PLAIN = (
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
    """Make Tool fields of options, leaving out what was left out. Name and description are for the caller."""
    _refuse_unknown(options)
    given = cast("dict[str, Any]", options)
    fields = {name: given[name] for name in _PLAIN if given.get(name) is not None}
    fields["permissions"] = frozenset(_several(given, "permissions"))
    fields["tags"] = tuple(_several(given, "tags"))
    fields["aliases"] = tuple(_several(given, "aliases"))
    fields["examples"] = tuple(_spelled(Example, each, "examples") for each in _several(given, "examples"))
    fields["speech"] = Speech(template=given.get("speech_template"), field=given.get("speech_field"))
    for name, kind in (("rate_limit", RateLimit), ("deprecated", Deprecation)):
        if given.get(name) is not None:
            fields[name] = _spelled(kind, given[name], name)
    if given.get("slow") is not None:
        fields["slow"] = _slow(given["slow"])
    idempotent = given.get("idempotent")
    read_only = given.get("category") in ("query", "analysis")
    fields["idempotent"] = read_only if idempotent is None else idempotent
    return fields


def _refuse_unknown(options: Options) -> None:
    unknown = sorted(options.keys() - Options.__annotations__.keys())
    if unknown:
        known = ", ".join(Options.__annotations__)
        raise ToolDefinitionError(f"there is no option {', '.join(unknown)}: choose from {known}")


def _several(given: Mapping[str, Any], option: str) -> Collection[Any]:
    value = given.get(option, ())
    if isinstance(value, str | Mapping) or not isinstance(value, Collection):
        raise ToolDefinitionError(f"{option} takes a list: write {option}=[…]")
    return cast("Collection[Any]", value)


def _spelled(kind: type[T], value: object, option: str) -> T:
    """Make a value of its JSON spelling; one that is made already stays."""
    if isinstance(value, kind):
        return value
    spelling = _SPELLINGS[kind]
    if not isinstance(value, Mapping):
        raise ToolDefinitionError(f"{option} takes an object with {', '.join(spelling)}")
    given = cast("Mapping[str, Any]", value)
    unknown = sorted(given.keys() - spelling.keys())
    if unknown:
        raise ToolDefinitionError(
            f"{option} knows no {', '.join(unknown)}: choose from {', '.join(spelling)}"
        )
    try:
        return kind(**{spelling[name]: each for name, each in given.items()})
    except TypeError as error:
        raise ToolDefinitionError(f"{option} lacks a field: it takes {', '.join(spelling)}") from error


def _slow(value: object) -> Slow:
    if isinstance(value, Slow):
        return value
    if isinstance(value, tuple) and len(cast("tuple[Any, ...]", value)) == 2:
        threshold, message = cast("tuple[float, str]", value)
        return Slow(threshold=threshold, message=message)
    raise ToolDefinitionError('slow takes seconds and a sentence: write slow=(2.0, "One moment…")')
