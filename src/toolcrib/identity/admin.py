"""The admin key: given by the operator, else made once and kept for the owner alone."""

import os
from collections.abc import Callable
from pathlib import Path

FILE = "admin.key"


def admin_key(given: str | None, home: Path, new_key: Callable[[], str]) -> str:
    """Return the key in force. A generated one is readable by its owner only; a laxer file is refused."""
    if given:
        return given
    path = home / FILE
    if path.exists():
        if path.stat().st_mode & 0o077:
            message = f"{path} can be read by others; run `chmod 600 {path}`"
            raise PermissionError(message)
        return path.read_text().strip()
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    made = new_key()
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(made + "\n")
        file.flush()
        os.fsync(file.fileno())
    return made
