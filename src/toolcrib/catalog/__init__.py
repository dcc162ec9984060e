"""What tools there are, now: one immutable snapshot, replaced whole."""

from toolcrib.catalog.catalog import MOST_TOOLS, Catalog
from toolcrib.catalog.overrides import Override, Overrides
from toolcrib.catalog.pins import Mode, PinChange, Seen, seal
from toolcrib.catalog.pseudo_tools import (
    BESIDE,
    DOORS,
    FOLLOW,
    GET,
    GET_COMPLETE,
    READ,
    READ_COMPLETE,
    Holding,
)
from toolcrib.catalog.snapshot import Snapshot
from toolcrib.catalog.tool_entry import Examined, examine

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
    "Examined",
    "Holding",
    "Mode",
    "Override",
    "Overrides",
    "PinChange",
    "Seen",
    "Snapshot",
    "examine",
    "seal",
]
