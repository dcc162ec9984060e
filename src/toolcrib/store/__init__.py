"""Where things are kept: what lasts (`open_store`), and what replicas share (`open_shared` in `shared`)."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolcrib.store.sql.store import SqlStore


async def open_store(url: str) -> "SqlStore":
    """Open the database of a URL, bringing its tables up to date first. Close what comes back."""
    # Late, because whoever needs only `shared` must not wait for the database library.
    from toolcrib.store.sql.store import SqlStore

    return await SqlStore.open(url)
