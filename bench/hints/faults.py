"""Faulty calls, made by rule from valid ones: every rule is applied to every call that it applies to.

Whether the repair of a fault is determined is decided by rule as well, from the schemas alone. What a schema
accepts is no fault and is left out.
"""

from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, cast

from bench.hints.spelling import misspelled, nearest, other_case
from bench.hints.toolset import Request, Signature, ToolSet
from toolcrib.model import Json, JsonObject

EXTRA_ARGUMENT = "requestedBy"
"""An argument that agents like to add; no tool of the bench has one like it."""
MAX_CALLS = 100
"""The highest rate limit that is exhausted to see what is advised after it."""
Path = tuple[str | int, ...]


class Kind(StrEnum):
    """The kinds of faults."""

    ARGUMENT_NAME = "misspelled argument"
    ARGUMENT_CASE = "argument in another case"
    ENUM_VALUE = "misspelled enum value"
    ENUM_CASE = "enum value in another case"
    TYPE = "type that converts exactly"
    EXTRA = "unknown extra argument"
    ONE_VALUE = "missing argument with one possible value"
    MISSING = "missing argument, any value possible"
    TOOL_NAME = "misspelled tool name"
    DEPRECATED = "deprecated tool"
    REMOVED = "removed tool"
    NO_SESSION = "user without a session"
    RATE_LIMIT = "rate limit reached"


@dataclass(frozen=True, kw_only=True)
class ValidCall:
    """A call that succeeds, the calls that must precede it, and the app user that it acts for, if any."""

    request: Request
    before: tuple[Request, ...] = ()
    user: str | None = None


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A faulty call. Its repair is determined if there is an `expected` call, or a `route` to request."""

    kind: Kind
    sent: Request
    valid: ValidCall
    expected: Request | None = None
    route: tuple[str, str] | None = None
    """Method and path, where no tool can repair it."""
    repetitions: int = 0
    """How often the call is sent before, to exhaust its rate limit."""
    carried_out: bool = False
    """Whether the call succeeds all the same, so that a mutation must not be repeated."""

    @property
    def determined(self) -> bool:
        return self.expected is not None or self.route is not None


@dataclass(frozen=True)
class _Changed:
    """The arguments of a faulty call, and whether only one repair is possible."""

    kind: Kind
    arguments: JsonObject
    determined: bool = True


def faulty_calls(calls: Iterator[ValidCall] | list[ValidCall], tools: ToolSet) -> list[Fault]:
    """Apply every rule to every call."""
    return [fault for call in calls for fault in _faults_of(call, tools)]


def _faults_of(call: ValidCall, tools: ToolSet) -> Iterator[Fault]:
    signature = tools.find(call.request.tool)
    if signature is None:
        return
    if signature.tool.deprecated is not None:
        yield from _retired(call, signature, tools)
        return
    for rule in _ARGUMENT_RULES:
        for changed in rule(call.request.arguments, signature):
            if not signature.accepts(changed.arguments):
                expected = call.request if changed.determined else None
                sent = Request(call.request.tool, changed.arguments)
                yield Fault(kind=changed.kind, sent=sent, valid=call, expected=expected)
    yield from _misspelled_tool(call, signature, tools)
    yield from _without_session(call, signature)
    yield from _rate_limited(call, signature)


# --- rules that change the arguments ---


@dataclass(frozen=True)
class _Member:
    """A member of an object among the arguments, with the schema of that object."""

    path: Path
    """Path of the object."""
    name: str
    value: Json
    schema: JsonObject
    siblings: frozenset[str]

    @property
    def own_schema(self) -> JsonObject:
        return _chosen(_properties(self.schema).get(self.name, {}))


def _members(value: Any, schema: JsonObject, path: Path = ()) -> Iterator[_Member]:
    """Yield the members of all objects at any depth."""
    if isinstance(value, Mapping):
        members = cast("Mapping[str, Any]", value)
        for name, inner in members.items():
            member = _Member(path, name, inner, schema, frozenset(members))
            yield member
            yield from _members(inner, member.own_schema, (*path, name))
    elif isinstance(value, list | tuple):
        for place, inner in enumerate(cast("list[Any]", value)):
            yield from _members(inner, _items(schema), (*path, place))


def _leaves(value: Any, schema: JsonObject, path: Path = ()) -> Iterator[tuple[Path, Any, JsonObject]]:
    """Yield the path, the value and the schema of every text, number and truth value."""
    if isinstance(value, Mapping):
        for name, inner in cast("Mapping[str, Any]", value).items():
            yield from _leaves(inner, _chosen(_properties(schema).get(name, {})), (*path, name))
    elif isinstance(value, list | tuple):
        for place, inner in enumerate(cast("list[Any]", value)):
            yield from _leaves(inner, _items(schema), (*path, place))
    elif value is not None:
        yield path, value, schema


def _properties(schema: JsonObject) -> Mapping[str, JsonObject]:
    found = schema.get("properties")
    return cast("Mapping[str, JsonObject]", found) if isinstance(found, Mapping) else {}


def _items(schema: JsonObject) -> JsonObject:
    found = schema.get("items")
    return cast("JsonObject", found) if isinstance(found, Mapping) else {}


def _chosen(schema: JsonObject) -> JsonObject:
    """Return the form of a union that is not null: tools use unions for optional arguments."""
    forms = cast("list[JsonObject]", schema.get("anyOf") or ())
    return next((each for each in forms if each.get("type") != "null"), schema)


def _replaced(arguments: JsonObject, path: Path, value: Any) -> JsonObject:
    """Return a copy with another value at a path."""
    copy: Any = deepcopy(dict(arguments))
    at = copy
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    return copy


def _renamed(arguments: JsonObject, member: _Member, name: str) -> JsonObject:
    """Return a copy with a member under another name, in its old place."""
    copy: Any = deepcopy(dict(arguments))
    at = copy
    for step in member.path:
        at = at[step]
    entries = [(name if key == member.name else key, value) for key, value in at.items()]
    at.clear()
    at.update(entries)
    return copy


def _argument_names(arguments: JsonObject, signature: Signature) -> Iterator[_Changed]:
    for member in _members(arguments, signature.tool.input_schema):
        known = _properties(member.schema)
        if member.name not in known:
            continue
        free = {member.name, *(known.keys() - member.siblings)}
        for kind, spell in ((Kind.ARGUMENT_NAME, misspelled), (Kind.ARGUMENT_CASE, other_case)):
            for name in spell(member.name):
                if name not in known and name not in member.siblings:
                    determined = nearest(name, free) == member.name
                    yield _Changed(kind, _renamed(arguments, member, name), determined)


def _enum_values(arguments: JsonObject, signature: Signature) -> Iterator[_Changed]:
    for path, value, schema in _leaves(arguments, signature.tool.input_schema):
        options = [each for each in cast("list[Any]", schema.get("enum") or ()) if isinstance(each, str)]
        if not isinstance(value, str) or value not in options:
            continue
        for wrong in misspelled(value):
            yield _Changed(
                Kind.ENUM_VALUE, _replaced(arguments, path, wrong), nearest(wrong, options) == value
            )
        for wrong in (value.swapcase(), value.capitalize()):
            alike = [each for each in options if each.lower() == value.lower()]
            if wrong != value:
                yield _Changed(Kind.ENUM_CASE, _replaced(arguments, path, wrong), alike == [value])


def _types(arguments: JsonObject, signature: Signature) -> Iterator[_Changed]:
    for path, value, schema in _leaves(arguments, signature.tool.input_schema):
        if isinstance(value, bool):
            yield _Changed(Kind.TYPE, _replaced(arguments, path, str(value).lower()))
        elif isinstance(value, int | float):
            yield _Changed(Kind.TYPE, _replaced(arguments, path, str(value)))
        elif isinstance(value, str) and schema.get("type") == "string" and value.isdecimal():
            yield _Changed(Kind.TYPE, _replaced(arguments, path, int(value)))


def _extra(arguments: JsonObject, signature: Signature) -> Iterator[_Changed]:
    del signature
    yield _Changed(Kind.EXTRA, {**arguments, EXTRA_ARGUMENT: "agent"})


def _missing(arguments: JsonObject, signature: Signature) -> Iterator[_Changed]:
    schema = signature.tool.input_schema
    for name in cast("list[str]", schema.get("required") or ()):
        if name in arguments:
            rest = {key: value for key, value in arguments.items() if key != name}
            only = possible_values(_properties(schema).get(name, {})) == 1
            yield _Changed(Kind.ONE_VALUE if only else Kind.MISSING, rest, only)


def possible_values(schema: JsonObject) -> int | None:
    """Count the values that a schema lists; None if it lists none."""
    if "const" in schema:
        return 1
    options = schema.get("enum")
    return len(cast("list[Any]", options)) if isinstance(options, list | tuple) else None


_ARGUMENT_RULES: tuple[Callable[[JsonObject, Signature], Iterator[_Changed]], ...] = (
    _argument_names,
    _enum_values,
    _types,
    _extra,
    _missing,
)


# --- rules about the tool and the caller ---


def _misspelled_tool(call: ValidCall, signature: Signature, tools: ToolSet) -> Iterator[Fault]:
    tool = signature.tool
    offered = [name for name, each in tools.signatures.items() if each.tool.deprecated is None]
    for local in misspelled(tool.local):
        name = f"{tool.source}:{local}"
        if tools.find(name) is None:
            determined = nearest(name, offered) == tool.name
            sent = Request(name, call.request.arguments)
            expected = call.request if determined else None
            yield Fault(kind=Kind.TOOL_NAME, sent=sent, valid=call, expected=expected)


def _retired(call: ValidCall, signature: Signature, tools: ToolSet) -> Iterator[Fault]:
    """A deprecated mutation has been carried out: there is nothing to repair, and repeating it does harm."""
    tool, deprecation = signature.tool, signature.tool.deprecated
    if deprecation is None or deprecation.replacement is None:
        return
    day = deprecation.removal_date
    removed = day is not None and datetime.now(UTC).date().isoformat() >= day
    replacement = tools.find(f"{tool.source}:{deprecation.replacement}") or tools.find(
        deprecation.replacement
    )
    fits = replacement is not None and replacement.accepts(call.request.arguments)
    expected = None
    if replacement is not None and fits and (removed or not signature.is_mutation):
        expected = Request(replacement.tool.name, call.request.arguments)
    kind = Kind.REMOVED if removed else Kind.DEPRECATED
    yield Fault(kind=kind, sent=call.request, valid=call, expected=expected, carried_out=not removed)


def _without_session(call: ValidCall, signature: Signature) -> Iterator[Fault]:
    if signature.tool.family == "app" and call.user is not None:
        route = ("PUT", f"/api/users/{call.user}/session")
        yield Fault(kind=Kind.NO_SESSION, sent=call.request, valid=call, route=route)


def _rate_limited(call: ValidCall, signature: Signature) -> Iterator[Fault]:
    limit = signature.tool.rate_limit
    if limit is not None and limit.max_calls <= MAX_CALLS:
        yield Fault(
            kind=Kind.RATE_LIMIT,
            sent=call.request,
            valid=call,
            expected=call.request,
            repetitions=limit.max_calls,
        )
