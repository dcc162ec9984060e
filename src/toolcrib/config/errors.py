"""What is wrong with a config, and where: file, line and path, without ever showing a value."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

Where = tuple[str | int, ...]
"""The way to a value: keys and places in lists."""

Finding = tuple[Where, str]
"""Something wrong at a place, before it is known which file and line that is."""

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_LONGEST_KEY = 80
_MOST_SHOWN = 100


class FilePosition(NamedTuple):
    """A line and a column of a file, both counted from one."""

    line: int
    column: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigFault:
    """One thing that is wrong, or that an operator should know."""

    message: str
    where: Where = ()
    file: str = ""
    place: FilePosition | None = None

    @property
    def path(self) -> str:
        """Where in the document it is, as operators read it."""
        return spell(self.where)

    def __str__(self) -> str:
        file = self.file if self.place is None else f"{self.file}:{self.place.line}"
        head = " ".join(part for part in (file, self.path) if part)
        return f"{head}: {self.message}" if head else self.message


class ConfigError(Exception):
    """The config cannot be used. Carries every fault there is, not just the first."""

    def __init__(self, faults: Iterable[ConfigFault]) -> None:
        self.faults = tuple(faults)
        lines = [str(fault) for fault in self.faults[:_MOST_SHOWN]]
        if len(self.faults) > _MOST_SHOWN:
            lines.append(f"… and {len(self.faults) - _MOST_SHOWN} more")
        super().__init__("\n".join(lines))


def spell(where: Where) -> str:
    """Spell a path: `contexts.support.tools[0]`, `overrides["local:*"].cache_ttl`."""
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
