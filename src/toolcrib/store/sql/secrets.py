"""Field-level encryption (AES-GCM): values are encrypted with a data key and bound to their place."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from json import dumps
from secrets import token_bytes, token_hex
from time import time
from typing import TYPE_CHECKING

from sqlalchemy import func, insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from toolcrib.errors import Refused
from toolcrib.store.key_wrapping import (
    DATA_KEY_BYTES,
    NONCE_BYTES,
    WrappedKey,
    WrappingSecret,
    WrappingSecrets,
    decode_base64,
    encode_base64,
    unwrap,
    unwraps,
    wrap,
)
from toolcrib.store.sql.tables import data_keys

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

ENCRYPTED_PREFIX = "tc1"
"""Prefix of an encrypted value, in the format `tc1:ID OF THE DATA KEY:NONCE AND CIPHERTEXT`."""
DATA_KEY_LOCK_KEY = 0x746F6F6C6B657973
"""Key of the Postgres advisory lock that serializes changes of data keys: `toolkeys` in ASCII."""

ValueLocation = tuple[str, str, str]
"""Table, row and field of a value; the associated data of its encryption, so it cannot be moved."""

OLD_KEY_ADVICE = (
    "give the one until now for one start, in $TOOLCRIB_ADMIN_KEY_OLD (or auth.admin_key_old), or in "
    "secrets.key_file_old where a file was used; or remove the secrets for good with `toolcrib secrets "
    "remove`. Nothing was changed"
)

RESTORE_ADVICE = "restore the database from a backup, or remove the secrets with `toolcrib secrets remove`"


def is_encrypted(value: object) -> bool:
    """Whether a stored value is encrypted."""
    return isinstance(value, str) and value.startswith(f"{ENCRYPTED_PREFIX}:")


@dataclass(frozen=True, slots=True)
class Cipher:
    """Unwrapped data keys: the current one for encryption, and all that were needed so far."""

    current: str
    keys: Mapping[str, bytes] = field(repr=False)

    def encrypt(self, place: ValueLocation, text: str) -> str:
        """Encrypt a text with the current data key, bound to its place."""
        nonce = token_bytes(NONCE_BYTES)
        associated = _associated_data(place, self.current)
        ciphertext = _aead(self.keys[self.current]).encrypt(nonce, text.encode(), associated)
        return f"{ENCRYPTED_PREFIX}:{self.current}:{encode_base64(nonce + ciphertext)}"

    def decrypt(self, place: ValueLocation, value: str) -> str:
        """Decrypt a value; raise Refused if it was tampered with or belongs to another place."""
        from cryptography.exceptions import InvalidTag

        key = key_id(value)
        try:
            sealed = decode_base64(value.rpartition(":")[2])
            nonce, ciphertext = sealed[:NONCE_BYTES], sealed[NONCE_BYTES:]
            return _aead(self.keys[key]).decrypt(nonce, ciphertext, _associated_data(place, key)).decode()
        except (InvalidTag, ValueError):
            table, row, name = place
            message = f"store: {name} of {row} in {table} was changed, or moved there from another row"
            raise Refused("INVALID_REQUEST", f"{message}; {RESTORE_ADVICE}") from None


@dataclass(slots=True)
class StoredSecrets:
    """Provides ciphers within a transaction; without wrapping secrets, new values stay plain text."""

    wrapping: WrappingSecrets | None = None
    _open: dict[str, bytes] = field(default_factory=dict[str, bytes], init=False, repr=False)

    async def writer(self, connection: AsyncConnection) -> Cipher | None:
        """Return a cipher to encrypt with, creating the first data key; None without wrapping secrets.

        The newest key is read every time: another process may have rotated the data key.
        """
        if self.wrapping is None:
            return None
        await lock_keys(connection)
        rows = await stored_keys(connection)
        if not rows:
            made, data_key = await add_key(connection, self.wrapping.make(), rows)
            self._open[made] = data_key
            return Cipher(made, self._open)
        newest = max(rows, key=lambda each: each.created)
        self._unwrap([newest])
        return Cipher(newest.id, self._open)

    async def reader(self, connection: AsyncConnection, values: Iterable[object]) -> Cipher:
        """Return a cipher that decrypts the encrypted ones of these values."""
        needed = {key_id(each) for each in values if isinstance(each, str) and is_encrypted(each)}
        if missing := needed - self._open.keys():
            rows = {each.id: each for each in await stored_keys(connection)}
            if unknown := missing - rows.keys():
                message = f"store: data key {min(unknown)} is missing; {RESTORE_ADVICE}"
                raise Refused("INVALID_REQUEST", message)
            self._unwrap([rows[each] for each in missing])
        return Cipher("", self._open)

    def _unwrap(self, rows: Iterable[WrappedKey]) -> None:
        for row in rows:
            if row.id not in self._open:
                if self.wrapping is None:
                    raise Refused("INVALID_REQUEST", f"store: it holds encrypted secrets; {OLD_KEY_ADVICE}")
                self._open[row.id] = unwrapped(row, secret_for(row, self.wrapping))


def unwrapped(row: WrappedKey, secret: WrappingSecret) -> bytes:
    """Unwrap a data key; raise Refused if its row was tampered with."""
    try:
        return unwrap(row, secret)
    except ValueError as error:
        raise Refused("INVALID_REQUEST", f"store: {error}; {RESTORE_ADVICE}") from None


def secret_for(row: WrappedKey, wrapping: WrappingSecrets) -> WrappingSecret:
    """Return the secret that unwraps a data key, current or earlier; raise Refused if none does."""
    current = wrapping.current()
    for each in (*([] if current is None else [current]), *wrapping.earlier()):
        if unwraps(row, each):
            return each
    secret = {"admin_key": "an admin key", "key_file": "a key file"}[row.wrapped_by]
    reason = "none was given now" if current is None else "it is not the one given now"
    message = f"store: its secrets are encrypted, and opened with {secret}; {reason}: {OLD_KEY_ADVICE}"
    raise Refused("INVALID_REQUEST", message)


async def stored_keys(connection: AsyncConnection) -> list[WrappedKey]:
    """Read all wrapped data keys, oldest first."""
    rows = await connection.execute(select(data_keys).order_by(data_keys.c.created))
    return [WrappedKey(**row) for row in rows.mappings()]


async def lock_keys(connection: AsyncConnection) -> None:
    """Take the data key lock until this transaction ends; on SQLite the write lock suffices."""
    if connection.dialect.name == "postgresql":
        await connection.execute(select(func.pg_advisory_xact_lock(DATA_KEY_LOCK_KEY)))


async def add_key(
    connection: AsyncConnection, secret: WrappingSecret, others: Iterable[WrappedKey]
) -> tuple[str, bytes]:
    """Create and store a data key that is newer than all others; return its id and the key."""
    data_key = token_bytes(DATA_KEY_BYTES)
    # Later than all others, regardless of clock skew between machines.
    created = max((time(), *(each.created + 1 for each in others)))
    row = wrap(data_key, secret, id=token_hex(4), created=created)
    await connection.execute(insert(data_keys), row_of(row))
    return row.id, data_key


def key_id(value: str) -> str:
    """Return the id of the data key of an encrypted value."""
    return value.split(":", 2)[1]


def row_of(key: WrappedKey) -> dict[str, object]:
    """Return the column values of a data key."""
    return {column.name: getattr(key, column.name) for column in data_keys.c}


def _associated_data(place: ValueLocation, id: str) -> bytes:
    return dumps([ENCRYPTED_PREFIX, id, *place]).encode()


@lru_cache(maxsize=4)
def _aead(key: bytes) -> "AESGCM":
    # Lazy import: see `key_wrapping`.
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    return AESGCM(key)
