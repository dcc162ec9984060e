"""Bulk operations on all secret values of the store: read, encrypt, re-encrypt (key rotation), remove."""

import json
from collections.abc import Mapping
from typing import Any

from sqlalchemy import delete, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from toolcrib.model import Json
from toolcrib.store.key_wrapping import WrappingSecrets
from toolcrib.store.sql.apps import SECRET, app_place, count_up
from toolcrib.store.sql.database import Database
from toolcrib.store.sql.overlay import server_place, servers_of, with_servers
from toolcrib.store.sql.secrets import (
    Cipher,
    Place,
    StoredSecrets,
    add_key,
    is_encrypted,
    lock_keys,
    secret_for,
    stored_keys,
    unwrapped,
)
from toolcrib.store.sql.tables import apps, data_keys, overlay

Values = Mapping[Place, Json]
"""Stored values by place: encrypted, or plain (by earlier versions): texts of apps, settings of servers."""


async def secret_values(connection: AsyncConnection) -> Values:
    """Read all secret values, as stored."""
    document = await connection.scalar(select(overlay.c.document))
    found = {server_place(name): value for name, value in servers_of(document or {}).items()}
    for row in (await connection.execute(select(apps.c.package, *_columns()))).mappings():
        found |= {app_place(row["package"], name): row[name] for name in SECRET if row[name] is not None}
    return found


async def write_values(connection: AsyncConnection, values: Values) -> None:
    """Write values at their places, already in their stored form."""
    if any(table == overlay.name for table, _, _ in values):
        document: Any = await connection.scalar(select(overlay.c.document).with_for_update())
        changed = with_servers(document, lambda name, value: values.get(server_place(name), value))
        await connection.execute(update(overlay).values(document=changed))
    for (table, package, name), value in values.items():
        if table == apps.name:
            await connection.execute(update(apps).where(apps.c.package == package).values({name: value}))


async def encrypt_plain(connection: AsyncConnection, secrets: StoredSecrets) -> int:
    """Encrypt the values that an earlier version stored as plain text; return their number."""
    plain = {place: value for place, value in (await secret_values(connection)).items() if is_plain(value)}
    cipher = await secrets.writer(connection) if plain else None
    if cipher is not None:
        sealed = {place: cipher.encrypt(place, _spelled(place, value)) for place, value in plain.items()}
        await write_values(connection, sealed)
    return len(plain)


def is_plain(value: Json) -> bool:
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
        await write_values(connection, _again(values, cipher))
        await connection.execute(delete(data_keys).where(data_keys.c.id != new))
        return len(values)


def _again(values: Values, cipher: Cipher) -> Values:
    texts = {
        place: cipher.decrypt(place, value)
        if isinstance(value, str) and is_encrypted(value)
        else _spelled(place, value)
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
            await write_values(
                connection, {app_place(each, name): None for each in packages for name in SECRET}
            )
            await count_up(database, connection)
        await connection.execute(delete(data_keys))
        return servers, packages


def _names(values: Values) -> tuple[list[str], list[str]]:
    found = [place for place, value in values.items() if is_encrypted(value)]
    servers = [name.removeprefix(server_place("")[2]) for table, _, name in found if table == overlay.name]
    return servers, sorted({row for table, row, _ in found if table == apps.name})


async def _remove_servers(connection: AsyncConnection, names: list[str]) -> None:
    document: Any = await connection.scalar(select(overlay.c.document).with_for_update())
    left = {name: value for name, value in servers_of(document).items() if name not in names}
    changed = {**document, "mcp": {**document["mcp"], "servers": left}}
    await connection.execute(update(overlay).values(document=changed, version=overlay.c.version + 1))


def _columns() -> list[Any]:
    return [apps.c[name] for name in SECRET]


def _spelled(place: Place, value: Json) -> str:
    """Serialize a value for encryption: JSON for a server; the text itself for an app."""
    return json.dumps(value) if place[0] == overlay.name else str(value)
