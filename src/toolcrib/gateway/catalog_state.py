"""The cache of everything that is derived from one snapshot of the catalog."""

from dataclasses import dataclass, field
from typing import Any, TypeVar

from toolcrib.catalog import Snapshot
from toolcrib.gateway.author_actions import ArgumentCheck
from toolcrib.gateway.related_tools import RelatedTools
from toolcrib.interfaces import Handler
from toolcrib.model import Caller

T = TypeVar("T")
MAX_CACHED_VIEWS = 512
"""Maximum number of views in the cache of one snapshot."""
_MAX_CACHED_VIEW_BYTES = 256 << 20
"""Maximum bytes of rendered lists in the cache; one list of ten thousand tools has ten million bytes."""
_UNCHECKED_VIEW_BYTES = _MAX_CACHED_VIEW_BYTES // MAX_CACHED_VIEWS
"""Size in bytes up to which a view is cached without a check of the total."""
_CachedRelatedTools = tuple[Caller, float, RelatedTools]


@dataclass(frozen=True)
class CatalogState:
    """One snapshot with everything derived from it; replaced atomically."""

    snapshot: Snapshot = field(default_factory=Snapshot)
    chains: dict[str, tuple[str, Handler]] = field(default_factory=dict[str, tuple[str, Handler]])
    """The composed chain of each tool that was called, with the definition it was composed for."""
    views: dict[tuple[object, str], Any] = field(default_factory=dict[tuple[object, str], Any])
    related_by_audience: dict[object, RelatedTools] = field(default_factory=dict[object, RelatedTools])
    related: dict[int, _CachedRelatedTools] = field(default_factory=dict[int, _CachedRelatedTools])
    """What each caller sees, by `id()` of the caller: evaluating the policy would cost every call."""

    accepts: ArgumentCheck = field(default_factory=ArgumentCheck)
    """The compiled input schemas of tools that authors suggested."""

    def cache(self, key: tuple[object, str], view: T) -> T:
        """Put a view into the cache, and return it."""
        views, size = self.views, _view_bytes(view)
        # Only a larger view triggers the sum: the number of views bounds the smaller ones.
        free_bytes = (
            _MAX_CACHED_VIEW_BYTES - size - sum(map(_view_bytes, views.values()))
            if size > _UNCHECKED_VIEW_BYTES
            else 0
        )
        while views and (len(views) >= MAX_CACHED_VIEWS or free_bytes < 0):
            # Evicts the oldest; with thousands of users, each may have a list of their own.
            free_bytes += _view_bytes(views.pop(next(iter(views))))
        views[key] = view
        return view


def _view_bytes(view: object) -> int:
    """Return the bytes of a rendered list; other views count as 0, as they only reference tools."""
    return len(view) if isinstance(view, bytes) else 0
