"""What is known of a tool besides its definition: how its examples went, who watched, which test names it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from toolcrib.model import Json, Result


@dataclass(frozen=True, slots=True, kw_only=True)
class ExampleRun:
    """One example that was run in a gateway, and what came of it."""

    example: int
    """Its place in the list, from 1."""
    result: Result
    claimed: float | None = None
    """The confidence the tool gave by itself without saying what from; None where it is reckoned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolEvidence:
    """What was seen. Everything may be unknown: then it is not judged, or left to a person."""

    trials: tuple[ExampleRun, ...] = ()
    same_again: bool | None = None
    """Whether the first example, run twice, gave the same answer."""
    refusal: Result | None = None
    """What came of arguments that do not fit."""
    logged: bool | None = None
    counted: bool | None = None
    listed: bool | None = None
    """Whether the gateway offers it."""
    withheld: str = ""
    """Why the gateway does not offer it."""
    p95: float | None = None
    """Milliseconds in which 95 of 100 calls were answered, where enough were made."""
    test: str = ""
    """The file of a test that names it."""


def misfit(expected: Json, came: Json, path: str = "data") -> str | None:
    """Say where an answer is not shaped as its example says: a field that lacks, or is of another type.

    The answer may hold more than the example shows, and null on either side fits anything.
    """
    if expected is None or came is None:
        return None
    if _kind(expected) != _kind(came):
        return f"{path} is {_kind(came)}, and the example says {_kind(expected)}"
    if isinstance(expected, Mapping):
        return next(
            _lacking(cast("Mapping[str, Json]", expected), cast("Mapping[str, Json]", came), path), None
        )
    if isinstance(expected, list):
        return next(_strange(cast("list[Json]", expected), cast("list[Json]", came), path), None)
    return None


def _lacking(expected: Mapping[str, Json], came: Mapping[str, Json], path: str) -> Iterator[str]:
    for name, value in expected.items():
        if name not in came:
            yield f"{path}.{name} is not there, and the example shows it"
            continue
        found = misfit(value, came[name], f"{path}.{name}")
        if found is not None:
            yield found


def _strange(expected: Sequence[Json], came: Sequence[Json], path: str) -> Iterator[str]:
    """Every item is like one of the example's."""
    if not expected:
        return
    for place, item in enumerate(came):
        found = [misfit(each, item, f"{path}[{place}]") for each in expected]
        if all(found):
            yield str(found[0])


def _kind(value: Json) -> str:
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, str):
        return "text"
    return "an object" if isinstance(value, Mapping) else "a list"
