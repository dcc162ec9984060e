"""Formats validation errors so that a model can correct them: path, expected value, actual value."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from json import JSONEncoder
from typing import Any, cast

from jsonschema_rs import ValidationError

from toolcrib.model import JsonObject
from toolcrib.model.value import is_secret_name
from toolcrib.schemas.repair import nearest_name

Steps = list[str | int]

_MAX_EXCERPT_CHARACTERS = 60
_MAX_LISTED_NAMES = 20
_JSON = JSONEncoder(ensure_ascii=False, default=str)


@dataclass(frozen=True, slots=True)
class ValidationFault:
    """One validation error."""

    path: str
    """Path of the value, such as `arguments.items[2].name`."""
    expected: str
    message: str
    """The complete message, path included."""
    near: str | None = None
    """The property that a property with an unknown name clearly means."""


def explain(
    errors: Iterable[ValidationError], *, schema: JsonObject, prefix: str
) -> Iterator[ValidationFault]:
    """Convert errors to messages, without duplicates."""
    seen: set[str] = set()
    for error in errors:
        for fault in _FORMATTERS.get(error.kind.name, _mismatch)(error, schema, prefix):
            if fault.message not in seen:
                seen.add(fault.message)
                yield fault


def value_path(prefix: str, steps: Iterable[str | int]) -> str:
    """Return a path in the notation of a program."""
    return prefix + "".join([_path_step(step) for step in steps])


def excerpt(value: Any) -> str:
    """Return a value as JSON, truncated; serialization stops at the limit."""
    text = ""
    for piece in _JSON.iterencode(value):
        text += piece
        if len(text) > _MAX_EXCERPT_CHARACTERS:
            break
    return truncated(text)


def truncated(text: str) -> str:
    """Truncate text for a message."""
    return text if len(text) <= _MAX_EXCERPT_CHARACTERS else f"{text[: _MAX_EXCERPT_CHARACTERS - 1]}…"


def _path_step(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    return (
        f".{step}" if step.isidentifier() and len(step) <= _MAX_EXCERPT_CHARACTERS else f"[{excerpt(step)}]"
    )


def _fault(path: str, expected: str, sentence: str) -> ValidationFault:
    return ValidationFault(path, expected, f"{path}: {sentence}")


# --- expected values by keyword, to follow "must be" ---

_TYPES = {
    "array": "an array",
    "boolean": "true or false",
    "integer": "an integer",
    "null": "null",
    "number": "a number",
    "object": "an object",
    "string": "a string",
}

_EXPECTED: dict[str, Callable[[Any], str]] = {
    "additionalItems": lambda kind: f"an array of at most {_count(kind.limit, 'item')}",
    "const": lambda kind: excerpt(kind.expected_value),
    "contains": lambda _: "an array with the required number of matching items",
    "contentEncoding": lambda kind: f"a string in the encoding {truncated(kind.content_encoding)}",
    "contentMediaType": lambda kind: f"a string with the media type {truncated(kind.content_media_type)}",
    "enum": lambda kind: _options(kind.options),
    "exclusiveMaximum": lambda kind: f"less than {kind.limit}",
    "exclusiveMinimum": lambda kind: f"more than {kind.limit}",
    "format": lambda kind: f"a string in the format {truncated(kind.format)}",
    "maxItems": lambda kind: f"an array of at most {_count(kind.limit, 'item')}",
    "maxLength": lambda kind: f"a string of at most {_count(kind.limit, 'character')}",
    "maxProperties": lambda kind: f"an object of at most {_count(kind.limit, 'member')}",
    "maximum": lambda kind: f"at most {kind.limit}",
    "minItems": lambda kind: f"an array of at least {_count(kind.limit, 'item')}",
    "minLength": lambda kind: f"a string of at least {_count(kind.limit, 'character')}",
    "minProperties": lambda kind: f"an object of at least {_count(kind.limit, 'member')}",
    "minimum": lambda kind: f"at least {kind.limit}",
    "multipleOf": lambda kind: f"a multiple of {kind.multiple_of}",
    "not": lambda kind: f"a value that does not match {excerpt(kind.schema)}",
    "pattern": lambda kind: f"a string that matches {truncated(kind.pattern)}",
    "type": lambda kind: _joined_with_or([_TYPES[each] for each in kind.types]),
    "unevaluatedItems": lambda _: "an array without further items",
    "uniqueItems": lambda _: "an array without repeated items",
}


def _expected(error: ValidationError) -> str:
    phrase = _EXPECTED.get(error.kind.name)
    return phrase(error.kind) if phrase else f"what the schema requires by {error.kind.name}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _options(options: list[Any]) -> str:
    shown = [excerpt(each) for each in options[:_MAX_LISTED_NAMES]]
    return shown[0] if len(options) == 1 else f"one of {_listed(shown, len(options))}"


def _listed(shown: list[str], total: int) -> str:
    more = total - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def _joined_with_or(phrases: Iterable[str]) -> str:
    *most, last = dict.fromkeys(phrases)
    return f"{', '.join(most)} or {last}" if most else last


# --- messages ---


def _mismatch(error: ValidationError, schema: JsonObject, prefix: str) -> Iterator[ValidationFault]:
    yield _mismatch_fault([error], schema, prefix)


def _required(error: ValidationError, schema: JsonObject, prefix: str) -> Iterator[ValidationFault]:
    kind: Any = error.kind
    yield _fault(value_path(prefix, [*error.instance_path, kind.property]), "a value", "is required")


def _unexpected(error: ValidationError, schema: JsonObject, prefix: str) -> Iterator[ValidationFault]:
    kind: Any = error.kind
    known = _known_properties(schema, error.schema_path[:-1])
    shown = _listed([truncated(name) for name in known[:_MAX_LISTED_NAMES]], len(known))
    for name in kind.unexpected:
        near = nearest_name(name, known)
        meant = f"; the nearest name is {truncated(near)}" if near else ""
        path = value_path(prefix, [*error.instance_path, name])
        sentence = f"is not allowed{meant}{f'; allowed: {shown}' if known else ''}"
        expected = f"one of {shown}" if known else "no such property"
        yield ValidationFault(path, expected, f"{path}: {sentence}", near)


def _known_properties(schema: Any, steps: Steps) -> list[str]:
    """Return the property names a subschema defines."""
    try:
        for step in steps:
            schema = schema[step]
        return list(schema["properties"])
    except (LookupError, TypeError):
        return []


def _forbidden(error: ValidationError, schema: JsonObject, prefix: str) -> Iterator[ValidationFault]:
    yield _fault(value_path(prefix, error.instance_path), "nothing", "is not allowed")


def _member_name(error: ValidationError, schema: JsonObject, prefix: str) -> Iterator[ValidationFault]:
    kind: Any = error.kind
    expected = _expected(kind.error)
    sentence = f"the name {excerpt(kind.error.instance)} must be {expected}"
    yield _fault(value_path(prefix, error.instance_path), expected, sentence)


def _union(error: ValidationError, schema: JsonObject, prefix: str) -> Iterator[ValidationFault]:
    """Report what all branches share, else the branch with the matching tag, else the closest one."""
    kind: Any = error.kind
    branches: list[list[ValidationError]] = kind.context
    here = len(error.instance_path)
    typed = [each for each in branches if not _first_error(each, ("type",), here)] or branches
    tags = [_first_error(each, ("const", "enum"), here + 1) for each in typed]
    likely = [each for each, tag in zip(typed, tags, strict=True) if not tag] or typed
    alike = _shared_errors([each[0] if len(each) == 1 else None for each in branches]) or _shared_errors(tags)
    if not all(branches):
        yield _fault(
            value_path(prefix, error.instance_path),
            "exactly one form",
            "must match exactly one form, but matches several",
        )
    elif alike:
        yield _mismatch_fault(alike, schema, prefix)
    elif len(likely) == 1:
        yield from explain(likely[0], schema=schema, prefix=prefix)
    else:
        nearest = next(explain(min(likely, key=len), schema=schema, prefix=prefix))
        expected = f"one of {len(branches)} forms"
        sentence = f"must match {expected}; the closest one reports: {nearest.message}"
        yield _fault(value_path(prefix, error.instance_path), expected, sentence)


def _first_error(
    branch: list[ValidationError], keywords: tuple[str, ...], depth: int
) -> ValidationError | None:
    for error in branch:
        if error.kind.name in keywords and len(error.instance_path) == depth:
            return error
    return None


def _shared_errors(errors: Sequence[ValidationError | None]) -> list[ValidationError]:
    """Return the errors if every branch has one and all concern the same value."""
    found = [error for error in errors if error and error.kind.name in _EXPECTED]
    same = len(found) == len(errors) and all(each.instance_path == found[0].instance_path for each in found)
    return found if same else []


def _mismatch_fault(errors: list[ValidationError], schema: JsonObject, prefix: str) -> ValidationFault:
    expected = _joined_with_or(_expected(error) for error in errors)
    named = any(isinstance(step, str) and is_secret_name(step) for step in errors[0].instance_path)
    shown = not named and not _is_secret(schema, errors[0].schema_path)
    sentence = f"must be {expected}" + (f", got {excerpt(errors[0].instance)}" if shown else "")
    return _fault(value_path(prefix, errors[0].instance_path), expected, sentence)


def _is_secret(schema: Any, steps: Steps) -> bool:
    """Return whether a value is inside a `writeOnly` schema. Messages are logged, so it must not be shown."""
    try:
        for step in steps:
            if _is_write_only(schema):
                return True
            schema = schema[step]
    except (LookupError, TypeError):
        return False
    return False


def _is_write_only(place: Any) -> bool:
    return isinstance(place, dict) and cast("JsonObject", place).get("writeOnly") is True


_FORMATTERS: dict[str, Callable[[ValidationError, JsonObject, str], Iterator[ValidationFault]]] = {
    "additionalProperties": _unexpected,
    "anyOf": _union,
    "falseSchema": _forbidden,
    "oneOf": _union,
    "propertyNames": _member_name,
    "required": _required,
    "unevaluatedProperties": _unexpected,
}
