"""Parses docstrings in Google or Sphinx style: the description, and the text per parameter."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

_SECTION = re.compile(r"(Args|Arguments|Parameters|Raises|Yields):|(Returns?):.*")
_ENTRY = re.compile(r"(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)")
_MARK = re.compile(r":(\w+)(?:\s+([^:]*))?:\s*(.*)")
_ARGS = frozenset({"Args", "Arguments", "Parameters", "param", "parameter", "arg", "argument"})
_RETURNS = frozenset({"Return", "Returns", "return", "returns"})


@dataclass(frozen=True, slots=True)
class Docstring:
    """A parsed docstring: description, and text per parameter."""

    description: str
    parameters: Mapping[str, str]


@dataclass(slots=True)
class _Reader:
    """Line parser: appends each line to the current section, `into`."""

    text: list[str] = field(default_factory=list[str])
    returns: list[str] = field(default_factory=list[str])
    parameters: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    into: list[str] = field(default_factory=list[str])
    listing: bool = False
    """Whether the current section lists parameters."""
    depth: int = 0
    """Indentation of its entries; 0 before the first."""

    def take(self, line: str) -> None:
        """Parse the next line."""
        indent = len(line) - len(line.lstrip())
        entry = _ENTRY.fullmatch(line.strip()) if self.listing else None
        if line and not indent:
            self.open(line)
        elif entry is not None and self.depth in (0, indent):
            self.depth = indent
            self.into = self.parameters.setdefault(entry[1], [])
            self.into.append(entry[2])
        else:
            self.into.append(line)

    def open(self, line: str) -> None:
        """Parse a line without indentation: it starts a section, or continues the text."""
        mark, section = _MARK.fullmatch(line), _SECTION.fullmatch(line)
        self.listing, self.depth = False, 0
        if mark is not None:
            word, name, rest = mark.groups()
            self.into = self._place(word, (name or "").split(" ")[-1])
            self.into.append(rest)
        elif section is not None:
            word, _, rest = line.partition(":")
            self.into, self.listing = self._place(word), word in _ARGS
            self.into.append(rest)
        else:
            self.into = self.text
            self.into.append(line)

    def _place(self, word: str, name: str = "") -> list[str]:
        if word in _RETURNS:
            return self.returns
        return self.parameters.setdefault(name, []) if word in _ARGS and name else []


def read_docstring(text: str) -> Docstring:
    """Parse a docstring with cleaned indentation, in Google or Sphinx style.

    The return value stays in the description, as agents need it.
    """
    reader = _Reader()
    for line in text.splitlines():
        reader.take(line)
    said = re.sub(r"\n{3,}", "\n\n", "\n".join(reader.text).strip())
    returns = _joined(reader.returns)
    whole = f"{said}\n\nReturns: {returns}".strip() if returns else said
    named = {name: _joined(lines) for name, lines in reader.parameters.items()}
    return Docstring(whole, {name: words for name, words in named.items() if words})


def _joined(lines: list[str]) -> str:
    return " ".join(" ".join(lines).split())
