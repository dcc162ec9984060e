"""Call arguments for the log: redacted and truncated."""

from collections.abc import Mapping
from typing import Any, cast

from toolcrib.model import JsonObject, Tool
from toolcrib.observe.call_entry import CallEntry, CallStart
from toolcrib.observe.lines import json_line
from toolcrib.observe.redact import Redactor

LONGEST = 2_048
"""Approximate maximum of logged characters; longer arguments are truncated, with a marker."""

_MOST_KEPT = 10_000
_DEEPEST = 32


class LoggedArguments:
    """Serializes call arguments. Small ones without a sign of a secret skip the redaction of each value."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._hidden: dict[tuple[str, str], frozenset[str]] = {}

    def spell(self, start: CallStart | CallEntry) -> bytes:
        """Return redacted arguments as JSON."""
        arguments = start.arguments
        assert arguments is not None  # noqa: S101 - for the type checker: callers look first
        if not self._secret_names(start.tool) and _may_be_small(arguments):
            encoded = json_line(arguments)[:-1]
            if len(encoded) <= LONGEST and self._redactor.is_plain(encoded.decode()):
                return encoded
        return json_line(self.clean(start))[:-1]

    def clean(self, start: CallStart | CallEntry) -> Any:
        """Return redacted arguments as a JSON value."""
        return self._redactor.clean(start.arguments, room=LONGEST, hidden=self._secret_names(start.tool))

    def _secret_names(self, tool: Tool) -> frozenset[str]:
        key = (tool.name, tool.fingerprint)
        names = self._hidden.get(key)
        if names is None:
            if len(self._hidden) >= _MOST_KEPT:
                self._hidden.clear()
            names = self._hidden[key] = frozenset(_hidden_in(tool.input_schema, _DEEPEST))
        return names


def _may_be_small(arguments: JsonObject) -> bool:
    """Whether the arguments may fit the limit as they are; stops counting as soon as they do not."""
    room = LONGEST
    for value in arguments.values():
        if type(value) is not str:
            return _may_be_small_inside(arguments)
        room -= len(value)
    return room >= len(arguments)


def _may_be_small_inside(arguments: JsonObject) -> bool:
    room, nested = LONGEST, list[JsonObject | list[Any]]((arguments,))
    for value in nested:  # grows as it is walked
        parts = value if isinstance(value, list) else value.values()
        room -= len(parts)
        if room < 0:
            return False
        for part in parts:
            if isinstance(part, str):
                room -= len(part)
            elif isinstance(part, dict | list):
                nested.append(cast("JsonObject | list[Any]", part))
    return room >= 0


def _hidden_in(schema: object, depth: int) -> set[str]:
    """Return the field names a schema declares secret: `writeOnly`, or `format: password`."""
    found: set[str] = set()
    if depth == 0:
        return found
    if isinstance(schema, list):
        return found.union(*(_hidden_in(each, depth - 1) for each in cast("list[object]", schema)))
    if not isinstance(schema, Mapping):
        return found
    for word, part in cast("Mapping[str, object]", schema).items():
        if word == "properties" and isinstance(part, Mapping):
            fields = cast("Mapping[str, object]", part)
            found |= {name for name, field in fields.items() if _is_secret(field)}
            found = found.union(*(_hidden_in(field, depth - 1) for field in fields.values()))
        else:
            found |= _hidden_in(part, depth - 1)
    return found


def _is_secret(field: object) -> bool:
    if not isinstance(field, Mapping):
        return False
    said = cast("Mapping[str, object]", field)
    return said.get("writeOnly") is True or said.get("format") == "password"
