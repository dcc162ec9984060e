"""What is wrong with something a developer sent in: where, and what would be right."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from toolcrib.model import JsonObject
from toolcrib.names import INVISIBLE, hidden
from toolcrib.schemas.explain import excerpt, spell

MOST_FAULTS = 100
"""How many are told at once."""
NOT_PRINTED = r"\p{C}\p{Z}\u00a0\u00ad\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ufeff"
"""What `str.isprintable` rejects, and the space, as the inside of a class of ECMA-262.

The code points are among the properties already; they are for validators that know of these ASCII alone.
"""
_VISIBLE = f"[^{NOT_PRINTED}{INVISIBLE}]"
VISIBLE_LINE = f" *{_VISIBLE}( |{_VISIBLE})*"
"""What `word_faults` accepts, as a regular expression of ECMA-262."""


@dataclass(frozen=True, slots=True)
class DefinitionFault:
    """One fault. `path` is where, such as `tools[0].inputSchema.properties.when.type`."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"

    def as_json(self) -> dict[str, Any]:
        """Spell it for a program."""
        return {"path": self.path, "message": self.message}


def at(path: str, *steps: str | int) -> str:
    """A place below another one."""
    return spell(path, steps)


def first(found: Iterable[DefinitionFault]) -> tuple[DefinitionFault, ...]:
    """The faults, and no more of them than anyone reads."""
    return tuple(islice(found, MOST_FAULTS))


def unknown_fields(given: JsonObject, known: Iterable[str], path: str) -> Iterator[DefinitionFault]:
    """Name what should not be there."""
    names = tuple(known)
    for name in given:
        if name not in names:
            yield DefinitionFault(at(path, name), f"is not allowed here; known: {', '.join(names)}")


def text_faults(
    value: object, path: str, *, most: int, unit: str = "characters"
) -> Iterator[DefinitionFault]:
    """Ask for a text of which something can be seen."""
    if not isinstance(value, str):
        yield DefinitionFault(
            path, "is required, and must be a string" if value is None else "must be a string"
        )
    elif not value.strip():
        yield DefinitionFault(path, "must not be empty")
    elif (size := len(value.encode(errors="replace")) if unit == "bytes" else len(value)) > most:
        yield DefinitionFault(path, f"has {size:,} {unit}, at most {most:,} are allowed")


def word_faults(value: object, path: str, *, most: int) -> Iterator[DefinitionFault]:
    """Ask for a text on one line, without anything in it that cannot be seen."""
    found = tuple(text_faults(value, path, most=most))
    yield from found
    if not found and isinstance(value, str) and (character := hidden(value)):
        yield DefinitionFault(path, f"holds a character that cannot be seen ({character})")


def choice_faults(value: object, path: str, choices: Iterable[str]) -> Iterator[DefinitionFault]:
    """Ask for one of a few words."""
    known = tuple(choices)
    if value not in known:
        came = "it is missing" if value is None else f"not {excerpt(value)}"
        yield DefinitionFault(path, f"must be one of {', '.join(known)}; {came}")
