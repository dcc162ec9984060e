"""The file `gateway.json` in the home folder: the address of the gateway that runs with the state there."""

import fcntl
import json
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from toolcrib.private_files import FILE_MODE, private_folder

FILE = "gateway.json"
MAX_FILE_BYTES = 4096


@contextmanager
def announced(home: Path, address: str) -> Generator[None]:
    """Write the address of this gateway while the block runs; a gateway that was here first keeps the file.

    The lock ends with the process, however that ends: a file that is not locked is of no running gateway.
    """
    try:
        private_folder(home)
        descriptor = os.open(home / FILE, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, FILE_MODE)
        os.fchmod(descriptor, FILE_MODE)
    except OSError:
        # A gateway runs without such a folder too; its commands then need --url.
        yield
        return
    with os.fdopen(descriptor, "r+b") as file:
        mine = _locked(file.fileno(), fcntl.LOCK_EX)
        if mine:
            file.truncate()
            file.write(json.dumps({"url": address, "pid": os.getpid()}).encode())
            file.flush()
        try:
            yield
        finally:
            if mine:
                file.truncate(0)


def running_address(home: Path) -> str | None:
    """Return the address of the gateway that runs with this home folder; None where none does."""
    try:
        descriptor = os.open(home / FILE, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        if _locked(file.fileno(), fcntl.LOCK_SH):
            return None
        try:
            found = json.loads(file.read(MAX_FILE_BYTES))["url"]
        except (ValueError, LookupError, TypeError):
            return None
    return found if isinstance(found, str) else None


def _locked(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
