"""Persistence: the durable store (`open_store`) and the state replicas share (`open_shared` in `shared`)."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolcrib.clock import Clock
    from toolcrib.store.key_wrapping import WrappingSecrets
    from toolcrib.store.sql.store import SqlStore


async def open_store(
    url: str, clock: "Clock | None" = None, *, wrapping: "WrappingSecrets | None" = None
) -> "SqlStore":
    """Open the database of a URL and migrate its tables. The caller must close the store.

    `wrapping` are the secrets that wrap the encryption key of stored secrets. Without them, new secrets are
    stored as plain text, and encrypted ones cannot be read. The clock resumes from its last stored reading.
    """
    # Lazy import: users of `shared` alone must not pay for loading the database library.
    from toolcrib.store.sql.store import SqlStore

    return await SqlStore.open(url, wrapping, clock)
