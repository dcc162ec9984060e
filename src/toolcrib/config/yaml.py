"""Reads YAML with the position of every value, and walks nested mappings and lists by path."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite, nan
from typing import Any, cast

import yaml

from toolcrib.config.errors import ConfigFault, FilePosition, Where
from toolcrib.model import JsonObject

# --- Traversal of plain documents (nested mappings and lists) by path ---


def rewrite(value: Any, change: Callable[[Where, str], str], where: Where = ()) -> Any:
    """Copy a document with every string value mapped through `change`; keys are not changed."""
    if isinstance(value, str):
        return change(where, value)
    if isinstance(value, Mapping):
        entries = cast("Mapping[str, Any]", value)
        return {key: rewrite(inner, change, (*where, key)) for key, inner in entries.items()}
    if isinstance(value, Sequence):
        items = cast("Sequence[Any]", value)
        return [rewrite(inner, change, (*where, index)) for index, inner in enumerate(items)]
    return value


def text_values(value: Any, where: Where = ()) -> Iterator[tuple[Where, str]]:
    """Yield every string value with its path."""
    if isinstance(value, str):
        yield where, value
    elif isinstance(value, Mapping):
        for key, inner in cast("Mapping[str, Any]", value).items():
            yield from text_values(inner, (*where, key))
    elif isinstance(value, Sequence):
        for index, inner in enumerate(cast("Sequence[Any]", value)):
            yield from text_values(inner, (*where, index))


def depth(value: Any, limit: int) -> int:
    """Return the nesting depth of a document, counted up to `limit`."""
    inner: Sequence[Any] = ()
    if isinstance(value, Mapping):
        inner = list(cast("Mapping[str, Any]", value).values())
    elif isinstance(value, Sequence) and not isinstance(value, str):
        inner = cast("Sequence[Any]", value)
    if not inner or limit <= 0:
        return 0
    return 1 + max(depth(value, limit - 1) for value in inner)


def matching_paths(document: Any, pattern: Sequence[str], where: Where = ()) -> Iterator[Where]:
    """Yield every path that matches a pattern of keys; `*` matches any key, and lists are traversed."""
    if not pattern:
        yield where
    elif isinstance(document, Mapping):
        entries = cast("JsonObject", document)
        for key in entries if pattern[0] == "*" else {pattern[0]} & entries.keys():
            yield from matching_paths(entries[key], pattern[1:], (*where, key))
    elif isinstance(document, Sequence) and not isinstance(document, str):
        for index, inner in enumerate(cast("Sequence[Any]", document)):
            yield from matching_paths(inner, pattern, (*where, index))


def has_path(document: Any, where: Where) -> bool:
    """Whether a path exists in a document."""
    inner = document
    for part in where:
        if isinstance(inner, Mapping) and part in inner:
            inner = cast("Mapping[Any, Any]", inner)[part]
        elif (
            isinstance(part, int) and isinstance(inner, Sequence) and part < len(cast("Sequence[Any]", inner))
        ):
            inner = cast("Sequence[Any]", inner)[part]
        else:
            return False
    return True


def value_at(document: Any, keys: Sequence[str]) -> Any:
    """Return the value at a path of nested mappings; None if there is none."""
    inner = document
    for key in keys:
        inner = cast("JsonObject", inner).get(key) if isinstance(inner, Mapping) else None
    return inner


# --- Parses a YAML config file into plain values, with the position of each value ---
#
# Built on parser events instead of nodes: aliases, tags and excessive depth are refused in the stream, before
# they could use memory, and the recursion is bounded. Scalars follow YAML 1.2, so `off` and `2026-01-01` are
# text; a boolean setting still accepts `on` and `off`.

MAX_CONFIG_BYTES = 1 << 20
MAX_CONFIG_DEPTH = 64
MAX_CONFIG_VALUES = 100_000
MAX_NUMBER_CHARACTERS = 40

_LOADER = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader

_CONSTANTS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_DECIMAL = re.compile(r"[-+]?[0-9]+")
_OCTAL_OR_HEXADECIMAL = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The result of parsing. `complete` is false if parsing stopped early, so that the rest is unknown."""

    values: Mapping[str, Any] = field(default_factory=dict[str, Any])
    positions: Mapping[Where, FilePosition] = field(default_factory=dict[Where, FilePosition])
    faults: tuple[ConfigFault, ...] = ()
    complete: bool = True


def read(data: bytes, name: str) -> Reading:
    """Parse one document; faults are collected, and a syntax error stops parsing."""
    if len(data) > MAX_CONFIG_BYTES:
        return _stopped(
            name, f"is larger than {MAX_CONFIG_BYTES // 1024} KiB, the maximum for a config file", None
        )
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return _stopped(
            name, "is not UTF-8 text; save it as UTF-8", _position_after(data[: error.start].decode())
        )
    return _parsed(text, name)


def parse_scalar(text: str) -> str | int | float | bool | None:
    """Resolve a plain scalar by the YAML 1.2 core schema: null, boolean, number, else the text."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if len(text) > MAX_NUMBER_CHARACTERS:
        return text
    if _DECIMAL.fullmatch(text):
        return int(text)
    if _OCTAL_OR_HEXADECIMAL.fullmatch(text):
        return int(text, 0)
    if _NOT_FINITE.fullmatch(text):
        return nan
    return float(text) if _FLOAT.fullmatch(text) else text


def _parsed(text: str, name: str) -> Reading:
    events = yaml.parse(text, Loader=_LOADER)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    builder = _Builder(name, cast("Iterator[yaml.Event]", events))
    try:
        values = builder.document()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        position = None if mark is None else FilePosition(mark.line + 1, mark.column + 1)
        return _stopped(
            name, f"is not valid YAML: {error.problem}{_advice(text, position)}", position, builder
        )
    except yaml.reader.ReaderError as error:
        before = text.encode()[: error.position].decode(errors="ignore")
        return _stopped(name, f"is not valid YAML: {error.reason}", _position_after(before), builder)
    except _ParsingStopped as stop:
        return _stopped(name, str(stop), stop.position, builder)
    return Reading(values=values, positions=builder.positions, faults=tuple(builder.faults))


def _advice(text: str, position: FilePosition | None) -> str:
    lines = text.splitlines()
    if position is not None and position.line <= len(lines) and "${" in lines[position.line - 1]:
        return "; put quotes around ${…} within braces or brackets"
    return ""


def _stopped(
    name: str, message: str, position: FilePosition | None, builder: "_Builder | None" = None
) -> Reading:
    earlier = builder.faults if builder else []
    return Reading(
        faults=(*earlier, ConfigFault(message=message, file=name, position=position)), complete=False
    )


def _position_after(before: str) -> FilePosition:
    return FilePosition(before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1)


class _ParsingStopped(Exception):
    def __init__(self, message: str, event: yaml.Event) -> None:
        super().__init__(message)
        self.position = _position(event)


def _position(event: yaml.Event) -> FilePosition:
    mark = event.start_mark
    return FilePosition(1, 1) if mark is None else FilePosition(mark.line + 1, mark.column + 1)


class _Builder:
    """Builds values from parser events, and records their positions and the faults."""

    def __init__(self, name: str, events: Iterator[yaml.Event]) -> None:
        self.positions: dict[Where, FilePosition] = {}
        self.faults: list[ConfigFault] = []
        self._name = name
        self._events = events

    def document(self) -> dict[str, Any]:
        """Parse the single document; an empty file is an empty document."""
        next(self._events)
        if isinstance(next(self._events), yaml.StreamEndEvent):
            return {}
        first = next(self._events)
        root = self._value(first, ())
        next(self._events)
        following = next(self._events)
        if not isinstance(following, yaml.StreamEndEvent):
            raise _ParsingStopped("contains more than one document; remove the line with ---", following)
        if root is None or isinstance(root, dict):
            return cast("dict[str, Any]", root or {})
        raise _ParsingStopped("must be a mapping of sections, such as `server:`", first)

    def _value(self, event: yaml.Event, where: Where) -> Any:
        self._count(event, where)
        if isinstance(event, yaml.AliasEvent):
            return self._add_fault(
                "is an alias, which is not supported; write the value itself", event, where
            )
        self._check_marks(event, where)
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event, where)
        if isinstance(event, yaml.SequenceStartEvent):
            return self._list(where)
        return self._mapping(where)

    def _count(self, event: yaml.Event, where: Where) -> None:
        self.positions.setdefault(where, _position(event))
        if len(where) > MAX_CONFIG_DEPTH:
            raise _ParsingStopped(f"is nested more than {MAX_CONFIG_DEPTH} levels deep", event)
        if len(self.positions) > MAX_CONFIG_VALUES:
            raise _ParsingStopped(f"contains more than {MAX_CONFIG_VALUES} values", event)

    def _add_fault(self, message: str, event: yaml.Event, where: Where) -> None:
        self.faults.append(
            ConfigFault(message=message, where=where, file=self._name, position=_position(event))
        )

    def _check_marks(self, event: yaml.Event, where: Where) -> None:
        if getattr(event, "anchor", None) is not None:
            self._add_fault(
                "has an anchor; anchors and aliases are not supported, repeat the value", event, where
            )
        if getattr(event, "tag", None) is not None:
            self._add_fault("has a tag, which is not supported; remove it", event, where)

    def _scalar(self, event: yaml.ScalarEvent, where: Where) -> Any:
        value = parse_scalar(event.value) if event.implicit[0] else event.value
        if isinstance(value, float) and not isfinite(value):
            return self._add_fault("is not a finite number; put it in quotes if text is meant", event, where)
        if isinstance(value, str) and "\0" in value:
            return self._add_fault("contains a NUL character", event, where)
        return value

    def _list(self, where: Where) -> list[Any]:
        items: list[Any] = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            items.append(self._value(event, (*where, len(items))))
        return items

    def _mapping(self, where: Where) -> dict[str, Any]:
        entries: dict[str, Any] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            key = self._key(event, where, entries)
            if key is None:
                self._value(next(self._events), (*where, ""))
                continue
            self.positions[*where, key] = _position(event)
            entries[key] = self._value(next(self._events), (*where, key))
        return entries

    def _key(self, event: yaml.Event, where: Where, entries: Mapping[str, Any]) -> str | None:
        if not isinstance(event, yaml.ScalarEvent):
            self._value(event, (*where, ""))
            return self._add_fault("has a key that is not plain text", event, where)
        self._check_marks(event, (*where, event.value))
        if event.value == "<<" and event.implicit[0]:
            return self._add_fault(
                "is a merge key, which is not supported; repeat the settings", event, (*where, "<<")
            )
        if event.value in entries:
            return self._add_fault("is given twice; remove one of them", event, (*where, event.value))
        return event.value
