"""The arguments of a call as the log has them: without secrets, and cut to size."""

from collections.abc import Mapping
from typing import Any, cast

from toolcrib.model import JsonObject, Tool
from toolcrib.observe.call_entry import CallEntry, CallStart
from toolcrib.observe.lines import json_line
from toolcrib.observe.redact import Redactor

LONGEST = 2_048
"""About so many characters are written; what is beyond them is cut off, and said to be."""

_MOST_KEPT = 10_000
_DEEPEST = 32


class LoggedArguments:
    """Spells the arguments of calls. What is small and looks like nothing secret is not taken apart."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._hidden: dict[tuple[str, str], frozenset[str]] = {}

    def spell(self, start: CallStart | CallEntry) -> bytes:
        """Return them as JSON."""
        arguments = start.arguments
        assert arguments is not None  # noqa: S101 - for the type checker: callers look first
        if not self._secret_names(start.tool) and _may_be_small(arguments):
            encoded = json_line(arguments)[:-1]
            if len(encoded) <= LONGEST and self._redactor.is_plain(encoded.decode()):
                return encoded
        return json_line(self.clean(start))[:-1]

    def clean(self, start: CallStart | CallEntry) -> Any:
        """Return them without secrets, taken apart."""
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
    """Whether it is worth while to spell them as they are; stops looking as soon as it is not."""
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
    """Name the fields a schema calls secret: those that can only be written, and passwords."""
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
