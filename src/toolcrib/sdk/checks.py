"""The rules of a tool definition: which contradictions are refused, and what falls short of a good one."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from toolcrib.model import Tool
from toolcrib.sdk.contradictions import CONTRADICTIONS
from toolcrib.sdk.shortfalls import ADVICE, SHORTFALLS

Rule = Callable[[Tool], Iterator[str]]

_NOT_HERE = "which is not there: define it first, or name one of another source as source:name"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong with a definition or falls short, and how to mend it."""

    rule: str
    message: str


class ToolDefinitionError(ValueError):
    """A tool cannot be defined like this; the message says how to mend it, `findings` say it one by one."""

    def __init__(self, message: str, findings: Iterable[Finding] = ()) -> None:
        super().__init__(message)
        self.findings = tuple(findings)


def contradictions(tool: Tool) -> list[Finding]:
    """Return what cannot be meant, whoever wrote the definition."""
    return _findings(CONTRADICTIONS, tool)


def shortfalls(tool: Tool) -> list[Finding]:
    """Return what a good definition has and this one lacks; `@tool` insists on it."""
    return _findings(SHORTFALLS, tool)


def advice(tool: Tool) -> list[Finding]:
    """Return what would make a definition better still; nobody insists on it."""
    return _findings(ADVICE, tool)


def unknown_replacements(tools: Iterable[Tool], among: Iterable[Tool] = ()) -> list[Finding]:
    """Return which of these tools name a replacement that is neither among them nor `among` the others.

    One of another source, `source:name`, is left to the catalog.
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
    """Raise everything that is to be mended at once: `more`, contradictions and, if strict, shortfalls."""
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
