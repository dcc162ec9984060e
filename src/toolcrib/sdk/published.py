"""Published tool definitions of a module, and the breaking changes since then."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from json import dumps, loads
from typing import Any, Literal, cast

from toolcrib.model import Json, JsonObject, Tool
from toolcrib.sdk.compatibility import SchemaChange, answers, changes

_SUCCESSOR = re.compile(r"(.+)-v(\d+)")
_READ_ONLY = ("query", "analysis")
_NUMBERS = re.compile(r"(\d+)\.(\d+)\.(\d+)(.*)")

_KEPT = frozenset({"inputSchema", "outputSchema", "category", "permissions", "aliases"})

Version = tuple[int, int, int, bool]


@dataclass(frozen=True, slots=True)
class CompatibilityBreach:
    """One finding about a published tool. Only level `short` fails a check."""

    level: Literal["short", "warning", "person"]
    tool: str
    message: str


class InvalidPublishedFile(ValueError):
    """The file of published definitions is invalid; the message states the fix."""


def read(text: str) -> JsonObject:
    """Parse the output of `write`: definitions by name and version."""
    try:
        found: Json = loads(text)
        tools = cast("Mapping[str, Any]", found)["tools"]
        if all(_is_sound(*each) for versions in tools.values() for each in versions.items()):
            return tools
    except (ValueError, TypeError, AttributeError, KeyError):
        pass  # reported below, with the fix
    raise InvalidPublishedFile(
        "it is not what `toolcrib check --publish` writes: take it from your history again"
    )


def _is_sound(version: str, kept: JsonObject) -> bool:
    _is_over(kept, date.min)
    return _NUMBERS.match(version) is not None and kept.keys() >= _KEPT


def write(tools: JsonObject) -> str:
    """Serialize published definitions, deterministically."""
    return dumps({"tools": tools}, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def publish(kept: JsonObject, tools: Iterable[Tool]) -> JsonObject:
    """Add the current definitions; other published names and versions are retained."""
    added = {name: dict(versions) for name, versions in kept.items()}
    for tool in tools:
        added.setdefault(tool.local, {})[tool.version] = entry(tool)
    return added


def entry(tool: Tool) -> dict[str, Any]:
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
            found += _vanished(name, versions[latest], names, today)
        else:
            found += _changed(tool, latest, versions[latest])
            found += _renamed(name, versions[latest], names)
    for tool in present.values():
        found += _succeeds(tool, present)
    return found


def _changed(tool: Tool, latest: str, before: JsonObject) -> Iterator[CompatibilityBreach]:
    name, old, new = tool.local, _version(latest), _version(tool.version)
    if new < old:
        yield CompatibilityBreach(
            "short", name, f"is version {tool.version}, and {latest} is published: go on from there"
        )
        return
    found = _differences(before, entry(tool))
    other, narrower = (_told(found, grade) for grade in ("other", "narrower"))
    if other:
        said = (
            f"offer it as {_next(name)} beside this one, and deprecate this one with that as its replacement"
        )
        yield CompatibilityBreach("short", name, f"cannot be called as it was ({other}): {said}")
    elif narrower and new[0] == old[0]:
        said = f"make it version {old[0] + 1}.0.0, or offer it as {_next(name)} beside this one"
        yield CompatibilityBreach("short", name, f"refuses what version {latest} took ({narrower}): {said}")
    elif found and new[:2] == old[:2]:
        said = f"make it at least version {old[0]}.{old[1] + 1}.0"
        yield CompatibilityBreach(
            "warning", name, f"is not what was published as {latest} ({_told(found)}): {said}"
        )


def _differences(before: JsonObject, now: JsonObject) -> list[SchemaChange]:
    found = list(changes(before["inputSchema"], now["inputSchema"]))
    promised, given = before.get("outputSchema"), now["outputSchema"]
    if promised is not None and given is not None:
        found += answers(promised, given)
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


def _vanished(name: str, before: JsonObject, names: set[str], today: date) -> Iterator[CompatibilityBreach]:
    if name in names or _is_over(before, today):
        return
    said = (
        f'give the tool that does its work aliases=["{name}"], or bring it back deprecated with a removalDate'
    )
    yield CompatibilityBreach("short", name, f"was published and is gone: {said}")


def _is_over(before: JsonObject, today: date) -> bool:
    day = cast("JsonObject", before.get("deprecated") or {}).get("removalDate")
    return isinstance(day, str) and date.fromisoformat(day) <= today


def _renamed(name: str, before: JsonObject, names: set[str]) -> Iterator[CompatibilityBreach]:
    lost = [alias for alias in before["aliases"] if alias not in names]
    if lost:
        yield CompatibilityBreach(
            "short", name, f"was known as {', '.join(lost)} too: keep that among its aliases"
        )


def _succeeds(tool: Tool, present: Mapping[str, Tool]) -> Iterator[CompatibilityBreach]:
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


def _next(name: str) -> str:
    found = _SUCCESSOR.fullmatch(name)
    return f"{name}-v2" if found is None else f"{found[1]}-v{int(found[2]) + 1}"


def _version(text: str) -> Version:
    """Return a sortable version; a pre-release sorts before its release."""
    found = _NUMBERS.match(text)
    if found is None:
        return (0, 0, 0, False)
    return (int(found[1]), int(found[2]), int(found[3]), not found[4].startswith("-"))


def _change(grade: Any, path: str, keyword: str, before: Json, after: Json) -> SchemaChange:
    return SchemaChange(grade=grade, path=path, keyword=keyword, before=before, after=after)


def _told(found: Iterable[SchemaChange], grade: str | None = None) -> str:
    return "; ".join(str(each) for each in found if grade in (None, each.grade))
