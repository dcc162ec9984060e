"""Splits hints into their structure and the texts that agents read."""

from collections.abc import Iterator
from typing import Any, cast

from tests.texts import matches

TEXTS = frozenset({"description", "reasoning", "message", "suggestedFix", "mitigation", "expectedOutcome"})
LISTS = frozenset({"contextNeeded", "assumptions", "constraints"})


def without_texts(value: Any) -> Any:
    """Copy JSON without its texts; a list of texts becomes the number of its items."""
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return {
            key: len(each) if key in LISTS else without_texts(each)
            for key, each in fields.items()
            if key not in TEXTS
        }
    return [without_texts(each) for each in cast("list[Any]", value)] if isinstance(value, list) else value


def texts_of(value: Any) -> str:
    """Return the texts, one per line, each with its path."""
    return "\n".join(sorted(_lines(value, "")))


def reported(faults: tuple[str, ...], name: str, *places: str) -> bool:
    """Whether faults name these paths in this order, with the texts on record."""
    assert tuple(fault.split()[0] for fault in faults) == places
    return matches("hints", f"faults of {name}", "\n".join(faults))


def _lines(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, dict):
        for key, each in cast("dict[str, Any]", value).items():
            yield from _lines(each, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for number, each in enumerate(cast("list[Any]", value)):
            yield from _lines(each, f"{path}[{number}]")
    elif isinstance(value, str) and (path.partition("[")[0] in LISTS or path.rpartition(".")[2] in TEXTS):
        yield f"{path}: {value}"
