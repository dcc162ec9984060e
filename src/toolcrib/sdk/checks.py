"""Validates tool definitions: contradictions are refused, shortfalls and advice are reported."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from toolcrib.model import Tool
from toolcrib.sdk.contradictions import CONTRADICTIONS
from toolcrib.sdk.shortfalls import ADVICE, SHORTFALLS

Rule = Callable[[Tool], Iterator[str]]

_NOT_HERE = "which is not there: define it first, or name one of another source as source:name"


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault or shortfall of a definition, and how to fix it."""

    rule: str
    message: str


class ToolDefinitionError(ValueError):
    """An invalid tool definition; the message states how to fix it, `findings` lists each fault."""

    def __init__(self, message: str, findings: Iterable[Finding] = ()) -> None:
        super().__init__(message)
        self.findings = tuple(findings)


def contradictions(tool: Tool) -> list[Finding]:
    """Return the contradictions in a definition, which are errors for every author."""
    return _findings(CONTRADICTIONS, tool)


def shortfalls(tool: Tool) -> list[Finding]:
    """Return what a good definition has and this one lacks; `@tool` requires it."""
    return _findings(SHORTFALLS, tool)


def advice(tool: Tool) -> list[Finding]:
    """Return optional improvements of a definition."""
    return _findings(ADVICE, tool)


def unknown_replacements(tools: Iterable[Tool], among: Iterable[Tool] = ()) -> list[Finding]:
    """Return a finding for each tool with a replacement that is neither in `tools` nor in `among`.

    Replacements in another source, `source:name`, are checked by the catalog.
    """
    asked = list(tools)
    known = {name for tool in (*asked, *among) for name in (tool.local, *tool.aliases)}
    return [
        Finding("deprecated", f"{tool.local} is to be replaced by {name}, {_NOT_HERE}")
        for tool in asked
        if tool.deprecated is not None and (name := tool.deprecated.replacement) is not None
        if ":" not in name and name not in known
    ]


def refuse(tool: Tool, more: Iterable[Finding] = (), *, strict: bool = False) -> None:
    """Raise all faults at once: `more`, contradictions and, if strict, shortfalls."""
    unread = list(more)
    found = [*unread, *contradictions(tool)]
    if strict:
        known = {each.rule for each in unread}
        found += [each for each in shortfalls(tool) if each.rule not in known]
    if found:
        raise ToolDefinitionError(f"tool {tool.local}: {_listed(found)}", found)


def _listed(found: list[Finding]) -> str:
    messages = list(dict.fromkeys(each.message for each in found))
    if len(messages) == 1:
        return messages[0]
    return "\n  - ".join((f"{len(messages)} things to mend", *messages))


def _findings(rules: Mapping[str, Rule], tool: Tool) -> list[Finding]:
    return [Finding(name, message) for name, rule in rules.items() for message in rule(tool)]
