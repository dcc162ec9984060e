"""Errors of mini-apps: refused definitions with their paths, and error texts of app servers."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, cast

from toolcrib.model import Json, JsonObject
from toolcrib.names import INVISIBLE, invisible_character
from toolcrib.schemas.explain import excerpt, value_path

# --- Error for messages between the gateway and an app that cannot be parsed ---


class InvalidMessage(ValueError):
    """A malformed message; `path` locates the fault."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(f"{path}: {message}")
        self.path = path
        self.message = message


# --- Faults in submitted definitions: where each is, and what would be valid; shared validators ---

MAX_REPORTED_FAULTS = 100
"""Faults reported at once."""
NOT_PRINTED = r"\p{C}\p{Z}\u00a0\u00ad\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ufeff"
"""Characters that `str.isprintable` rejects, and the space: the inside of an ECMA-262 character class.

The code points repeat what the properties cover, for validators that know those for ASCII only.
"""
_VISIBLE = f"[^{NOT_PRINTED}{INVISIBLE}]"
VISIBLE_LINE = f" *{_VISIBLE}( |{_VISIBLE})*"
"""The strings that `word_faults` accepts, as an ECMA-262 regular expression."""


@dataclass(frozen=True, slots=True)
class DefinitionFault:
    """One fault. `path` is its location, such as `tools[0].inputSchema.properties.when.type`."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"

    def as_json(self) -> dict[str, Any]:
        """Serialize the fault."""
        return {"path": self.path, "message": self.message}


def subpath(path: str, *steps: str | int) -> str:
    """Append steps to a path."""
    return value_path(path, steps)


def first_faults(found: Iterable[DefinitionFault]) -> tuple[DefinitionFault, ...]:
    """Return the first faults, at most MAX_REPORTED_FAULTS."""
    return tuple(islice(found, MAX_REPORTED_FAULTS))


def unknown_fields(fields: JsonObject, known: Iterable[str], path: str) -> Iterator[DefinitionFault]:
    """Yield a fault for each unknown field."""
    names = tuple(known)
    for name in fields:
        if name not in names:
            yield DefinitionFault(subpath(path, name), f"is not allowed here; known: {', '.join(names)}")


def text_faults(
    value: object, path: str, *, most: int, unit: str = "characters"
) -> Iterator[DefinitionFault]:
    """Require a string that is not blank, with at most `most` characters or bytes."""
    if not isinstance(value, str):
        yield DefinitionFault(
            path, "is required, and must be a string" if value is None else "must be a string"
        )
    elif not value.strip():
        yield DefinitionFault(path, "must not be empty")
    elif (size := len(value.encode(errors="replace")) if unit == "bytes" else len(value)) > most:
        yield DefinitionFault(path, f"has {size:,} {unit}, at most {most:,} are allowed")


def word_faults(value: object, path: str, *, most: int) -> Iterator[DefinitionFault]:
    """Require a single-line string without invisible characters."""
    found = tuple(text_faults(value, path, most=most))
    yield from found
    if not found and isinstance(value, str) and (character := invisible_character(value)):
        yield DefinitionFault(path, f"contains an invisible character ({character})")


def choice_faults(value: object, path: str, choices: Iterable[str]) -> Iterator[DefinitionFault]:
    """Require one of the given strings."""
    known = tuple(choices)
    if value not in known:
        actual = "it is missing" if value is None else f"not {excerpt(value)}"
        yield DefinitionFault(path, f"must be one of {', '.join(known)}; {actual}")


# --- Extracts an app's error message from either response format, as one bounded line ---

MAX_APP_ERROR_CHARS = 2_000
"""Characters of an app's own text in an error or in speech."""

_MAX_CODE_CHARS = 100
_BLANKS = re.compile(r"[\s\x00-\x1f\x7f-\x9f]+")
_HTML_PAGE = re.compile(r"<(?:!doctype|html|head|body|pre)\b", re.IGNORECASE)


def app_error(response: JsonObject) -> tuple[str, str | None]:
    """Return the error message and the app's own error code; empty and None if there is none."""
    fault = object_member(response, "error")
    found = (
        one_line(fault.get("message")) or one_line(response.get("error")) or one_line(response.get("message"))
    )
    return found, one_line(fault.get("code"))[:_MAX_CODE_CHARS] or None


def object_member(response: JsonObject, key: str) -> Mapping[str, Any]:
    """Return an object member of a response; empty if it is missing or not an object."""
    value = response.get(key)
    return cast("JsonObject", value) if isinstance(value, Mapping) else {}


def one_line(value: Json) -> str:
    """Return a string as one bounded line; empty if it is not a string, or an HTML page."""
    if not isinstance(value, str) or _HTML_PAGE.search(value):
        return ""
    text = _BLANKS.sub(" ", value[: 2 * MAX_APP_ERROR_CHARS]).strip()
    return text if len(text) <= MAX_APP_ERROR_CHARS else f"{text[: MAX_APP_ERROR_CHARS - 1]}…"
