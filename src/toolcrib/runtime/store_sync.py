"""Background sync with the store: polls for changes, and writes claims, definitions and key use behind."""

import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from typing import Generic, TypeVar

import anyio

from toolcrib.errors import ToolcribError
from toolcrib.identity import KeyRing
from toolcrib.interfaces import ChangeSignal, StoredKeys
from toolcrib.quotas import BoundedReplays

log = logging.getLogger(__name__)
T = TypeVar("T")

_POLL_SECONDS = 2.0
_LAST_WRITE_SECONDS = 3.0
"""Timeout of one write in seconds; it bounds how long a slow store delays shutdown."""


async def forget_replays(replays: BoundedReplays, every: float = 60.0) -> None:
    """Count the results stored for idempotency keys and delete the expired ones, until cancelled."""
    while True:
        try:
            await replays.tidy()
        except ToolcribError as error:
            log.warning("answers kept for idempotency keys cannot be dropped now: %s", error)
        await anyio.sleep(every)


async def store_key_use(ring: KeyRing, keys: StoredKeys, every: float = 60.0) -> None:
    """Store when keys were last used, once a minute, until cancelled; then flush the rest.

    Each run clears the cache of authenticated headers, so that a key in use is recorded every minute.
    """
    try:
        while True:
            await anyio.sleep(every)
            await _store_key_use(ring, keys)
    finally:
        with anyio.move_on_after(_LAST_WRITE_SECONDS, shield=True):
            await _store_key_use(ring, keys)


async def _store_key_use(ring: KeyRing, keys: StoredKeys) -> None:
    used, ring.used, ring.seen = ring.used, {}, {}
    try:
        await keys.used(used)
    except BaseException as error:
        ring.used = {**used, **ring.used}
        if not isinstance(error, ToolcribError):
            raise
        log.warning("the last use of keys cannot be stored now, and is tried again: %s", error)


class StoreWatch:
    """Detects changes by other processes: calls `look` on a change signal, and every 2 seconds otherwise."""

    def __init__(self, what: str, look: Callable[[], Awaitable[None]]) -> None:
        self._what, self._look = what, look
        self._told = anyio.Event()

    def hear(self, change: ChangeSignal) -> None:
        """Wake the watch: a change signal has arrived."""
        del change
        self._told.set()

    async def run(self) -> None:
        """Watch until cancelled; while the store is unavailable, the last known state stays in use."""
        failing = False
        while True:
            with anyio.move_on_after(_POLL_SECONDS):
                await self._told.wait()
            self._told = anyio.Event()
            try:
                await self._look()
                failing = False
            except ToolcribError as error:
                if not failing:
                    log.warning("%s cannot be read now; those known so far hold: %s", self._what, error)
                failing = True


class StoreWriter(Generic[T]):
    """Write-behind buffer: stores changes by name in the background, off the path of the caller."""

    def __init__(
        self,
        what: str,
        put: Callable[[Mapping[str, T]], Awaitable[None]],
        drop: Callable[[Iterable[str]], Awaitable[None]],
    ) -> None:
        self._what, self._put, self._drop = what, put, drop
        self._event = anyio.Event()
        self._fresh: dict[str, T] = {}
        self._stale: set[str] = set()

    def note(self, fresh: Mapping[str, T], stale: Collection[str]) -> None:
        """Buffer entries to write and names to delete; a later change of a name replaces an earlier one."""
        self._stale.update(stale)
        for name in stale:
            self._fresh.pop(name, None)
        self._fresh.update(fresh)
        self._stale.difference_update(fresh)
        self._event.set()

    async def run(self) -> None:
        """Write whenever changes are buffered, until cancelled; then flush the rest."""
        while True:
            try:
                await self._event.wait()
            finally:
                with anyio.move_on_after(_LAST_WRITE_SECONDS, shield=True):
                    await self._write()

    async def _write(self) -> None:
        self._event = anyio.Event()
        fresh, stale, self._fresh, self._stale = self._fresh, self._stale, {}, set()
        try:
            if stale:
                await self._drop(stale)
            if fresh:
                await self._put(fresh)
        except BaseException as error:
            # A name that was deleted while the write failed must not be written again.
            pending = {name: entry for name, entry in fresh.items() if name not in self._stale}
            self._fresh, self._stale = {**pending, **self._fresh}, stale | self._stale
            if not isinstance(error, ToolcribError):
                raise
            log.warning("%s cannot be stored now, and are tried again with the next: %s", self._what, error)
