"""Published tool definitions of a module, and the breaking changes since then."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from json import dumps, loads
from typing import Any, Literal, cast

from toolcrib.model import Json, JsonObject, Tool
from toolcrib.sdk.compatibility import Grade, SchemaChange, input_changes, output_changes

_SUCCESSOR = re.compile(r"(.+)-v(\d+)")
_READ_ONLY = ("query", "analysis")
_SEMANTIC_VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+)(.*)")

_REQUIRED_KEYS = frozenset({"inputSchema", "outputSchema", "category", "permissions", "aliases"})

Version = tuple[int, int, int, bool]


@dataclass(frozen=True, slots=True)
class CompatibilityBreach:
    """One finding about a published tool. Only level `short` fails a check."""

    level: Literal["short", "warning", "person"]
    tool: str
    message: str


class InvalidPublishedFile(ValueError):
    """The file of published definitions is invalid; the message states the fix."""


def parse_published(text: str) -> JsonObject:
    """Parse the output of `write`: definitions by name and version."""
    try:
        parsed: Json = loads(text)
        tools = cast("Mapping[str, Any]", parsed)["tools"]
        if all(_is_valid_entry(*each) for versions in tools.values() for each in versions.items()):
            return tools
    except (ValueError, TypeError, AttributeError, KeyError):
        pass  # reported below, with the fix
    raise InvalidPublishedFile(
        "it is not a file that `toolcrib check --publish` wrote: restore it from version control"
    )


def _is_valid_entry(version: str, published: JsonObject) -> bool:
    _is_removed(published, date.min)
    return _SEMANTIC_VERSION.match(version) is not None and published.keys() >= _REQUIRED_KEYS


def serialize_published(tools: JsonObject) -> str:
    """Serialize published definitions, deterministically."""
    return dumps({"tools": tools}, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def publish(published_tools: JsonObject, tools: Iterable[Tool]) -> JsonObject:
    """Add the current definitions; other published names and versions are retained."""
    added = {name: dict(versions) for name, versions in published_tools.items()}
    for tool in tools:
        added.setdefault(tool.local, {})[tool.version] = published_entry(tool)
    return added


def published_entry(tool: Tool) -> dict[str, Any]:
    """Return the published part of a tool: all that its callers rely on."""
    entry: dict[str, Any] = {
        "inputSchema": tool.input_schema,
        "outputSchema": tool.output_schema,
        "category": tool.category,
        "permissions": sorted(tool.permissions),
        "aliases": sorted(tool.aliases),
    }
    if tool.deprecated is not None:
        entry["deprecated"] = {
            "replacement": tool.deprecated.replacement,
            "removalDate": tool.deprecated.removal_date,
        }
    # Round trip through JSON, so that it can be compared with a parsed definition.
    return loads(dumps(entry))


def compare(published_tools: JsonObject, tools: Iterable[Tool], today: date) -> list[CompatibilityBreach]:
    """Return the breaking changes since publication."""
    present = {tool.local: tool for tool in tools}
    names = {name for tool in present.values() for name in (tool.local, *tool.aliases)}
    breaches: list[CompatibilityBreach] = []
    for name, versions in sorted(published_tools.items()):
        latest = max(versions, key=_version)
        tool = present.get(name)
        if tool is not None:
            breaches += _change_breaches(tool, latest, versions[latest])
            breaches += _alias_breaches(name, versions[latest], names)
        elif name not in names and not _is_removed(versions[latest], today):
            fix = f'add aliases=["{name}"] to its successor, or restore it, deprecated with a removalDate'
            breaches.append(CompatibilityBreach("short", name, f"was published and is missing: {fix}"))
    for tool in present.values():
        breaches += _successor_breaches(tool, present)
    return breaches


def _change_breaches(tool: Tool, latest: str, before: JsonObject) -> Iterator[CompatibilityBreach]:
    name, old, new = tool.local, _version(latest), _version(tool.version)
    if new < old:
        message = f"is version {tool.version}, but {latest} is published: use a later version"
        yield CompatibilityBreach("short", name, message)
        return
    differences = _differences(before, published_entry(tool))
    other, narrower = (_joined_changes(differences, grade) for grade in ("other", "narrower"))
    if other:
        fix = f"add it as {_successor_name(name)}, and deprecate this one with that replacement"
        yield CompatibilityBreach("short", name, f"cannot be called as version {latest} ({other}): {fix}")
    elif narrower and new[0] == old[0]:
        fix = f"make it version {old[0] + 1}.0.0, or add it as {_successor_name(name)}"
        message = f"is not backward compatible with version {latest} ({narrower}): {fix}"
        yield CompatibilityBreach("short", name, message)
    elif differences and new[:2] == old[:2]:
        fix = f"make it at least version {old[0]}.{old[1] + 1}.0"
        message = f"differs from published version {latest} ({_joined_changes(differences)}): {fix}"
        yield CompatibilityBreach("warning", name, message)


def _differences(before: JsonObject, now: JsonObject) -> list[SchemaChange]:
    changes = list(input_changes(_closed_like(now["inputSchema"], before["inputSchema"]), now["inputSchema"]))
    old, new = before.get("outputSchema"), now["outputSchema"]
    if old is not None and new is not None:
        changes += output_changes(old, new)
    elif old is not new:
        grade: Grade = "wider" if old is None else "narrower"
        changes.append(SchemaChange(grade, "data", "schema", old and "given", new and "given"))
    added = sorted(set(now["permissions"]) - set(before["permissions"]))
    removed = sorted(set(before["permissions"]) - set(now["permissions"]))
    if added or removed:
        grade = "narrower" if added else "wider"
        changes.append(SchemaChange(grade, "permissions", "list", before["permissions"], now["permissions"]))
    if before["category"] != now["category"]:
        loses_read_only = before["category"] in _READ_ONLY and now["category"] not in _READ_ONLY
        grade = "other" if loses_read_only else "wider"
        changes.append(SchemaChange(grade, "category", "kind", before["category"], now["category"]))
    return changes


def _closed_like(now: JsonObject, before: JsonObject) -> JsonObject:
    """Close a schema that an earlier version of Toolcrib left open, if it is closed now.

    Arguments that a function does not name have never reached it, so refusing them is no change of the tool.
    """
    return {"additionalProperties": False, **before} if now.get("additionalProperties") is False else before


def _is_removed(before: JsonObject, today: date) -> bool:
    day = cast("JsonObject", before.get("deprecated") or {}).get("removalDate")
    return isinstance(day, str) and date.fromisoformat(day) <= today


def _alias_breaches(name: str, before: JsonObject, names: set[str]) -> Iterator[CompatibilityBreach]:
    lost = [alias for alias in before["aliases"] if alias not in names]
    if lost:
        message = f"has lost the alias {', '.join(lost)}: restore it in aliases"
        yield CompatibilityBreach("short", name, message)


def _successor_breaches(tool: Tool, present: Mapping[str, Tool]) -> Iterator[CompatibilityBreach]:
    """Check that a tool `…-v2` is named as replacement by its predecessor, and describes the migration."""
    successor = _SUCCESSOR.fullmatch(tool.local)
    if successor is None:
        return
    stem, number = successor[1], int(successor[2])
    older = next((each for each in (f"{stem}-v{number - 1}", stem) if each in present), None)
    if older is None:
        return
    deprecated = present[older].deprecated
    replacement = "" if deprecated is None else deprecated.replacement or ""
    if replacement.rpartition(":")[2] != tool.local:
        message = f'has the successor {tool.local}: deprecate it with replacement="{tool.local}"'
        yield CompatibilityBreach("short", older, message)
    if older not in tool.description:
        fix = f"describe the migration from {older} in its description or in your release notes"
        yield CompatibilityBreach("person", tool.local, f"succeeds {older}: {fix}")


def _successor_name(name: str) -> str:
    match = _SUCCESSOR.fullmatch(name)
    return f"{name}-v2" if match is None else f"{match[1]}-v{int(match[2]) + 1}"


def _version(text: str) -> Version:
    """Return a sortable version; a pre-release sorts before its release."""
    match = _SEMANTIC_VERSION.match(text)
    if match is None:
        return (0, 0, 0, False)
    return (int(match[1]), int(match[2]), int(match[3]), not match[4].startswith("-"))


def _joined_changes(changes: Iterable[SchemaChange], grade: str | None = None) -> str:
    return "; ".join(str(each) for each in changes if grade in (None, each.grade))
