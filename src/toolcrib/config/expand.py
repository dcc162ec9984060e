"""References to the environment: `${NAME}`, `${NAME:-default}`, and `$${` for a plain `${`."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from toolcrib.config.document_tree import rewrite
from toolcrib.config.errors import Finding, Where

REFERENCE = re.compile(r"\$\$\{|\$\{(?:(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^{}]*))?\})?")

_SPELLINGS = "write ${NAME} or ${NAME:-default}, or $${ where a plain ${ is meant"


@dataclass(frozen=True, slots=True, kw_only=True)
class Expanded:
    """A document with its references filled in, and what came out of the environment where."""

    values: dict[str, Any]
    taken: tuple[tuple[Where, str], ...]
    findings: tuple[Finding, ...]


def expand(values: Mapping[str, Any], env: Mapping[str, str]) -> Expanded:
    """Fill in every reference; one that cannot be is a finding that names the variable, never a value."""
    filler = _Filler(env)
    filled = rewrite(values, filler.text)
    return Expanded(values=filled, taken=tuple(filler.taken), findings=tuple(filler.findings))


class _Filler:
    def __init__(self, env: Mapping[str, str]) -> None:
        self.taken: list[tuple[Where, str]] = []
        self.findings: list[Finding] = []
        self._env = env

    def text(self, where: Where, text: str) -> str:
        if "${" not in text:
            return text
        return REFERENCE.sub(lambda match: self._filled(where, match), text)

    def _filled(self, where: Where, match: re.Match[str]) -> str:
        if match["name"] is None:
            if match[0] == "${":
                self.findings.append((where, f"has a reference that cannot be read; {_SPELLINGS}"))
            return "${"
        given = self._env.get(match["name"])
        if given:
            self.taken.append((where, given))
            return given
        if given is None and match["default"] is None:
            self.findings.append((where, f"needs the variable {match['name']}, which is not set"))
        return match["default"] or ""


def escape(values: Any) -> Any:
    """Spell a document so that expanding it gives it back, whatever its texts hold."""
    return rewrite(values, lambda _where, text: text.replace("${", "$${"))
