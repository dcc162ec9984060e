"""Finds and encrypts secret values in stored rows."""

import json
import logging
from collections.abc import Mapping
from contextlib import closing
from sqlite3 import Error, OperationalError, connect
from typing import Any

from anyio import to_thread
from sqlalchemy import delete, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from toolcrib.model import Json
from toolcrib.store.key_wrapping import WrappedKey, WrappingSecrets, unwraps, wrap
from toolcrib.store.sql.apps import SECRET_COLUMNS, app_location, increment_apps_counter
from toolcrib.store.sql.database import Database
from toolcrib.store.sql.overlay import server_location, servers_of, with_servers
from toolcrib.store.sql.secrets import (
    Cipher,
    StoredSecrets,
    ValueLocation,
    add_key,
    is_encrypted,
    lock_keys,
    row_of,
    secret_for,
    stored_keys,
    unwrapped,
)
from toolcrib.store.sql.tables import apps, data_keys, marks, overlay

# --- Bulk operations on all secret values of the store: read, encrypt, re-encrypt (key rotation), remove ---

Values = Mapping[ValueLocation, Json]
"""Stored values by place: encrypted, or plain (by earlier versions): texts of apps, settings of servers."""


async def secret_values(connection: AsyncConnection) -> Values:
    """Read all secret values, as stored."""
    document = await connection.scalar(select(overlay.c.document))
    values = {server_location(name): value for name, value in servers_of(document or {}).items()}
    columns = (apps.c[name] for name in SECRET_COLUMNS)
    for row in (await connection.execute(select(apps.c.package, *columns))).mappings():
        secrets = {name: row[name] for name in SECRET_COLUMNS if row[name] is not None}
        values |= {app_location(row["package"], name): value for name, value in secrets.items()}
    return values


async def write_values(connection: AsyncConnection, values: Values) -> None:
    """Write values at their places, already in their stored form."""
    if any(table == overlay.name for table, _, _ in values):
        document: Any = await connection.scalar(select(overlay.c.document).with_for_update())
        changed = with_servers(document, lambda name, value: values.get(server_location(name), value))
        await connection.execute(update(overlay).values(document=changed))
    for (table, package, name), value in values.items():
        if table == apps.name:
            await connection.execute(update(apps).where(apps.c.package == package).values({name: value}))


async def encrypt_plain(connection: AsyncConnection, secrets: StoredSecrets) -> int:
    """Encrypt the values that an earlier version stored as plain text; return their number."""
    values = await secret_values(connection)
    plain = {place: value for place, value in values.items() if is_plain_text(value)}
    cipher = await secrets.writer(connection) if plain else None
    if cipher is not None:
        sealed = {place: cipher.encrypt(place, _serialized(place, value)) for place, value in plain.items()}
        await write_values(connection, sealed)
    return len(plain)


def is_plain_text(value: Json) -> bool:
    """Whether a stored value is not encrypted yet."""
    return not is_encrypted(value)


async def rotate(database: Database, wrapping: WrappingSecrets) -> int:
    """Rotate the data key: re-encrypt all values with a new one, delete the others; return how many."""
    async with database.write() as connection:
        await lock_keys(connection)
        rows = await stored_keys(connection)
        values = await secret_values(connection)
        if not rows and not values:
            return 0
        keys = {row.id: unwrapped(row, secret_for(row, wrapping)) for row in rows}
        new, data_key = await add_key(connection, wrapping.make(), rows)
        cipher = Cipher(new, {**keys, new: data_key})
        await write_values(connection, _reencrypted(values, cipher))
        await connection.execute(delete(data_keys).where(data_keys.c.id != new))
        return len(values)


def _reencrypted(values: Values, cipher: Cipher) -> Values:
    texts = {
        place: cipher.decrypt(place, value)
        if isinstance(value, str) and is_encrypted(value)
        else _serialized(place, value)
        for place, value in values.items()
    }
    return {place: cipher.encrypt(place, text) for place, text in texts.items()}


async def encrypted_names(database: Database) -> tuple[list[str], list[str]]:
    """Return the names of the servers and of the apps that have encrypted values."""
    async with database.read() as connection:
        return _names(await secret_values(connection))


async def remove_encrypted(database: Database) -> tuple[list[str], list[str]]:
    """Delete all encrypted values and data keys; return the removed servers and the apps without a key."""
    async with database.write() as connection:
        await lock_keys(connection)
        servers, packages = _names(await secret_values(connection))
        if servers:
            await _remove_servers(connection, servers)
        if packages:
            removed = {app_location(each, name): None for each in packages for name in SECRET_COLUMNS}
            await write_values(connection, removed)
            await increment_apps_counter(database, connection)
        await connection.execute(delete(data_keys))
        return servers, packages


def _names(values: Values) -> tuple[list[str], list[str]]:
    places = [place for place, value in values.items() if is_encrypted(value)]
    prefix = server_location("")[2]
    servers = [name.removeprefix(prefix) for table, _, name in places if table == overlay.name]
    return servers, sorted({row for table, row, _ in places if table == apps.name})


async def _remove_servers(connection: AsyncConnection, names: list[str]) -> None:
    document: Any = await connection.scalar(select(overlay.c.document).with_for_update())
    servers = {name: value for name, value in servers_of(document).items() if name not in names}
    changed = {**document, "mcp": {**document["mcp"], "servers": servers}}
    await connection.execute(update(overlay).values(document=changed, version=overlay.c.version + 1))


def _serialized(place: ValueLocation, value: Json) -> str:
    """Serialize a value for encryption: JSON for a server; the text itself for an app."""
    return json.dumps(value) if place[0] == overlay.name else str(value)


# --- Secret checks on opening a store: verifies decryption, rewraps data keys, and encrypts plain values ---

log = logging.getLogger(__name__)

CLEANUP_MARK = "clear text in free pages"
"""Name of the mark of a database file with free pages that may still contain deleted plain text."""
CLEANUP_LOCK_SECONDS = 5.0


async def protect_secrets(database: Database, secrets: StoredSecrets) -> None:
    """Refuse to start if secrets cannot be decrypted; rewrap data keys, and encrypt plain values.

    Each step is one transaction, so after a crash the next start resumes where this one stopped.
    """
    wrapping = secrets.wrapping
    if wrapping is None:
        return
    async with database.read() as connection:
        stale = _stale(await stored_keys(connection), wrapping)
        values = await secret_values(connection)
        unclean = await connection.scalar(select(marks.c.number).where(marks.c.name == CLEANUP_MARK))
    if stale:
        await _rewrap(database, wrapping)
    if any(map(is_plain_text, values.values())):
        unclean = await _encrypt(database, secrets) or unclean
    if unclean:
        await _clean_up(database)


def _stale(keys: list[WrappedKey], wrapping: WrappingSecrets) -> list[WrappedKey]:
    """Return the data keys that the current secret does not unwrap."""
    current = wrapping.current() if keys else None
    return [each for each in keys if current is None or not unwraps(each, current)]


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
            wrapped = wrap(data_key, wrapping.make(), id=key.id, created=key.created)
            statement = update(data_keys).where(data_keys.c.id == key.id)
            await connection.execute(statement.values(row_of(wrapped)))
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
            first = database.insert(marks).values(name=CLEANUP_MARK, number=1)
            await connection.execute(first.on_conflict_do_nothing(index_elements=[marks.c.name]))
    if count:
        log.warning("%d secrets that were stored as they are have been encrypted", count)
    return in_file


async def _clean_up(database: Database) -> None:
    """Rewrite the file without its free pages (VACUUM); if it is locked, the next start retries."""
    path = database.engine.url.database
    if not path:
        return
    try:
        await to_thread.run_sync(_vacuum, path)
    except Error as error:
        log.warning("deleted clear text stays in the database file until the next start: %s", error)
        return
    await database.execute(delete(marks).where(marks.c.name == CLEANUP_MARK))


def _vacuum(path: str) -> None:
    with closing(connect(path, timeout=CLEANUP_LOCK_SECONDS, isolation_level=None)) as connection:
        connection.execute("PRAGMA secure_delete = ON")
        connection.execute("VACUUM")
        # The checkpoint copies the WAL to the file and truncates the WAL, which has plain text too.
        busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if busy:
            message = "another process reads it"
            raise OperationalError(message)
