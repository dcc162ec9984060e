"""Published tool definitions of a module, and the breaking changes since then."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from json import dumps, loads
from typing import Any, Literal, cast

from toolcrib.model import Json, JsonObject, Tool
from toolcrib.sdk.compatibility import SchemaChange, input_changes, output_changes

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
        found: Json = loads(text)
        tools = cast("Mapping[str, Any]", found)["tools"]
        if all(_check_entry(*each) for versions in tools.values() for each in versions.items()):
            return tools
    except (ValueError, TypeError, AttributeError, KeyError):
        pass  # reported below, with the fix
    raise InvalidPublishedFile(
        "it is not what `toolcrib check --publish` writes: take it from your history again"
    )


def _check_entry(version: str, kept: JsonObject) -> bool:
    _is_removed(kept, date.min)
    return _SEMANTIC_VERSION.match(version) is not None and kept.keys() >= _REQUIRED_KEYS


def serialize_published(tools: JsonObject) -> str:
    """Serialize published definitions, deterministically."""
    return dumps({"tools": tools}, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def publish(kept: JsonObject, tools: Iterable[Tool]) -> JsonObject:
    """Add the current definitions; other published names and versions are retained."""
    added = {name: dict(versions) for name, versions in kept.items()}
    for tool in tools:
        added.setdefault(tool.local, {})[tool.version] = published_entry(tool)
    return added


def published_entry(tool: Tool) -> dict[str, Any]:
    """Return the published part of a tool: all that its callers rely on."""
    said: dict[str, Any] = {
        "inputSchema": tool.input_schema,
        "outputSchema": tool.output_schema,
        "category": tool.category,
        "permissions": sorted(tool.permissions),
        "aliases": sorted(tool.aliases),
    }
    if tool.deprecated is not None:
        gone = tool.deprecated
        said["deprecated"] = {"replacement": gone.replacement, "removalDate": gone.removal_date}
    # Round trip through JSON, so that it can be compared with a parsed definition.
    return loads(dumps(said))


def compare(kept: JsonObject, tools: Iterable[Tool], today: date) -> list[CompatibilityBreach]:
    """Return the breaking changes since publication."""
    present = {tool.local: tool for tool in tools}
    names = {name for tool in present.values() for name in (tool.local, *tool.aliases)}
    found: list[CompatibilityBreach] = []
    for name, versions in sorted(kept.items()):
        latest = max(versions, key=_version)
        tool = present.get(name)
        if tool is None:
            found += _removal_breaches(name, versions[latest], names, today)
        else:
            found += _change_breaches(tool, latest, versions[latest])
            found += _alias_breaches(name, versions[latest], names)
    for tool in present.values():
        found += _successor_breaches(tool, present)
    return found


def _change_breaches(tool: Tool, latest: str, before: JsonObject) -> Iterator[CompatibilityBreach]:
    name, old, new = tool.local, _version(latest), _version(tool.version)
    if new < old:
        yield CompatibilityBreach(
            "short", name, f"is version {tool.version}, and {latest} is published: go on from there"
        )
        return
    found = _differences(before, published_entry(tool))
    other, narrower = (_joined_changes(found, grade) for grade in ("other", "narrower"))
    if other:
        said = f"offer it as {_successor_name(name)} beside this one, and deprecate this one with that as its replacement"
        yield CompatibilityBreach("short", name, f"cannot be called as it was ({other}): {said}")
    elif narrower and new[0] == old[0]:
        said = f"make it version {old[0] + 1}.0.0, or offer it as {_successor_name(name)} beside this one"
        yield CompatibilityBreach("short", name, f"refuses what version {latest} took ({narrower}): {said}")
    elif found and new[:2] == old[:2]:
        said = f"make it at least version {old[0]}.{old[1] + 1}.0"
        yield CompatibilityBreach(
            "warning", name, f"is not what was published as {latest} ({_joined_changes(found)}): {said}"
        )


def _differences(before: JsonObject, now: JsonObject) -> list[SchemaChange]:
    found = list(input_changes(before["inputSchema"], now["inputSchema"]))
    promised, given = before.get("outputSchema"), now["outputSchema"]
    if promised is not None and given is not None:
        found += output_changes(promised, given)
    elif promised is not given:
        grade = "wider" if promised is None else "narrower"
        found.append(_change(grade, "data", "schema", promised and "given", given and "given"))
    more = sorted(set(now["permissions"]) - set(before["permissions"]))
    less = sorted(set(before["permissions"]) - set(now["permissions"]))
    if more or less:
        grade = "narrower" if more else "wider"
        found.append(_change(grade, "permissions", "list", before["permissions"], now["permissions"]))
    if before["category"] != now["category"]:
        acts = before["category"] in _READ_ONLY and now["category"] not in _READ_ONLY
        grade = "other" if acts else "wider"
        found.append(_change(grade, "category", "kind", before["category"], now["category"]))
    return found


def _removal_breaches(
    name: str, before: JsonObject, names: set[str], today: date
) -> Iterator[CompatibilityBreach]:
    if name in names or _is_removed(before, today):
        return
    said = (
        f'give the tool that does its work aliases=["{name}"], or bring it back deprecated with a removalDate'
    )
    yield CompatibilityBreach("short", name, f"was published and is gone: {said}")


def _is_removed(before: JsonObject, today: date) -> bool:
    day = cast("JsonObject", before.get("deprecated") or {}).get("removalDate")
    return isinstance(day, str) and date.fromisoformat(day) <= today


def _alias_breaches(name: str, before: JsonObject, names: set[str]) -> Iterator[CompatibilityBreach]:
    lost = [alias for alias in before["aliases"] if alias not in names]
    if lost:
        yield CompatibilityBreach(
            "short", name, f"was known as {', '.join(lost)} too: keep that among its aliases"
        )


def _successor_breaches(tool: Tool, present: Mapping[str, Tool]) -> Iterator[CompatibilityBreach]:
    """Check that a tool `…-v2` is named as replacement by its predecessor, and describes the migration."""
    found = _SUCCESSOR.fullmatch(tool.local)
    if found is None:
        return
    stem, number = found[1], int(found[2])
    older = next((each for each in (f"{stem}-v{number - 1}", stem) if each in present), None)
    if older is None:
        return
    gone = present[older].deprecated
    if gone is None or gone.replacement is None or gone.replacement.rpartition(":")[2] != tool.local:
        yield CompatibilityBreach(
            "short", older, f'is followed by {tool.local}: deprecate it with replacement="{tool.local}"'
        )
    if older not in tool.description:
        said = f"tell how to move from {older}, in its description or in your notes on changes"
        yield CompatibilityBreach("person", tool.local, f"follows {older}: {said}")


def _successor_name(name: str) -> str:
    found = _SUCCESSOR.fullmatch(name)
    return f"{name}-v2" if found is None else f"{found[1]}-v{int(found[2]) + 1}"


def _version(text: str) -> Version:
    """Return a sortable version; a pre-release sorts before its release."""
    found = _SEMANTIC_VERSION.match(text)
    if found is None:
        return (0, 0, 0, False)
    return (int(found[1]), int(found[2]), int(found[3]), not found[4].startswith("-"))


def _change(grade: Any, path: str, keyword: str, before: Json, after: Json) -> SchemaChange:
    return SchemaChange(grade=grade, path=path, keyword=keyword, before=before, after=after)


def _joined_changes(found: Iterable[SchemaChange], grade: str | None = None) -> str:
    return "; ".join(str(each) for each in found if grade in (None, each.grade))
