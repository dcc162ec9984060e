"""Writes a file so that whoever reads it meanwhile finds the old one or the new one, never half of one."""

import os
from pathlib import Path
from tempfile import NamedTemporaryFile


def overwrite(file: Path, data: bytes) -> None:
    """Put a file in the place of one that is there, with the same mode; a link still leads there."""
    target = file.resolve(strict=True)
    with NamedTemporaryFile(dir=target.parent, prefix=f".{target.name}.", delete=False) as written:
        new = Path(written.name)
        try:
            written.write(data)
            written.flush()
            os.fsync(written.fileno())
            new.chmod(target.stat().st_mode & 0o7777)
            new.replace(target)
        except BaseException:
            new.unlink(missing_ok=True)
            raise
