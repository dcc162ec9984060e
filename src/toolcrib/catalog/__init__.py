"""What tools there are, now: one immutable snapshot, replaced whole."""

from toolcrib.catalog.catalog import Catalog
from toolcrib.catalog.overrides import Override, Overrides
from toolcrib.catalog.snapshot import Snapshot, Withheld

__all__ = ["Catalog", "Override", "Overrides", "Snapshot", "Withheld"]
