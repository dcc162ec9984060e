"""State shared by replicas, by backend: rate limits, cached results, single flight, signals, presence."""

from collections.abc import Callable

from toolcrib.errors import Refused
from toolcrib.interfaces import Shared
from toolcrib.store.shared.memory import MemoryShared

BACKENDS: dict[str, Callable[[str], Shared]] = {
    "memory": lambda _url: MemoryShared(),
}


def open_shared(url: str) -> Shared:
    """Return the shared state for a URL; `memory` is local to this process."""
    kind = url.partition(":")[0]
    if kind not in BACKENDS:
        # The message has the scheme only: the rest of the URL may contain a password.
        raise Refused(
            "INVALID_REQUEST", f"shared: nothing known by {kind!r}; use one of: {', '.join(BACKENDS)}"
        )
    return BACKENDS[kind](url)
