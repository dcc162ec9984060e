"""Finds out where the arguments of a call came from, by hashes of the values of the call before it."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Protocol, cast, runtime_checkable

from toolcrib.interfaces import ArgumentSource
from toolcrib.model import Json, JsonObject
from toolcrib.model.value import is_secret_name
from toolcrib.names import snake_case

MAX_FINGERPRINT_VALUES = 48
"""Values of one call that are remembered."""
MAX_SOURCES = 8
"""Arguments of one call that are traced; a call with more is not learned."""
_MAX_VISITED = 512
"""Values of one result that are visited."""
_MAX_DEPTH = 5
_MIN_CHARACTERS, _MAX_CHARACTERS = 3, 256
"""Shorter texts are equal by accident; longer ones are content."""
_NAME = re.compile(r"[A-Za-z_$][A-Za-z0-9_.$-]{0,63}")
"""Keys that look like names of fields; others are data, which must not become part of a path."""

Fingerprint = Mapping[int, ArgumentSource]
"""The sources of values by their hash. Hashes of texts are keyed per process; no value is stored."""


class CallValues(NamedTuple):
    """Arguments and data of a finished call, until the next batch is processed."""

    arguments: JsonObject
    data: Json


@runtime_checkable
class ValueListener(Protocol):
    """A sink that also receives arguments and data of the calls, which it must not keep."""

    def note_values(self, values: Mapping[str, CallValues]) -> None:
        """Receive the values of the calls in the next batch, by call id."""
        ...


def fingerprint(values: CallValues) -> Fingerprint:
    """Return where the values of a call are, for the call after it; those of the result come first."""
    found: dict[int, ArgumentSource] = {}
    for path, value in _leaves(values.data):
        key = _hash(value, str(next((step for step in reversed(path) if step != 0), "")))
        if key is not None and len(found) < MAX_FINGERPRINT_VALUES:
            found.setdefault(key, ArgumentSource("", path))
    for name, value in values.arguments.items():
        key = _hash(value, name)
        if key is not None and not is_secret_name(name) and len(found) < 2 * MAX_FINGERPRINT_VALUES:
            found.setdefault(key, ArgumentSource("", given=name))
    return found


def sources_of(arguments: JsonObject, before: Fingerprint) -> tuple[ArgumentSource, ...]:
    """Return the sources of the arguments whose values the call before had; empty if none is in its result.

    An argument from elsewhere is left out: it is a constant or the user's choice, and neither is learned.
    """
    if len(arguments) > MAX_SOURCES:
        return ()
    found: list[ArgumentSource] = []
    for name, value in arguments.items():
        key = _hash(value, name)
        source = None if key is None else before.get(key)
        if source is not None and _NAME.fullmatch(name) and not is_secret_name(name):
            found.append(source._replace(argument=name))
    return tuple(sorted(found)) if any(source.path for source in found) else ()


def _leaves(data: Json) -> Iterator[tuple[tuple[str | int, ...], Json]]:
    """Yield texts and numbers with their paths, the outer ones first; all items of a list have one path."""
    level: list[tuple[tuple[str | int, ...], Json]] = [((), data)]
    visited = 0
    for _ in range(_MAX_DEPTH):
        below: list[tuple[tuple[str | int, ...], Json]] = []
        for path, value in level:
            for step, inner in _members(value):
                visited += 1
                if visited > _MAX_VISITED:
                    return
                if type(inner) in (dict, list):
                    below.append(((*path, step), inner))
                else:
                    yield (*path, step), inner
        level = below


def _members(value: Json) -> Iterator[tuple[str | int, Json]]:
    if isinstance(value, dict):
        for key, inner in cast("dict[Any, Json]", value).items():
            if isinstance(key, str) and _NAME.fullmatch(key) and not is_secret_name(key):
                yield key, inner
    elif isinstance(value, list):
        for inner in cast("list[Json]", value):
            yield 0, inner


def _hash(value: Json, name: str) -> int | None:
    """Return the hash of a value that may identify something; a number only together with its name."""
    if isinstance(value, str):
        return hash(value) if _MIN_CHARACTERS <= len(value) <= _MAX_CHARACTERS else None
    if isinstance(value, int) and not isinstance(value, bool):
        return hash((value, snake_case(name[:64]).rpartition("_")[2]))
    return None
