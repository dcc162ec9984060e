"""Secret checks on opening a store: verifies decryption, rewraps data keys, and encrypts plain values."""

import logging
from contextlib import closing
from sqlite3 import Error, OperationalError, connect

from anyio import to_thread
from sqlalchemy import delete, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from toolcrib.store.key_wrapping import WrappedKey, WrappingSecrets, opens, wrap
from toolcrib.store.sql.database import Database
from toolcrib.store.sql.secret_values import encrypt_plain, is_plain, secret_values
from toolcrib.store.sql.secrets import (
    StoredSecrets,
    is_encrypted,
    lock_keys,
    row_of,
    secret_for,
    stored_keys,
    unwrapped,
)
from toolcrib.store.sql.tables import data_keys, marks

log = logging.getLogger(__name__)

CLEAN_UP = "clear text in free pages"
"""Name of the mark of a database file with free pages that may still contain deleted plain text."""
CLEAN_UP_LOCK_SECONDS = 5.0


async def protect(database: Database, secrets: StoredSecrets) -> None:
    """Refuse to start if secrets cannot be decrypted; rewrap data keys, and encrypt plain values.

    Each step is one transaction, so after a crash the next start resumes where this one stopped.
    """
    wrapping = secrets.wrapping
    if wrapping is None:
        return
    async with database.read() as connection:
        stale = _stale(await stored_keys(connection), wrapping)
        values = await secret_values(connection)
        unclean = await connection.scalar(select(marks.c.number).where(marks.c.name == CLEAN_UP))
    if stale:
        await _rewrap(database, wrapping)
    if any(map(is_plain, values.values())):
        unclean = await _encrypt(database, secrets) or unclean
    if unclean:
        await _clean_up(database)


def _stale(keys: list[WrappedKey], wrapping: WrappingSecrets) -> list[WrappedKey]:
    """Return the data keys that the current secret does not unwrap."""
    current = wrapping.current() if keys else None
    return [each for each in keys if current is None or not opens(each, current)]


async def _rewrap(database: Database, wrapping: WrappingSecrets) -> None:
    async with database.write() as connection:
        await lock_keys(connection)
        stale = _stale(await stored_keys(connection), wrapping)
        if not any(map(is_encrypted, (await secret_values(connection)).values())):
            # No value is encrypted with them, so a lost secret is no reason to refuse to start.
            await connection.execute(delete(data_keys))
            return
        opened = [(each, unwrapped(each, secret_for(each, wrapping))) for each in stale]
        for key, data_key in opened:
            again = wrap(data_key, wrapping.make(), id=key.id, created=key.created)
            await connection.execute(update(data_keys).where(data_keys.c.id == key.id).values(row_of(again)))
    if stale:
        log.warning("the key of stored secrets is wrapped with the new secret; the old one opens it no more")


async def _encrypt(database: Database, secrets: StoredSecrets) -> bool:
    """Encrypt plain values; return whether deleted plain text must be removed from the database file."""
    async with database.write() as connection:
        # Before the values are read, so that of two processes that start concurrently only one encrypts.
        await lock_keys(connection)
        count = await encrypt_plain(connection, secrets)
        in_file = count > 0 and connection.dialect.name == "sqlite"
        if in_file:
            await _mark(database, connection)
    if count:
        log.warning("%d secrets that were stored as they are have been encrypted", count)
    return in_file


async def _mark(database: Database, connection: AsyncConnection) -> None:
    first = database.insert(marks).values(name=CLEAN_UP, number=1)
    await connection.execute(first.on_conflict_do_nothing(index_elements=[marks.c.name]))


async def _clean_up(database: Database) -> None:
    """Rewrite the file without its free pages (VACUUM); if it is locked, the next start retries."""
    path = database.engine.url.database
    if not path:
        return
    try:
        await to_thread.run_sync(_write_anew, path)
    except Error as error:
        log.warning("deleted clear text stays in the database file until the next start: %s", error)
        return
    async with database.write() as connection:
        await connection.execute(delete(marks).where(marks.c.name == CLEAN_UP))


def _write_anew(path: str) -> None:
    with closing(connect(path, timeout=CLEAN_UP_LOCK_SECONDS, isolation_level=None)) as connection:
        connection.execute("PRAGMA secure_delete = ON")
        connection.execute("VACUUM")
        # The checkpoint copies the WAL to the file and truncates the WAL, which has plain text too.
        busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if busy:
            message = "another process reads it"
            raise OperationalError(message)
