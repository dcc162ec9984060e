"""Evidence about a tool for the checklist: results of its examples, logs, metrics, tests."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from toolcrib.model import Json, Result


@dataclass(frozen=True, slots=True, kw_only=True)
class ExampleRun:
    """One example that was run in a gateway, and its result."""

    example: int
    """Number of the example, from 1."""
    result: Result
    stated_confidence: float | None = None
    """Confidence stated by the tool without evidence; None if it is calculated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolEvidence:
    """Observations of a tool. Unknown ones are not judged, or left for a human review."""

    runs: tuple[ExampleRun, ...] = ()
    equal_results: bool | None = None
    """Whether the first example, run twice, returned equal results."""
    refusal: Result | None = None
    """Result of a call with invalid arguments."""
    logged: bool | None = None
    counted: bool | None = None
    listed: bool | None = None
    """Whether the gateway offers it."""
    withheld: str = ""
    """Reason why the gateway does not offer it."""
    p95: float | None = None
    """95th percentile of the latency in milliseconds, if there were enough calls."""
    test_file: str = ""
    """File of a test that names the tool."""


def structure_mismatch(expected: Json, actual: Json, path: str = "data") -> str | None:
    """Return where a result differs in structure from its example: a missing field, another type; or None.

    The result may have more fields than the example, and null on either side matches anything.
    """
    if expected is None or actual is None:
        return None
    if _json_type(expected) != _json_type(actual):
        return f"{path} is {_json_type(actual)}, but {_json_type(expected)} in the example"
    if isinstance(expected, Mapping):
        fields = cast("Mapping[str, Json]", expected), cast("Mapping[str, Json]", actual)
        return next(_missing_fields(*fields, path), None)
    if isinstance(expected, list):
        return next(_mismatched_items(cast("list[Json]", expected), cast("list[Json]", actual), path), None)
    return None


def _missing_fields(expected: Mapping[str, Json], actual: Mapping[str, Json], path: str) -> Iterator[str]:
    for name, value in expected.items():
        if name not in actual:
            yield f"{path}.{name} is missing, but the example has it"
            continue
        mismatch = structure_mismatch(value, actual[name], f"{path}.{name}")
        if mismatch is not None:
            yield mismatch


def _mismatched_items(expected: Sequence[Json], actual: Sequence[Json], path: str) -> Iterator[str]:
    """Yield the first item that matches no item of the example."""
    if not expected:
        return
    for index, item in enumerate(actual):
        mismatches = [structure_mismatch(each, item, f"{path}[{index}]") for each in expected]
        if all(mismatches):
            yield str(mismatches[0])


def _json_type(value: Json) -> str:
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, str):
        return "text"
    return "an object" if isinstance(value, Mapping) else "a list"
