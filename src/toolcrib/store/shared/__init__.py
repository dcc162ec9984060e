"""What replicas share, by the kind of place it is kept in: limits, results, flights, signals, presence."""

from collections.abc import Callable

from toolcrib.errors import Refused
from toolcrib.interfaces import Shared
from toolcrib.store.shared.memory import MemoryShared

KINDS: dict[str, Callable[[str], Shared]] = {
    "memory": lambda _url: MemoryShared(),
}


def open_shared(url: str) -> Shared:
    """Make the shared state of a URL; `memory` is shared with nobody but this process."""
    kind = url.partition(":")[0]
    if kind not in KINDS:
        # Only the kind is repeated: the rest of the address may hold a password.
        raise Refused("INVALID_REQUEST", f"shared: nothing known by {kind!r}; use one of: {', '.join(KINDS)}")
    return KINDS[kind](url)
