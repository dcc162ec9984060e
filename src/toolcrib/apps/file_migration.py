"""Migrates tool definitions inside the text of a JSON file; `undo` restores them byte for byte."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import isfinite
from typing import Any, NoReturn

from toolcrib.apps.definition import definition_faults, duplicate_names
from toolcrib.apps.errors import DefinitionFault, first_faults
from toolcrib.apps.migration import ORIGINAL_FIELD, is_old, migrated, original_of
from toolcrib.model import Json, JsonObject

_WHITESPACE = re.compile(r"[ \t\r\n]*")
_BYTE_ORDER_MARK = "\ufeff"


class UnmigratableFile(ValueError):
    """A file that is left unchanged; `faults` state why."""

    def __init__(self, *faults: DefinitionFault) -> None:
        super().__init__("\n".join(map(str, faults)))
        self.faults = faults


@dataclass(frozen=True, slots=True)
class ToolMigration:
    """One migrated tool: its definition before and after."""

    path: str
    before: JsonObject
    after: JsonObject


@dataclass(frozen=True, slots=True)
class MigratedText:
    """The new text of a file, and its changes."""

    text: str
    changes: tuple[ToolMigration, ...]


@dataclass(frozen=True, slots=True)
class _ToolText:
    """One tool and its position in the text."""

    place: int
    start: int
    end: int
    value: Json

    @property
    def path(self) -> str:
        return f"tools[{self.place}]"


def migrate(text: str) -> MigratedText:
    """Convert every old tool to the new format, with its original text; the rest of the file is unchanged."""
    parts = list(_tools(text))
    old = [part for part in parts if is_old(part.value)]
    faults = [fault for part in old for fault in definition_faults(part.value, part.path)]
    if old and not faults:
        faults = list(duplicate_names([part.value for part in parts]))
    if faults:
        raise UnmigratableFile(*first_faults(faults))
    new = {part.place: migrated(part.value) for part in old}
    changes = tuple(ToolMigration(part.path, part.value, new[part.place]) for part in old)
    return MigratedText(_replaced(text, old, lambda part: _serialized(text, part, new[part.place])), changes)


def undo(text: str) -> MigratedText:
    """Restore every migrated tool from its original text."""
    parts = [part for part in _tools(text) if _is_migrated(part.value)]
    lost = [
        part for part in parts if not isinstance(part.value[ORIGINAL_FIELD], str) or _original(part) is None
    ]
    if lost:
        message = "is not what it was before, so it cannot be put back"
        paths = (f'{part.path}["{ORIGINAL_FIELD}"]' for part in lost)
        raise UnmigratableFile(*(DefinitionFault(path, message) for path in paths))
    changes = tuple(
        ToolMigration(part.path, _without_original(part), _original(part) or {}) for part in parts
    )
    return MigratedText(_replaced(text, parts, lambda part: part.value[ORIGINAL_FIELD]), changes)


def _is_migrated(value: Json) -> bool:
    return isinstance(value, dict) and ORIGINAL_FIELD in value


def _original(part: _ToolText) -> JsonObject | None:
    return original_of(part.value)


def _without_original(part: _ToolText) -> JsonObject:
    return {name: value for name, value in part.value.items() if name != ORIGINAL_FIELD}


def _replaced(text: str, parts: list[_ToolText], write: Callable[[_ToolText], str]) -> str:
    pieces: list[str] = []
    done = 0
    for part in parts:
        pieces += [text[done : part.start], write(part)]
        done = part.end
    return "".join([*pieces, text[done:]])


def _serialized(text: str, part: _ToolText, new: JsonObject) -> str:
    """Serialize a tool in the style of the file: one line or several, ASCII only or not."""
    was = text[part.start : part.end]
    ascii_only = text.isascii()
    if "\n" not in was:
        return json.dumps({**new, ORIGINAL_FIELD: was}, ensure_ascii=ascii_only)
    line = text[text.rfind("\n", 0, part.start) + 1 : part.start]
    inset = line[: len(line) - len(line.lstrip(" \t"))]
    migrated = json.dumps({**new, ORIGINAL_FIELD: was}, ensure_ascii=ascii_only, indent=2)
    return migrated.replace("\n", ("\r\n" if "\r\n" in was else "\n") + inset)


# --- scanner: positions of the tools


def _tools(text: str) -> Iterator[_ToolText]:
    start = _skip_whitespace(text, 1 if text.startswith(_BYTE_ORDER_MARK) else 0)
    _, end = _parse_value(text, start)
    if _skip_whitespace(text, end) != len(text):
        raise UnmigratableFile(
            DefinitionFault("file", f"is not JSON: something follows its value at character {end}")
        )
    if text[start] == "{":
        start = _tools_array(text, start)
    if text[start] != "[":
        raise UnmigratableFile(DefinitionFault("tools", "must be an array of tools"))
    for place, (first_character, last, value) in enumerate(_array_items(text, start)):
        yield _ToolText(place, first_character, last, value)


def _tools_array(text: str, at: int) -> int:
    """Return the position of the `tools` array in an object."""
    found: list[int] = []
    at = _skip_whitespace(text, at + 1)
    while text[at] != "}":
        name, at = _parse_value(text, at)
        start = _skip_whitespace(text, _skip_whitespace(text, at) + 1)
        if name == "tools":
            found.append(start)
        at = _after_separator(text, _parse_value(text, start)[1])
    if len(found) != 1:
        raise UnmigratableFile(
            DefinitionFault("tools", "is there twice" if found else "is not there: the file holds no tools")
        )
    return found[0]


def _array_items(text: str, at: int) -> Iterator[tuple[int, int, Json]]:
    at = _skip_whitespace(text, at + 1)
    while text[at] != "]":
        value, end = _parse_value(text, at)
        yield at, end, value
        at = _after_separator(text, end)


def _after_separator(text: str, end: int) -> int:
    """Skip the separator after a value; return the position of the next value or of the closing bracket."""
    at = _skip_whitespace(text, end)
    return _skip_whitespace(text, at + 1) if text[at] == "," else at


def _skip_whitespace(text: str, at: int) -> int:
    space = _WHITESPACE.match(text, at)
    return at if space is None else space.end()


def _parse_value(text: str, at: int) -> tuple[Json, int]:
    try:
        return _DECODER.raw_decode(text, at)
    except json.JSONDecodeError as fault:
        where = f"line {fault.lineno}, column {fault.colno}"
        raise UnmigratableFile(DefinitionFault("file", f"is not JSON: {fault.msg} at {where}")) from None
    except RecursionError:
        raise UnmigratableFile(DefinitionFault("file", "nests too deep to be a file of tools")) from None


def _reject_number(literal: str) -> NoReturn:
    raise UnmigratableFile(DefinitionFault("file", f"is not JSON: {literal[:20]} is no number there"))


def _finite_number(literal: str) -> Any:
    number = float(literal)
    return number if isfinite(number) else _reject_number(literal)


_DECODER = json.JSONDecoder(parse_constant=_reject_number, parse_float=_finite_number)
