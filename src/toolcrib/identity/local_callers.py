"""Callers without stored keys: anonymous on loopback, the trusted header, and the admin key."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from hashlib import scrypt
from hmac import digest
from pathlib import Path

from toolcrib.model import TRUST_HEADER, Caller, Credential
from toolcrib.private_files import FILE_MODE, private_folder, read_secret

# --- Anonymous callers: requests without a credential from loopback get one context and no permissions ---


@dataclass(frozen=True)
class AnonymousIdentity:
    """The context that the operator opens to loopback clients without a credential."""

    context: str

    def caller(self, credential: Credential) -> Caller | None:
        """Return the anonymous caller; None unless the request comes from loopback."""
        if not credential.loopback:
            return None
        return Caller(id="anonymous", key="anonymous", context=self.context, contexts=frozenset())


# --- Trusts the user header of a loopback client, such as an authenticating reverse proxy ---


@dataclass(frozen=True)
class TrustHeaderIdentity:
    """Accepts `X-User-Id` from loopback without further checks."""

    def caller(self, credential: Credential) -> Caller | None:
        """Return the caller that the header names; None if it is missing, invalid, or not from loopback."""
        user = credential.user
        if not user or not credential.loopback or not user.isprintable():
            return None
        return Caller(id=f"user:{user}", user=user, key=TRUST_HEADER, contexts=frozenset())


# --- The admin key: configured by the operator, or generated once and stored in a private file ---

FILE = "admin.key"
_MIN_STRONG_KEY_CHARS = 32
"""Characters from which a key is considered too long for brute force."""


def admin_key(given: str | None, home: Path, new_key: Callable[[], str]) -> str:
    """Return the admin key. A generated one is readable by its owner only; a laxer file is refused."""
    if given:
        return given
    path = home / FILE
    if path.exists():
        private_folder(home)
        return read_secret(path).decode().strip()
    private_folder(home)
    key = new_key()
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE)
    with os.fdopen(descriptor, "w") as file:
        file.write(key + "\n")
        file.flush()
        os.fsync(file.fileno())
    return key


def derive(admin: str, purpose: str) -> bytes:
    """Derive a secret for a purpose (HMAC); all gateways with the same admin key derive the same one."""
    root = admin.encode() if len(admin) >= _MIN_STRONG_KEY_CHARS else _stretched(admin)
    return digest(root, purpose.encode(), "sha256")


@lru_cache(maxsize=1)
def _stretched(admin: str) -> bytes:
    """Stretch a short key with scrypt: signed values are public, and allow offline brute force otherwise."""
    return scrypt(admin.encode(), salt=b"toolcrib", n=1 << 14, r=8, p=1, dklen=32)
