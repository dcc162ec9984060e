"""Faults in submitted definitions: where each is, and what would be valid; shared validators."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from toolcrib.model import JsonObject
from toolcrib.names import INVISIBLE, hidden
from toolcrib.schemas.explain import excerpt, spell

MOST_FAULTS = 100
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


def at(path: str, *steps: str | int) -> str:
    """Append steps to a path."""
    return spell(path, steps)


def first(found: Iterable[DefinitionFault]) -> tuple[DefinitionFault, ...]:
    """Return the first faults, at most MOST_FAULTS."""
    return tuple(islice(found, MOST_FAULTS))


def unknown_fields(given: JsonObject, known: Iterable[str], path: str) -> Iterator[DefinitionFault]:
    """Yield a fault for each unknown field."""
    names = tuple(known)
    for name in given:
        if name not in names:
            yield DefinitionFault(at(path, name), f"is not allowed here; known: {', '.join(names)}")


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
    if not found and isinstance(value, str) and (character := hidden(value)):
        yield DefinitionFault(path, f"holds a character that cannot be seen ({character})")


def choice_faults(value: object, path: str, choices: Iterable[str]) -> Iterator[DefinitionFault]:
    """Require one of the given strings."""
    known = tuple(choices)
    if value not in known:
        came = "it is missing" if value is None else f"not {excerpt(value)}"
        yield DefinitionFault(path, f"must be one of {', '.join(known)}; {came}")
