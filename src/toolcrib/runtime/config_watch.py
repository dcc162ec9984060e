"""Watches the config file by polling `stat`, and reloads it after a change."""

import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio

from toolcrib.errors import ToolcribError

log = logging.getLogger(__name__)

EVERY = 0.5
"""Polling interval in seconds. A `stat` takes microseconds, so a file-watching library would gain nothing."""

Mark = tuple[int, int, int] | None


async def watch(path: Path, reload: Callable[[], Awaitable[object]]) -> None:
    """Reload after each change, debounced by one interval, until cancelled; a rejected file is logged."""
    served, seen = None, _mark(path)  # None: reload at first, it may have changed since it was loaded
    while True:
        await anyio.sleep(EVERY)
        last, seen = seen, _mark(path)
        if seen is None or seen == served or seen != last:
            continue
        served = seen
        try:
            await reload()
        except ToolcribError as error:
            log.error("%s was changed, but %s", path, error)  # noqa: TRY400 - the traceback adds nothing
        except Exception:  # boundary: an unexpected failure of a reload must not stop the gateway
            log.exception("%s was changed, but the reload failed unexpectedly", path)


def _mark(path: Path) -> Mark:
    """Return a fingerprint of the file; it has the inode, since many editors replace a file on saving."""
    try:
        found = path.stat()
    except OSError:
        return None
    if not found.st_size:
        return None  # being written: many programs truncate a file first
    return found.st_mtime_ns, found.st_size, found.st_ino
