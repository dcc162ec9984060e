"""The admin key: given by the operator, else made once and kept for the owner alone."""

import os
from collections.abc import Callable
from functools import lru_cache
from hashlib import scrypt
from hmac import digest
from pathlib import Path

from toolcrib.private_files import FILE_MODE, private_folder, read_secret

FILE = "admin.key"
_LONG = 32
"""So many characters nobody tries out."""


def admin_key(given: str | None, home: Path, new_key: Callable[[], str]) -> str:
    """Return the key in force. A generated one is readable by its owner only; a laxer file is refused."""
    if given:
        return given
    path = home / FILE
    if path.exists():
        private_folder(home)
        return read_secret(path).decode().strip()
    private_folder(home)
    made = new_key()
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE)
    with os.fdopen(descriptor, "w") as file:
        file.write(made + "\n")
        file.flush()
        os.fsync(file.fileno())
    return made


def derive(admin: str, purpose: str) -> bytes:
    """Return a key for one purpose, which every gateway with the same admin key has, and nobody else."""
    root = admin.encode() if len(admin) >= _LONG else _stretched(admin)
    return digest(root, purpose.encode(), "sha256")


@lru_cache(maxsize=1)
def _stretched(admin: str) -> bytes:
    """Make trying out short keys slow, for what is signed with a derived one gets into many hands."""
    return scrypt(admin.encode(), salt=b"toolcrib", n=1 << 14, r=8, p=1, dklen=32)
