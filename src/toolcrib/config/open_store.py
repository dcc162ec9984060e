"""Opens the store of a document, with the operator's secrets that wrap its encryption key."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from toolcrib.config.errors import ConfigError, ConfigFault
from toolcrib.config.load import Document, home
from toolcrib.private_files import MAX_SECRET_FILE_BYTES, private_folder, read_secret
from toolcrib.store import open_store
from toolcrib.store.key_wrapping import MIN_UNSTRETCHED_SECRET_BYTES, WrappingSecret, WrappingSecrets

if TYPE_CHECKING:
    from toolcrib.store.sql.store import SqlStore

SQLITE_FILE = "sqlite:///"
MIN_DISTINCT_BYTES = 12
"""Minimum of distinct bytes in a key file: 32 random bytes always have more, a repeated word has fewer."""


async def open_store_of(document: Document, env: Mapping[str, str]) -> "SqlStore":
    """Open a document's store; a home folder that contains it is created or made private first."""
    folder = home(env)
    if is_in(folder, document.store):
        private_folder(folder)
    return await open_store(document.store, wrapping=wrapping_of(document, env))


def is_in(folder: Path, store: str) -> bool:
    """Whether a store URL is a SQLite file in this folder."""
    return store.startswith(SQLITE_FILE) and Path(store.removeprefix(SQLITE_FILE)).parent == folder


def wrapping_of(document: Document, env: Mapping[str, str]) -> WrappingSecrets:
    """Return the secrets that wrap the data key of the store; key files are read and validated at once."""
    settings, auth = document.secrets, document.auth
    admin_key = None if document.ephemeral_admin_key else auth.admin_key
    secrets = _OperatorSecrets(
        home=home(env),
        admin_key=_from_text(admin_key),
        admin_key_old=_from_text(auth.admin_key_old),
        file=_from_file(settings.key_file, "key_file"),
        file_old=_from_file(settings.key_file_old, "key_file_old"),
    )
    return WrappingSecrets(secrets.current, secrets.make, secrets.earlier)


@dataclass(frozen=True, slots=True, kw_only=True)
class _OperatorSecrets:
    """The configured secrets; the file of the generated admin key is read lazily."""

    home: Path
    admin_key: WrappingSecret | None = field(repr=False)
    admin_key_old: WrappingSecret | None = field(repr=False)
    file: WrappingSecret | None = field(repr=False)
    file_old: WrappingSecret | None = field(repr=False)

    def current(self) -> WrappingSecret | None:
        return self.file or self.admin_key or self._generated()

    def make(self) -> WrappingSecret:
        from toolcrib.identity import admin_key, new_key

        return self.current() or WrappingSecret("admin_key", admin_key(None, self.home, new_key).encode())

    def earlier(self) -> Sequence[WrappingSecret]:
        others = (self.admin_key, self.admin_key_old, self.file_old, self._generated())
        return [secret for secret in others if secret is not None]

    def _generated(self) -> WrappingSecret | None:
        from toolcrib.identity import admin_key, new_key
        from toolcrib.identity.local_callers import FILE

        if not (self.home / FILE).exists():
            return None
        return _from_text(admin_key(None, self.home, new_key))


def _from_text(key: str | None) -> WrappingSecret | None:
    return WrappingSecret("admin_key", key.encode()) if key else None


def _from_file(path: str | None, name: str) -> WrappingSecret | None:
    if path is None:
        return None
    try:
        data = read_secret(Path(path))
    except OSError as error:
        raise _fault(name, str(error.strerror or error)) from None
    if data.isascii():
        data = data.strip()
    if len(data) > MAX_SECRET_FILE_BYTES:
        raise _fault(name, f"{path} is no key file: it has more than {MAX_SECRET_FILE_BYTES:,} bytes")
    if len(data) < MIN_UNSTRETCHED_SECRET_BYTES or len(set(data)) < MIN_DISTINCT_BYTES:
        advice = f"generate one with `(umask 077; openssl rand -base64 32 > {path})`"
        raise _fault(name, f"{path} needs at least {MIN_UNSTRETCHED_SECRET_BYTES} random bytes; {advice}")
    return WrappingSecret("key_file", data)


def _fault(name: str, message: str) -> ConfigError:
    return ConfigError([ConfigFault(message=message, where=("secrets", name))])
