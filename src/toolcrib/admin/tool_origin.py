"""Describes the origin of a tool, and how the served definition differs from the source's."""

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

from toolcrib.catalog import Catalog, ToolOverride
from toolcrib.interfaces import SourceState
from toolcrib.model import JsonObject, Tool

_TOLD = ("transport", "era", "revision", "server_name", "server_version")
_SPELLED = {"description": "description", "title": "title"}


def origin(tool: Tool, catalog: Catalog, state: SourceState | None) -> dict[str, Any]:
    """Return a tool's source, how it is connected, and whether its definition is the trusted one."""
    details: Mapping[str, Any] = {} if state is None else state.details
    pin = catalog.snapshot.changed.get(tool.name)
    return {
        "source": tool.source,
        "family": tool.family,
        "state": None if state is None else state.state,
        "degraded": tool.degraded,
        **{key: details[key] for key in _TOLD if details.get(key)},
        **({} if pin is None else {"pin": {"trusted": pin.trusted, "now": pin.seal, "mode": pin.mode}}),
    }


def changes(tool: Tool, catalog: Catalog) -> Iterator[str]:
    """Yield every difference between the served tool and its source's definition."""
    yield from catalog.snapshot.repaired.get(tool.name, ())
    for pattern in catalog.overrides.matching(tool):
        yield f"the override {pattern} sets {', '.join(_set(catalog.overrides.overrides[pattern]))}"
    definition = catalog.definition(tool.name)
    if definition is not None:
        yield from _differences(tool, definition)


def _set(override: ToolOverride) -> list[str]:
    return [each.name for each in fields(override) if getattr(override, each.name) is not None]


def _differences(tool: Tool, definition: JsonObject) -> Iterator[str]:
    for key, name in _SPELLED.items():
        given = definition.get(key)
        if given is not None and given != getattr(tool, name):
            yield f"its {key} is not the server's own"
    if tool.expose_as is not None:
        yield f"it is exposed as {tool.expose_as}"
