"""Files and folders with owner-only permissions: created, checked, and repaired if they are ours."""

import logging
import os
from pathlib import Path
from stat import S_IMODE, S_IRWXO, S_ISREG, S_ISVTX, S_IWGRP, S_IWOTH

log = logging.getLogger(__name__)

OTHERS_MODE_BITS = 0o077
"""Permission bits of group and others."""
FILE_MODE = 0o600
FOLDER_MODE = 0o700
CLOSED_LOG_MODE_BITS = S_IRWXO | S_IWGRP
"""Permission bits removed from an existing log file. The group may read it, as log shippers need that."""
MAX_SECRET_FILE_BYTES = 4096

_HAS_MODES = os.name == "posix"


def private_folder(path: Path) -> None:
    """Create a folder for its owner only; restrict an existing one of ours, refuse one open to others."""
    try:
        path.mkdir(mode=FOLDER_MODE, parents=True)
    except FileExistsError:
        _restrict(path, FOLDER_MODE)
    else:
        path.chmod(FOLDER_MODE)


def private_file(path: Path) -> None:
    """Restrict an existing file of ours to its owner; refuse another user's file that is open to others."""
    if path.exists():
        _restrict(path, FILE_MODE)


def open_to_append(path: Path) -> int:
    """Open a file for appending; a new one is created for its owner only, an existing mode is unchanged."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL, FILE_MODE)
    except FileExistsError:
        return os.open(path, os.O_WRONLY | os.O_APPEND)
    if _HAS_MODES:
        os.fchmod(descriptor, FILE_MODE)  # a strict umask may have removed even more
    return descriptor


def close_log(descriptor: int, path: Path) -> None:
    """Restrict a log file; if its mode cannot be changed, that is reported and the file still written."""
    state = os.fstat(descriptor)
    # A log may be a pipe or a device such as /dev/null; their mode is not ours to change.
    if not _HAS_MODES or not S_ISREG(state.st_mode) or not state.st_mode & CLOSED_LOG_MODE_BITS:
        return
    before = S_IMODE(state.st_mode)
    after = before & ~CLOSED_LOG_MODE_BITS
    try:
        os.fchmod(descriptor, after)
    except OSError as error:
        log.warning(
            "%s is open to other users (mode %o) and cannot be closed (%s); run `chmod %o %s` as its owner",
            *(path, before, error.strerror, after, path),
        )
    else:
        log.warning("%s was open to other users: its mode was %o and is %o now", path, before, after)


def check_folder(path: Path) -> None:
    """Refuse a folder in which other users can replace files they do not own."""
    mode = S_IMODE(path.stat().st_mode)
    if _HAS_MODES and mode & S_IWOTH and not mode & S_ISVTX:
        message = (
            f"every user can write to {path} (mode {mode:o}) and so replace the files in it; "
            f"run `chmod o-w {path}`, or choose a folder that only its owner can write to"
        )
        raise PermissionError(message)


def read_secret(path: Path) -> bytes:
    """Read a secret; a file readable by others is refused, not repaired, as they may have read it."""
    with path.open("rb") as file:
        state = os.fstat(file.fileno())
        if not S_ISREG(state.st_mode):
            message = f"{path} is not a file"
            raise PermissionError(message)
        if _HAS_MODES and state.st_mode & OTHERS_MODE_BITS:
            message = f"{path} can be read by others; run `chmod 600 {path}`"
            raise PermissionError(message)
        return file.read(MAX_SECRET_FILE_BYTES + 1)


def _restrict(path: Path, mode: int) -> None:
    if not _HAS_MODES:
        return
    state = path.stat()
    before = S_IMODE(state.st_mode)
    if not before & OTHERS_MODE_BITS:
        return
    if state.st_uid != os.geteuid():
        message = (
            f"{path} belongs to another user and is open to others (mode {before:o}); "
            f"run `chmod {mode:o} {path}` as its owner, or choose a place of your own"
        )
        raise PermissionError(message)
    try:
        path.chmod(mode)
    except OSError as error:
        message = f"{path} is open to others (mode {before:o}) and that cannot be changed: {error.strerror}"
        raise PermissionError(message) from error
    log.warning("%s was open to other users: its mode was %o and is %o now", path, before, mode)
