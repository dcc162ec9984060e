"""Builds the authentication of callers, and synchronizes its key ring with the store."""

import logging
from collections.abc import Awaitable, Callable, Mapping

import anyio
from anyio.abc import TaskGroup

from toolcrib.background_tasks import keep_running
from toolcrib.config import Document, check_admin_key, home
from toolcrib.errors import ToolcribError
from toolcrib.identity import (
    AnonymousIdentity,
    Identity,
    KeyRing,
    TrustHeaderIdentity,
    UserCache,
    admin_key,
    new_key,
)
from toolcrib.interfaces import KeyPosition, Store, StoredKeys
from toolcrib.observe import Redactor
from toolcrib.runtime.store_sync import store_key_use

log = logging.getLogger(__name__)

MAX_KEYS_AT_ONCE = 500
"""Batch size: keys read and applied at once. The event loop runs other tasks between two batches."""
PURGE_SECONDS = 3600.0
_DAY_SECONDS = 86_400.0


class KeyReader:
    """Reads key changes from the store incrementally, and applies them to the key ring."""

    def __init__(self, ring: KeyRing, keys: StoredKeys) -> None:
        self._ring, self._keys = ring, keys
        self._position = KeyPosition()
        self._reading = anyio.Lock()

    async def read(self) -> None:
        """Apply every change that was committed before this call."""
        async with self._reading:
            while not await self._apply_next():
                pass
            self._ring.checked()

    async def _apply_next(self) -> bool:
        """Apply the next batch of changes; return whether it was the last."""
        found = await self._keys.changes(self._position, MAX_KEYS_AT_ONCE)
        if found.newest < self._position.change:
            await self._start_over()
            return True
        self._ring.apply(found.records)
        self._ring.remove(found.purged)
        self._position = found.position
        return len(found.records) + len(found.purged) < MAX_KEYS_AT_ONCE

    async def _start_over(self) -> None:
        """Read all keys, since the store was replaced or restored; remove those that it does not have."""
        log.warning("the store has fewer changes of keys than were read from it; all keys are read again")
        position, missing = KeyPosition(), set(self._ring.names)
        while True:
            found = await self._keys.changes(position, MAX_KEYS_AT_ONCE)
            self._ring.apply(found.records)
            missing.difference_update(each.name for each in found.records)
            position = found.position
            if len(found.records) + len(found.purged) < MAX_KEYS_AT_ONCE:
                break
        self._ring.remove(missing)
        self._position = position


async def make_identity(
    document: Document,
    env: Mapping[str, str],
    store: Store,
    *,
    people: UserCache,
    redactor: Redactor,
    tasks: TaskGroup,
) -> tuple[Identity, Callable[[], Awaitable[None]]]:
    """Build the identity with all stored keys; return it and the callback that reads key changes."""
    auth = document.auth
    ring = KeyRing(now=store.clock.latest, deny=auth.default == "deny")
    admin = admin_key(auth.admin_key, home(env), new_key)
    check_admin_key(admin, given=bool(auth.admin_key))
    redactor.learn(admin)
    reader = KeyReader(ring, store.keys)
    await reader.read()
    tasks.start_soon(keep_running, ring.run)
    tasks.start_soon(keep_running, store_key_use, ring, store.keys)
    tasks.start_soon(keep_running, purge_keys, store, auth.purge_keys_after_days)
    identity = Identity(
        ring,
        admin,
        people=people,
        trust_header=TrustHeaderIdentity() if auth.mode == "trust_header" else None,
        anonymous=AnonymousIdentity(auth.anonymous.context) if auth.anonymous is not None else None,
    )
    return identity, reader.read


async def purge_keys(store: Store, days: float, every: float = PURGE_SECONDS) -> None:
    """Delete keys that were revoked or have expired more than `days` days ago, until cancelled.

    Deletion cannot be undone, so only time that has certainly passed counts. The first run waits one
    interval, so that an operator can notice a wall clock that is wrong at startup.
    """
    while True:
        await anyio.sleep(every)
        try:
            while await store.keys.purge(store.clock.now() - days * _DAY_SECONDS, MAX_KEYS_AT_ONCE):
                pass
        except ToolcribError as error:
            log.warning("ended keys cannot be purged now: %s", error)
