"""Tool catalog: one immutable snapshot of all tools, replaced atomically."""

from toolcrib.catalog.catalog import MOST_TOOLS, Catalog, Snapshot
from toolcrib.catalog.entries import (
    BESIDE,
    DOORS,
    FOLLOW,
    GET,
    GET_COMPLETE,
    READ,
    READ_COMPLETE,
    ExaminedTool,
    Overrides,
    SourceExtras,
    ToolOverride,
    examine,
)
from toolcrib.catalog.pins import Mode, PinChange, Seen, seal

__all__ = [
    "BESIDE",
    "DOORS",
    "FOLLOW",
    "GET",
    "GET_COMPLETE",
    "MOST_TOOLS",
    "READ",
    "READ_COMPLETE",
    "Catalog",
    "ExaminedTool",
    "Mode",
    "Overrides",
    "PinChange",
    "Seen",
    "Snapshot",
    "SourceExtras",
    "ToolOverride",
    "examine",
    "seal",
]
