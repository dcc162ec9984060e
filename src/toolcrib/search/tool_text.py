"""Extracts the weighted words of a tool definition; the field a word occurs in sets its weight."""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, cast

from toolcrib.apps.phrases import every_phrase
from toolcrib.model import JsonObject, Tool
from toolcrib.search.words import stem, telling, words

NAME, TITLE, MARK, SOURCE, PARAMETER, PROSE, DETAIL = 4.0, 3.0, 2.5, 2.0, 1.2, 1.0, 0.5
"""Weight of a word in each field; `MARK` is for tags and activation phrases."""

_MOST_PROSE = 4_000
_MOST_PARAMETERS = 64
_DEEPEST = 3
_MOST_WORDS = 512
_K, _B, _USUAL = 1.2, 0.5, 40.0
"""BM25 parameters: term frequency saturation (k1), length normalization (b), average length in words.

The average length is a constant, not the mean of a catalog. So a score reveals nothing about tools its reader
may not see, and it is calculated once for all audiences.
"""


def weighed(tool: Tool) -> dict[str, float]:
    """Return the words of a tool with their BM25 term weights."""
    counts: dict[str, float] = {}
    before = counts.get
    for weight, text in _named(tool):
        for word in map(stem, words(text[:_MOST_PROSE])):
            counts[word] = before(word, 0.0) + weight
    length = 0
    for weight, text in _said(tool):
        said = words(text[:_MOST_PROSE])
        length += len(said)
        for word in map(telling, said):
            counts[word] = before(word, 0.0) + weight
    counts.pop("", None)
    short = _K * (1 - _B + _B * length / _USUAL)
    # Words of the name fields come first, so that the cut drops words of the description.
    some = islice(counts.items(), _MOST_WORDS)
    return {word: count * (_K + 1) / (count + short) for word, count in some}


def _named(tool: Tool) -> Iterator[tuple[float, str]]:
    """Yield the short fields: names, title, tags, source, category."""
    yield NAME, tool.local
    joined = "".join(words(tool.local))
    if joined != tool.local:
        yield NAME, joined
    if tool.expose_as:
        yield NAME, tool.expose_as
    if tool.title:
        yield TITLE, tool.title
    yield MARK, " ".join((*tool.tags, *every_phrase(tool.extensions)))
    yield SOURCE, " ".join((tool.source, *tool.aliases))
    yield PARAMETER, f"{tool.category} {tool.extensions.get('category', '')}"


def _said(tool: Tool) -> Iterator[tuple[float, str]]:
    """Yield the long fields, to which length normalization applies."""
    yield PROSE, tool.description
    found = _parameters(tool.input_schema)
    yield PARAMETER, " ".join(name for name, _ in found)
    yield DETAIL, " ".join(description for _, description in found if description)


def _parameters(schema: JsonObject) -> list[tuple[str, str]]:
    """Return names and descriptions of parameters, including those of nested objects and arrays."""
    found: list[tuple[str, str]] = []
    level: list[Any] = [schema]
    for _ in range(_DEEPEST):
        within: list[Any] = []
        for each in level:
            for name, about in _properties(each):
                found.append((name, str(about.get("description", ""))))
                within += (part for part in (about, about.get("items")) if part and "properties" in part)
                if len(found) >= _MOST_PARAMETERS:
                    return found
        level = within
    return found


def _properties(schema: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    given = cast("Mapping[str, Any]", schema).get("properties") if isinstance(schema, Mapping) else None
    if isinstance(given, Mapping):
        for name, about in cast("Mapping[str, Any]", given).items():
            yield str(name), cast("Mapping[str, Any]", about) if isinstance(about, Mapping) else {}
