"""Expands environment variables: `${NAME}`, `${NAME:-default}`, and `$${` as the escape for `${`."""

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
    """A document with its references expanded, and each value taken from the environment with its path."""

    values: dict[str, Any]
    taken: tuple[tuple[Where, str], ...]
    findings: tuple[Finding, ...]


def expand(values: Mapping[str, Any], env: Mapping[str, str]) -> Expanded:
    """Expand every reference; one that fails is a finding with the variable's name, never with a value."""
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
    """Escape a document, so that `expand` returns the original."""
    return rewrite(values, lambda _where, text: text.replace("${", "$${"))
