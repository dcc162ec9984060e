"""Tool catalog: one immutable snapshot of all tools, replaced atomically."""

from toolcrib.catalog.catalog import MOST_TOOLS, Catalog
from toolcrib.catalog.overrides import Overrides, ToolOverride
from toolcrib.catalog.pins import Mode, PinChange, Seen, seal
from toolcrib.catalog.pseudo_tools import (
    BESIDE,
    DOORS,
    FOLLOW,
    GET,
    GET_COMPLETE,
    READ,
    READ_COMPLETE,
    SourceExtras,
)
from toolcrib.catalog.snapshot import Snapshot
from toolcrib.catalog.tool_entry import ExaminedTool, examine

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
