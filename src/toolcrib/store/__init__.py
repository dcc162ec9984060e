"""Where things are kept: what lasts (`open_store`), and what replicas share (`open_shared` in `shared`)."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolcrib.clock import Clock
    from toolcrib.store.key_wrapping import WrappingSecrets
    from toolcrib.store.sql.store import SqlStore


async def open_store(
    url: str, clock: "Clock | None" = None, *, wrapping: "WrappingSecrets | None" = None
) -> "SqlStore":
    """Open the database of a URL, bringing its tables up to date first. Close what comes back.

    `wrapping` are the secrets that protect the secrets in it; without them new ones stay as they are, and
    encrypted ones cannot be read. Its clock goes on from the last reading that is stored there.
    """
    # Late, because whoever needs only `shared` must not wait for the database library.
    from toolcrib.store.sql.store import SqlStore

    return await SqlStore.open(url, wrapping, clock)
