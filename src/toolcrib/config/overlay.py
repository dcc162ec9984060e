"""The run-time overlay: changes in config format, merged under the file, which wins and is never written."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

import yaml

from toolcrib.config.document_tree import at, depth
from toolcrib.config.errors import Finding
from toolcrib.config.secrets import mask
from toolcrib.config.server_checks import SERVERS, same_id
from toolcrib.config.yaml import DEEPEST, scalar
from toolcrib.interfaces import GIVERS
from toolcrib.model import AddressGiver, JsonObject

# Unquoted, YAML readers normalize these to plain line breaks.
_OTHER_BREAKS = re.compile("[\x85\u2028\u2029]")
CHANGEABLE = frozenset({"contexts", "overrides", "pins"})


def without_givers(overlay: JsonObject) -> tuple[JsonObject, Mapping[str, AddressGiver]]:
    """Split a stored overlay into its settings and the giver of each server."""
    givers = overlay.get(GIVERS)
    if not isinstance(givers, Mapping):
        return overlay, {}
    settings = {key: value for key, value in overlay.items() if key != GIVERS}
    return settings, cast("Mapping[str, AddressGiver]", givers)


def merge(file: JsonObject, overlay: JsonObject) -> dict[str, Any]:
    """Deep-merge the overlay under the file. On a conflict the file wins; a list is not merged.

    Nor is a server: a run-time change must not alter how a server of the file is started.
    """
    if servers := _servers(overlay):
        rest = {name: servers[name] for name in added(file, overlay)}
        overlay = {**overlay, "mcp": {**overlay["mcp"], "servers": rest}}
    merged = _under(file, overlay)
    ours = file.get("overrides")
    if isinstance(ours, Mapping) and isinstance(overlay.get("overrides"), Mapping):
        # Later overrides take precedence over earlier ones, so those of the file come last.
        overrides = cast("JsonObject", merged["overrides"])
        fresh = {pattern: override for pattern, override in overrides.items() if pattern not in ours}
        merged["overrides"] = {**fresh, **overrides}
    return merged


def _under(file: JsonObject, overlay: JsonObject) -> dict[str, Any]:
    merged = dict(file)
    for key, value in overlay.items():
        if key not in file:
            merged[key] = value
        elif isinstance(file[key], Mapping) and isinstance(value, Mapping):
            merged[key] = _under(file[key], cast("JsonObject", value))
    return merged


def added(file: JsonObject, overlay: JsonObject) -> tuple[str, ...]:
    """Return the names of the servers that are only in the overlay."""
    known = {same_id(name) for name in _servers(file)}
    return tuple(name for name in _servers(overlay) if same_id(name) not in known)


def shadowed(file: JsonObject, overlay: JsonObject) -> Iterator[Finding]:
    """Yield a warning for each server of the file that shadows one of the overlay."""
    known = {same_id(name) for name in _servers(overlay)}
    for name in _servers(file):
        if same_id(name) in known:
            yield (*SERVERS, name), "was added while running as well; what the file says is used"


def _servers(document: JsonObject) -> JsonObject:
    servers = at(document, SERVERS)
    return cast("JsonObject", servers) if isinstance(servers, Mapping) else {}


def foreign(overlay: JsonObject) -> Iterator[Finding]:
    """Yield the settings that an overlay must not contain: only the config file may set them."""
    if depth(overlay, DEEPEST + 1) > DEEPEST:
        yield (), f"is nested more than {DEEPEST} levels deep"
        return
    for key, value in overlay.items():
        if key in CHANGEABLE:
            continue
        inner = cast("JsonObject", value) if key == "mcp" and isinstance(value, Mapping) else {"": value}
        for part in inner:
            if part != "servers":
                yield (
                    (key, part) if part else (key,),
                    "cannot be changed while running; change it in the config file",
                )


def export(raw: JsonObject) -> str:
    """Serialize a merged document as a config file: references unexpanded, other secrets masked."""
    return dump(mask(raw))


def dump(document: JsonObject) -> str:
    """Serialize a document as a config file, without masking."""
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)


class _Dumper(yaml.SafeDumper):
    """YAML dumper for our own parser: no aliases, and quotes around text that would parse as another type."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    misread = not isinstance(scalar(text), str) or _OTHER_BREAKS.search(text)
    style = '"' if misread else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)  # pyright: ignore[reportUnknownMemberType]


_Dumper.add_representer(str, _text)
