"""Buffered writes to the store, when a write fails."""

from collections.abc import Iterable, Mapping

import anyio
import pytest

from tests.waiting import until
from toolcrib.errors import Unavailable
from toolcrib.runtime.store_sync import StoreWriter

pytestmark = pytest.mark.anyio


class Table:
    """A table that fails while it is away, and lets a caller act in the middle of a write."""

    def __init__(self) -> None:
        self.rows: dict[str, int] = {}
        self.away = self.writing = False
        self.proceed = anyio.Event()

    async def put(self, rows: Mapping[str, int]) -> None:
        if self.away:
            self.writing = True
            await self.proceed.wait()
            raise Unavailable("SOURCE_DOWN", "the store is away")
        self.rows.update(rows)

    async def drop(self, names: Iterable[str]) -> None:
        for name in names:
            self.rows.pop(name, None)


@pytest.mark.requirement("A4")
async def test_name_deleted_during_a_failed_write_stays_deleted() -> None:
    table = Table()
    writer = StoreWriter("claims", table.put, table.drop)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(writer.run)
        table.away = True
        writer.note({"old": 1, "other": 2}, ())
        await until(lambda: table.writing)
        writer.note({}, {"old"})
        table.away = False
        table.proceed.set()
        await until(lambda: table.rows == {"other": 2})
        writer.note({"last": 3}, ())
        await until(lambda: "last" in table.rows)
        assert table.rows == {"other": 2, "last": 3}
        tasks.cancel_scope.cancel()
