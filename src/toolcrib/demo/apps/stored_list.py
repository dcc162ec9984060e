"""Stores a list of objects per user in the gateway's app storage."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio

from toolcrib.sdk import AppContext, AppSession, BusinessRuleError

Entries = list[dict[str, Any]]


class StoredList:
    """One list per user, stored as JSON under a key of the session's storage."""

    def __init__(self, key: str) -> None:
        self._key = key
        self._locks: dict[str, anyio.Lock] = {}

    async def entries(self, session: AppSession) -> Entries:
        """Return the stored list."""
        text = await session.storage.get(self._key)
        return [] if text is None else json.loads(text)

    @asynccontextmanager
    async def update(self, session: AppSession) -> AsyncGenerator[Entries]:
        """Yield the list and store its changes; a lock per user serializes concurrent updates."""
        async with self._locks.setdefault(session.user_id, anyio.Lock()):
            entries = await self.entries(session)
            yield entries
            await session.storage.set(self._key, json.dumps(entries))

    def forget(self, user: str) -> None:
        """Remove the lock of a user whose session has ended."""
        self._locks.pop(user, None)


def session_of(context: AppContext) -> AppSession:
    """Return the session of a call; raises NO_SESSION if there is none."""
    if context.session is None:
        raise BusinessRuleError("NO_SESSION", "the app is not open here; call it through the gateway")
    return context.session
