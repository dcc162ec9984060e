"""Config errors with file, line and path; messages never contain values."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

Where = tuple[str | int, ...]
"""The path of a value: mapping keys and list indices."""

Finding = tuple[Where, str]
"""A path and a message, not yet located in a file."""

_BARE_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_MAX_KEY_CHARACTERS = 80
_MAX_SHOWN_FAULTS = 100


class FilePosition(NamedTuple):
    """A line and a column of a file, both 1-based."""

    line: int
    column: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigFault:
    """One error or warning about the config."""

    message: str
    where: Where = ()
    file: str = ""
    position: FilePosition | None = None

    @property
    def path(self) -> str:
        """The path in the document, formatted for operators."""
        return format_path(self.where)

    def __str__(self) -> str:
        file = self.file if self.position is None else f"{self.file}:{self.position.line}"
        head = " ".join(part for part in (file, self.path) if part)
        return f"{head}: {self.message}" if head else self.message


class ConfigError(Exception):
    """The config is invalid. Carries all faults, not just the first."""

    def __init__(self, faults: Iterable[ConfigFault]) -> None:
        self.faults = tuple(faults)
        lines = [str(fault) for fault in self.faults[:_MAX_SHOWN_FAULTS]]
        if len(self.faults) > _MAX_SHOWN_FAULTS:
            lines.append(f"… and {len(self.faults) - _MAX_SHOWN_FAULTS} more")
        super().__init__("\n".join(lines))


def format_path(where: Where) -> str:
    """Format a path: `contexts.support.tools[0]`, `overrides["local:*"].cache_ttl`."""
    path = ""
    for part in where:
        if isinstance(part, int):
            path += f"[{part}]"
        elif _BARE_KEY.fullmatch(part) and len(part) <= _MAX_KEY_CHARACTERS:
            path += f".{part}" if path else part
        else:
            cut = part if len(part) <= _MAX_KEY_CHARACTERS else part[:_MAX_KEY_CHARACTERS] + "…"
            path += f"[{json.dumps(cut, ensure_ascii=not cut.isprintable())}]"
    return path
