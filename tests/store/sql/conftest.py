"""Stores for tests that open them in their own way; all are closed, however the test ends."""

from collections.abc import AsyncGenerator, Awaitable, Callable

import pytest

from toolcrib.store import open_store
from toolcrib.store.sql.store import SqlStore

Opened = Callable[[str], Awaitable[SqlStore]]


@pytest.fixture
async def opened() -> AsyncGenerator[Opened]:
    """Open a store; closing it twice does no harm."""
    stores: list[SqlStore] = []

    async def open_one(url: str) -> SqlStore:
        stores.append(await open_store(url))
        return stores[-1]

    yield open_one
    for store in stores:
        await store.close()
