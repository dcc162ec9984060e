"""Watches the config file and reloads when it has changed."""

import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio

from toolcrib.errors import ToolcribError

log = logging.getLogger(__name__)

EVERY = 0.5
"""Seconds between two looks. One `stat` costs microseconds, so a library that watches would gain nothing."""

Mark = tuple[int, int, int] | None


async def watch(path: Path, reload: Callable[[], Awaitable[object]]) -> None:
    """Reload when the file has changed and rests, until cancelled; a refused file is logged and kept out."""
    served, seen = None, _mark(path)  # it may have changed since it was read, so the first look counts
    while True:
        await anyio.sleep(EVERY)
        last, seen = seen, _mark(path)
        if seen is None or seen == served or seen != last:
            continue
        served = seen
        try:
            await reload()
        except ToolcribError as error:
            log.error("%s was changed, but %s", path, error)  # noqa: TRY400 - the trace would tell nothing more
        except Exception:  # boundary: a reload that fails as nobody foresaw must not end the gateway
            log.exception("%s was changed, but the reload failed unexpectedly", path)


def _mark(path: Path) -> Mark:
    """What tells one state of a file from another; editors replace files as often as they write them."""
    try:
        found = path.stat()
    except OSError:
        return None
    if not found.st_size:
        return None  # being written: many programs empty a file first
    return found.st_mtime_ns, found.st_size, found.st_ino
