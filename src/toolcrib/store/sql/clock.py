"""Stores clock readings, so that the time used for expiry never goes back after a restart."""

import logging
from contextlib import suppress
from dataclasses import asdict, fields

import anyio
from sqlalchemy import select

from toolcrib.clock import Clock, ClockReading
from toolcrib.errors import ToolcribError
from toolcrib.store.sql.database import Database
from toolcrib.store.sql.health import MAX_LOCK_SECONDS
from toolcrib.store.sql.tables import clock as table

log = logging.getLogger(__name__)

SAVE_SECONDS = 60.0
"""Seconds between two stored readings."""
_ROW = 1
_READING = tuple(each.name for each in fields(ClockReading))


async def resume(database: Database, clock: Clock) -> None:
    """Resume a clock from the last stored reading, if there is one."""
    async with database.read() as connection:
        columns = (table.c[name] for name in _READING)
        query = select(*columns).where(table.c.id == _ROW)
        found = (await connection.execute(query)).mappings().one_or_none()
    if found is not None:
        clock.resume(ClockReading(**found))


async def save(database: Database, clock: Clock) -> None:
    """Store a reading unless a later one is stored, such as that of another replica."""
    insert = database.insert(table).values(id=_ROW, **asdict(clock.reading()))
    new = {name: insert.excluded[name] for name in _READING}
    later = insert.excluded["seen"] > table.c.seen
    async with database.write(wait=MAX_LOCK_SECONDS) as connection:
        place = [table.c.id]
        await connection.execute(insert.on_conflict_do_update(index_elements=place, set_=new, where=later))


async def keep_saving(database: Database, clock: Clock, every: float = SAVE_SECONDS) -> None:
    """Store a reading now and then every minute, until cancelled; then store a final one."""
    try:
        while True:
            try:
                await save(database, clock)
            except ToolcribError as error:
                log.warning("the time cannot be stored now, and is tried again: %s", error)
            await anyio.sleep(every)
    finally:
        with anyio.move_on_after(MAX_LOCK_SECONDS, shield=True), suppress(ToolcribError):
            await save(database, clock)
