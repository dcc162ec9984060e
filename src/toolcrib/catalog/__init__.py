"""Tool catalog: one immutable snapshot of all tools, replaced atomically."""

from toolcrib.catalog.catalog import MAX_CATALOG_TOOLS, Catalog, Snapshot
from toolcrib.catalog.entries import (
    PROMPTS_COMPLETE,
    PROMPTS_GET,
    PSEUDO_TOOL_NAMES,
    PSEUDO_TOOLS,
    RESOURCES_COMPLETE,
    RESOURCES_READ,
    RESOURCES_SUBSCRIBE,
    ExaminedTool,
    Overrides,
    SourceExtras,
    ToolOverride,
    examine,
)
from toolcrib.catalog.pins import PersistPins, PinChange, PinMode, seal

__all__ = [
    "MAX_CATALOG_TOOLS",
    "PROMPTS_COMPLETE",
    "PROMPTS_GET",
    "PSEUDO_TOOLS",
    "PSEUDO_TOOL_NAMES",
    "RESOURCES_COMPLETE",
    "RESOURCES_READ",
    "RESOURCES_SUBSCRIBE",
    "Catalog",
    "ExaminedTool",
    "Overrides",
    "PersistPins",
    "PinChange",
    "PinMode",
    "Snapshot",
    "SourceExtras",
    "ToolOverride",
    "examine",
    "seal",
]
