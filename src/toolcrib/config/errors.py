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

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_LONGEST_KEY = 80
_MOST_SHOWN = 100


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
    place: FilePosition | None = None

    @property
    def path(self) -> str:
        """The path in the document, formatted for operators."""
        return spell(self.where)

    def __str__(self) -> str:
        file = self.file if self.place is None else f"{self.file}:{self.place.line}"
        head = " ".join(part for part in (file, self.path) if part)
        return f"{head}: {self.message}" if head else self.message


class ConfigError(Exception):
    """The config is invalid. Carries all faults, not just the first."""

    def __init__(self, faults: Iterable[ConfigFault]) -> None:
        self.faults = tuple(faults)
        lines = [str(fault) for fault in self.faults[:_MOST_SHOWN]]
        if len(self.faults) > _MOST_SHOWN:
            lines.append(f"… and {len(self.faults) - _MOST_SHOWN} more")
        super().__init__("\n".join(lines))


def spell(where: Where) -> str:
    """Format a path: `contexts.support.tools[0]`, `overrides["local:*"].cache_ttl`."""
    spelled = ""
    for part in where:
        if isinstance(part, int):
            spelled += f"[{part}]"
        elif _PLAIN.fullmatch(part) and len(part) <= _LONGEST_KEY:
            spelled += f".{part}" if spelled else part
        else:
            cut = part if len(part) <= _LONGEST_KEY else part[:_LONGEST_KEY] + "…"
            spelled += f"[{json.dumps(cut, ensure_ascii=not cut.isprintable())}]"
    return spelled
