"""Run-time changes, of the config's own shape, under the operator's file, which wins and is never written."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

import yaml

from toolcrib.config.faults import Finding
from toolcrib.config.secrets import mask
from toolcrib.config.tree import depth
from toolcrib.config.yaml import DEEPEST, scalar
from toolcrib.model import JsonObject

_CHANGEABLE = frozenset({"contexts", "overrides", "pins"})


def merge(file: JsonObject, overlay: JsonObject) -> dict[str, Any]:
    """Merge the overlay after the file. Where both say something the file wins; a list is one thing."""
    merged = _under(file, overlay)
    ours = file.get("overrides")
    if isinstance(ours, Mapping) and isinstance(overlay.get("overrides"), Mapping):
        # A later override goes over an earlier one, so what the file says about a tool comes last.
        overrides = cast("JsonObject", merged["overrides"])
        added = {pattern: override for pattern, override in overrides.items() if pattern not in ours}
        merged["overrides"] = {**added, **overrides}
    return merged


def _under(file: JsonObject, overlay: JsonObject) -> dict[str, Any]:
    merged = dict(file)
    for key, value in overlay.items():
        if key not in file:
            merged[key] = value
        elif isinstance(file[key], Mapping) and isinstance(value, Mapping):
            merged[key] = _under(file[key], cast("JsonObject", value))
    return merged


def foreign(overlay: JsonObject) -> Iterator[Finding]:
    """Find what an overlay may not hold: settings that only the operator's file decides."""
    if depth(overlay, DEEPEST + 1) > DEEPEST:
        yield (), f"is nested more than {DEEPEST} levels deep"
        return
    for key, value in overlay.items():
        if key in _CHANGEABLE:
            continue
        inner = cast("JsonObject", value) if key == "mcp" and isinstance(value, Mapping) else {"": value}
        for part in inner:
            if part != "servers":
                yield (
                    (key, part) if part else (key,),
                    "cannot be changed while running; change it in the config file",
                )


def export(raw: JsonObject) -> str:
    """Spell a merged document as a config file: references as they are written, other secrets covered."""
    return yaml.dump(mask(raw), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)


class _Dumper(yaml.SafeDumper):
    """Writes what our reader reads: no aliases, and quotes around all that would not come back as text."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = '"' if not isinstance(scalar(text), str) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)  # pyright: ignore[reportUnknownMemberType]


_Dumper.add_representer(str, _text)
