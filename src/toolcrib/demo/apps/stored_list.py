"""What an app of the demonstration keeps for a user: a list of objects, at the gateway."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio

from toolcrib.sdk import AppContext, AppSession, BusinessRuleError

Entries = list[dict[str, Any]]


class StoredList:
    """One list for each user, under one key of the session's storage."""

    def __init__(self, key: str) -> None:
        self._key = key
        self._turns: dict[str, anyio.Lock] = {}

    async def entries(self, session: AppSession) -> Entries:
        """Return the list as it is."""
        text = await session.storage.get(self._key)
        return [] if text is None else json.loads(text)

    @asynccontextmanager
    async def changing(self, session: AppSession) -> AsyncGenerator[Entries]:
        """Give the list to be changed, and keep it; two calls of one user take turns."""
        async with self._turns.setdefault(session.user_id, anyio.Lock()):
            entries = await self.entries(session)
            yield entries
            await session.storage.set(self._key, json.dumps(entries))

    def forget(self, user: str) -> None:
        """Let go of what was only needed while the user was here."""
        self._turns.pop(user, None)


def session_of(context: AppContext) -> AppSession:
    """Return the session a call is made in: nothing here works without."""
    if context.session is None:
        raise BusinessRuleError("NO_SESSION", "the app is not open here; call it through the gateway")
    return context.session
